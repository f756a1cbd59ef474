"""Fixtures that all black-box tests share."""

import pytest
from support import PROCEDURES, Server


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory):
    """One server for all tests that leave it standing."""
    directory = tmp_path_factory.mktemp("shared")
    with Server(directory / "data", directory / "log", procedures=PROCEDURES) as server:
        yield server


@pytest.fixture
def server(shared_server):
    """The shared server, empty and, after the test, still there."""
    shared_server.redis().flushall()
    yield shared_server
    assert shared_server.is_alive(), shared_server.log()


@pytest.fixture
def own_server(tmp_path):
    """Makes servers on directories below the test's own; those that still run are killed after the test."""
    made = []

    def make(directory="data", **options):
        log = tmp_path / f"{len(made)}.log"
        made.append(Server(tmp_path / directory, log, **options))
        return made[-1]

    yield make
    for server in made:
        server.__exit__()
