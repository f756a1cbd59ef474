"""CLIENT PAUSE: clients of every protocol wait, and nothing else does."""

import select
import socket
import time
import urllib.request

import pytest
from support import Server

from .test_tracking import Both
from .wire import Wire, encode

LONG_MS = 600_000
QUIET_SECONDS = 0.3
PROCEDURES = """
local tokaido = require "tokaido"

return {
  set = tokaido.write(function(tx, key, value)
    tx.main:put(key, value)
  end),
  get = tokaido.read(function(tx, key)
    return tx.main:get(key)
  end),
}
"""


@pytest.fixture
def server(tmp_path):
    (tmp_path / "procedures").mkdir()
    (tmp_path / "procedures" / "keep.lua").write_text(PROCEDURES)
    (tmp_path / "t.toml").write_text('[databases.fast]\nengine = "cache"\nbytes = "1 MiB"\n')
    options = ["--config", tmp_path / "t.toml", "--sync", "os", "--workers", "1"]
    with Server(tmp_path / "data", tmp_path / "log", procedures=tmp_path / "procedures", options=map(str, options)) as server:
        yield server


def is_silent(wires):
    return not select.select([wire.socket for wire in wires], [], [], QUIET_SECONDS)[0]


def sent(server, *commands):
    wire = Wire(server.port, 2)
    wire.socket.sendall(b"".join(map(encode, commands)))
    return wire


class Raw:
    """A request as bytes, and its reply."""

    def __init__(self, server, request):
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        self.socket.sendall(request)

    def reply(self):
        return self.socket.recv(1 << 16)


def put(key, database="main"):
    return f"PUT /v1/db/{database}/{key} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n1".encode()


def test_arguments_are_refused_as_redis_refuses_them(redis_port, tokaido_server):
    both = Both((redis_port, tokaido_server.port), 2)
    for words in ("PAUSE", "PAUSE x", "PAUSE -1", "PAUSE 10 foo", "PAUSE x foo", "UNPAUSE x", "UNPAUSE", "PAUSE 99999999999999999999", "PAUSE 9223372036854775807 WRITE", "UNPAUSE", "PAUSE 0"):
        both.run("main", "CLIENT", *words.split())
    both.run("main", "PING")
    both.run("main", "CLIENT", "UNPAUSE")
    both.close()


def test_writes_wait_and_reads_do_not(server):
    main = Wire(server.port, 2)
    main.run("SET", "k", "before")
    main.run("CLIENT", "PAUSE", LONG_MS, "WRITE")
    # On the only worker, which continues.
    waiting = [
        sent(server, ("SET", "k", "after")), sent(server, ("EVAL", "return redis.call('INCR', 'n')", 0)), sent(server, ("FCALL", "keep.set", 1, "p", "1")),
        sent(server, ("MULTI",), ("INCR", "n"), ("EXEC",)), sent(server, ("SELECT", "fast"), ("SET", "c", "1")), sent(server, ("BLPOP", "l", "1")),
        sent(server, ("FLUSHALL",)), Raw(server, put("h")), Raw(server, put("c", "fast")), Raw(server, b"set m 0 0 1\r\n1\r\n"),
    ]
    assert [waiting[3].reply(), waiting[3].reply(), waiting[4].reply()] == [("+", "OK"), ("+", "QUEUED"), ("+", "OK")]
    assert is_silent(waiting)
    reads = [("GET", "k"), ("EVAL_RO", "return redis.call('GET', 'k')", 0), ("FCALL", "keep.get", 1, "k"), ("KEYS", "*"), ("PING",), ("EXISTS", "p", "n", "h")]
    assert main.run_all(reads) == [("$", b"before")] * 3 + [("*", [("$", b"k")]), ("+", "PONG"), (":", "0")]
    assert server.http("GET", "/v1/db/main/k")[2] == b"before"
    assert main.run("CLIENT", "UNPAUSE") == ("+", "OK")
    assert [waiting[0].reply(), waiting[1].reply()[0], waiting[4].reply()] == [("+", "OK"), ":", ("+", "OK")]
    assert waiting[3].reply()[0] == "*" and waiting[5].reply() == ("null array",) and waiting[6].reply() == ("+", "OK")
    assert waiting[7].reply().startswith(b"HTTP/1.1 2") and waiting[8].reply().startswith(b"HTTP/1.1 2")
    assert waiting[9].reply() == b"STORED\r\n"


def test_the_connection_that_pauses_waits_too(server):
    main = sent(server, ("SET", "k", "1"), ("CLIENT", "PAUSE", LONG_MS, "WRITE"), ("GET", "k"), ("SET", "k", "2"), ("GET", "k"))
    assert [main.reply() for _ in range(3)] == [("+", "OK"), ("+", "OK"), ("$", b"1")]
    other = Wire(server.port, 2)
    assert is_silent([main]) and other.run("GET", "k") == ("$", b"1")
    # The longer pause and the broader one remain.
    assert other.run("CLIENT", "PAUSE", 1, "WRITE") == ("+", "OK")
    assert is_silent([main])
    other.run("CLIENT", "UNPAUSE")
    assert [main.reply() for _ in range(2)] == [("+", "OK"), ("$", b"2")]


def test_all_waits_until_the_time_is_over(server):
    main = Wire(server.port, 2)
    started = time.monotonic()
    assert main.run("CLIENT", "PAUSE", 1500) == ("+", "OK")
    waiting = [sent(server, ("GET", "k")), sent(server, ("PING",)), sent(server, ("CLIENT", "UNPAUSE")), Raw(server, b"gets m\r\n"), Raw(server, b"GET /v1/db/main/k HTTP/1.1\r\nHost: localhost\r\n\r\n")]
    assert is_silent(waiting)
    with urllib.request.urlopen(f"http://{server.address}/healthz", timeout=30) as response:
        assert response.status == 200
    assert [wire.reply() for wire in waiting[:3]] == [("null",), ("+", "PONG"), ("+", "OK")]
    assert waiting[3].reply() == b"END\r\n" and waiting[4].reply().startswith(b"HTTP/1.1 404")
    # A lower bound, which no load of the machine can break.
    assert time.monotonic() - started >= 1.5


def test_within_a_transaction_the_rest_of_it_runs(server):
    main = Wire(server.port, 2)
    replies = main.run_all([("MULTI",), ("CLIENT", "PAUSE", LONG_MS, "WRITE"), ("SET", "k", "1"), ("EXEC",), ("GET", "k")])
    assert replies[3:] == [("*", [("+", "OK"), ("+", "OK")]), ("$", b"1")]
    other = sent(server, ("SET", "k", "2"))
    assert is_silent([other])
    main.run("CLIENT", "UNPAUSE")
    assert other.reply() == ("+", "OK")


def test_a_stop_gives_up_what_waits(server):
    main = Wire(server.port, 2)
    main.run("SET", "k", "before")
    main.run("CLIENT", "PAUSE", LONG_MS, "WRITE")
    waiting = sent(server, ("SET", "k", "after"))
    assert is_silent([waiting])
    assert server.stop() == 0
    assert waiting.socket.recv(1) == b""
    server.start()
    assert Wire(server.port, 2).run("GET", "k") == ("$", b"before")
