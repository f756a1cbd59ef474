"""Two servers that must give the same replies: Debian's Redis, and Tokaido. Both treat a collection as
large from a few elements on."""

import os
import shutil
import socket
import subprocess

import pytest
from support import Server, free_port, wait_until

from .differential import Pair
from .wire import Wire

ELEMENTS_MAX = 8
TEXT_BYTES_MAX = 16
PACKING = {
    "hash-max-listpack-entries": ELEMENTS_MAX,
    "hash-max-listpack-value": TEXT_BYTES_MAX,
    "zset-max-listpack-entries": ELEMENTS_MAX,
    "zset-max-listpack-value": TEXT_BYTES_MAX,
    # Makes trimming with `~` exact.
    "stream-node-max-entries": 1,
}


def is_listening(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@pytest.fixture(scope="session")
def redis_port(tmp_path_factory):
    """The port of a Redis without persistence."""
    program = shutil.which("redis-server")
    if not program:
        assert os.environ.get("CI") != "true", "redis-server must be installed"
        pytest.skip("redis-server is not installed")
    directory, port = tmp_path_factory.mktemp("redis"), free_port()
    options = {"port": port, "bind": "127.0.0.1", "save": "", "dir": directory} | PACKING
    command = [program]
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    with open(directory / "log", "wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    wait_until(lambda: is_listening(port), "redis-server")
    yield port
    process.kill()
    process.wait()


@pytest.fixture(scope="session")
def tokaido_server(tmp_path_factory):
    directory = tmp_path_factory.mktemp("collections")
    packing = ["--packed-elements-max", str(ELEMENTS_MAX), "--packed-text-bytes-max", str(TEXT_BYTES_MAX)]
    options = [*packing, "--sync", "os", "--workers", "2"]
    with Server(directory / "data", directory / "log", options=options) as server:
        yield server


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def wire(request, tokaido_server):
    """A connection to Tokaido only, without data."""
    wire = Wire(tokaido_server.port, request.param)
    wire.run("FLUSHALL")
    yield wire
    wire.close()


@pytest.fixture
def pair(request, wire, redis_port):
    """A connection to each of the two, without data."""
    protocol = request.node.callspec.params["wire"]
    redis = Wire(redis_port, protocol)
    redis.run("FLUSHALL")
    yield Pair(redis, wire)
    redis.close()
