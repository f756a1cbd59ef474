"""A server with a cache, `hot`, and a constant database, `ports`, beside its own databases."""

import pytest
from support import PROCEDURES, tokaido

CONFIGURATION = """
[databases.hot]
engine = "cache"
bytes = "2 MiB"

[databases.ports]
engine = "cdb"
file = "{file}"
"""


def make_cdb(path, text):
    """Creates or replaces a file from lines of keys and values."""
    made = tokaido("cdb", "make", "-m", path, "-", input=text, stdin=None)
    assert made.returncode == 0, made.stderr


@pytest.fixture
def engines(own_server, tmp_path):
    """The server, started. `engines.cdb` is the path of the file."""
    file = tmp_path / "ports.cdb"
    make_cdb(file, "ssh 22\nhttp 80\nhttp 8080\n")
    configuration = tmp_path / "tokaido.toml"
    configuration.write_text(CONFIGURATION.format(file=file))
    options = ["--config", str(configuration), "--workers", "2"]
    server = own_server(procedures=PROCEDURES, options=options).start()
    server.cdb = file
    # It listens before it has opened its files; only an answer shows that it is ready.
    assert server.redis().ping()
    yield server
    assert server.is_alive(), server.log()


def client_of(server, database, **options):
    """A client whose connections select a database by name."""
    return server.redis(db=database, **options)
