"""Fixtures shared by all black-box tests."""

import subprocess

import pytest
from support import PROCEDURES, Server


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory):
    """One server for all tests that do not stop it."""
    directory = tmp_path_factory.mktemp("shared")
    with Server(directory / "data", directory / "log", procedures=PROCEDURES) as server:
        yield server


@pytest.fixture
def server(shared_server):
    """The shared server, empty at first; it must still be running after the test."""
    shared_server.redis().flushall()
    yield shared_server
    assert shared_server.is_alive(), shared_server.log()


@pytest.fixture
def own_server(tmp_path):
    """Makes servers on directories below the test's own; any that still run are killed after the test."""
    made = []

    def make(directory="data", **options):
        log = tmp_path / f"{len(made)}.log"
        made.append(Server(tmp_path / directory, log, **options))
        return made[-1]

    yield make
    for server in made:
        server.__exit__()


@pytest.fixture
def disk_of(tmp_path):
    """Makes a disk of a given size in bytes, where that is permitted."""
    disk = tmp_path / "disk"

    def make(size_bytes):
        disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(disk)]
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"mounting a small disk is not permitted here: {done.stderr.strip()}")
        return disk

    yield make
    if disk.is_mount():
        subprocess.run(["umount", "--lazy", str(disk)], check=True)
