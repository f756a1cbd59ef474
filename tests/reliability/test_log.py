"""A log that cannot be written: its lines are dropped and counted, and the server goes on."""

import contextlib
import os
import re
import signal
import subprocess

import pytest
import redis
from support import wait_until

LINES = 50
PROCEDURES = """
local tokaido = require "tokaido"

local logs = {}

logs.write = tokaido.write(function(tx)
  tokaido.log("a line of the writer")
  tx.main:put("logged", "yes")
  return "written"
end)

logs.read = tokaido.read(function(tx)
  tokaido.log("a line of a reader")
  return "read"
end)

return logs
"""


@contextlib.contextmanager
def full_device():
    """Each write fails with ENOSPC."""
    with open("/dev/full", "wb") as device:
        yield device


@contextlib.contextmanager
def closed_pipe():
    """Each write fails with EPIPE."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        yield pipe


@contextlib.contextmanager
def full_pipe():
    """Writers wait for a reader that never reads."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    os.set_blocking(writer, True)
    with os.fdopen(writer, "wb") as pipe, os.fdopen(reader, "rb"):
        yield pipe


@contextlib.contextmanager
def lost_terminal():
    """Each write fails with EIO, as for a server whose terminal was closed."""
    master, slave = os.openpty()
    os.close(master)
    with os.fdopen(slave, "wb", buffering=0) as terminal:
        yield terminal


BROKEN = [full_device, closed_pipe, full_pipe, lost_terminal]


@pytest.fixture
def procedures(tmp_path):
    directory = tmp_path / "procedures"
    directory.mkdir()
    (directory / "logs.lua").write_text(PROCEDURES)
    return directory


def spawn(server, output):
    """Starts the server with its output and its log going here."""
    server.process = subprocess.Popen(
        server.command(), stdin=subprocess.DEVNULL, stdout=output, stderr=output
    )
    wait_until(lambda: listens(server), "the server")


def listens(server):
    assert server.process.poll() is None, f"the server ended with {server.process.returncode}"
    try:
        return server.redis().ping()
    except redis.ConnectionError:
        return False


def dropped(server):
    """The count in INFO and in the metrics, which must agree."""
    of_info = server.redis().info("stats")["log_lines_dropped"]
    metrics = server.http("GET", "/metrics")[2].decode()
    of_metrics = int(re.search(r"^tokaido_log_lines_dropped_total (\d+)$", metrics, re.MULTILINE)[1])
    assert of_info <= of_metrics
    return of_info


def log_from_all_threads(server):
    """Makes the writer, the pool and the workers log."""
    client = server.redis()
    for _ in range(LINES):
        assert client.fcall("logs.write", 0) == b"written"
        assert client.fcall("logs.read", 0) == b"read"


def prove_it_serves(server):
    client = server.redis()
    assert client.set("k", "v")
    assert client.get("k") == b"v"
    assert server.http("GET", "/healthz")[0] == 200


@pytest.mark.parametrize("output", BROKEN)
def test_lines_that_cannot_be_written_are_dropped_and_counted(own_server, procedures, output):
    (procedures / "broken.lua").write_text("return {{\n")  # a warning at the start
    server = own_server(procedures=procedures)
    with output() as broken:
        spawn(server, broken)
        log_from_all_threads(server)
        prove_it_serves(server)
        assert dropped(server) >= 2 * LINES
        server.process.send_signal(signal.SIGHUP)  # an error: the file is still broken
        prove_it_serves(server)
        assert server.stop() == 0
    server.start()
    assert server.redis().get("k") == b"v"
    assert dropped(server) == 0


def test_a_log_on_a_full_disk_goes_on_once_there_is_room(own_server, procedures, disk_of):
    disk = disk_of(1 << 20)
    ballast = disk / "ballast"
    server = own_server(procedures=procedures)
    server.log_path = disk / "log"
    server.start()
    with contextlib.suppress(OSError), open(ballast, "wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    # The rest of the log's last page can be written before the disk is full for it.
    for _ in range(4):
        log_from_all_threads(server)
    prove_it_serves(server)
    assert dropped(server) > 0
    ballast.unlink()
    before = server.log().count("a line of the writer")
    log_from_all_threads(server)
    assert server.log().count("a line of the writer") > before
    prove_it_serves(server)
    assert server.stop() == 0


def test_the_start_is_told_of_in_the_log_where_standard_output_is_gone(own_server):
    server = own_server()
    with closed_pipe() as gone, open(server.log_path, "ab") as log:
        server.process = subprocess.Popen(
            server.command(), stdin=subprocess.DEVNULL, stdout=gone, stderr=log
        )
        wait_until(lambda: listens(server), "the server")
    server.wait_for_log("standard output")
    prove_it_serves(server)
    assert server.stop() == 0
