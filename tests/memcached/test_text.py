"""The text protocol, with a third-party client, and byte by byte."""

import subprocess
from contextlib import closing

import pytest
from pymemcache.client.base import Client
from pymemcache.exceptions import MemcacheClientError

from .conftest import Raw


@pytest.fixture(params=["memcached", "durable"])
def server(request, make_memcached):
    return make_memcached(request.param)


@pytest.fixture
def client(server):
    with closing(Client(("127.0.0.1", server.memcached_port), timeout=30)) as client:
        yield client


def test_values(client):
    assert client.get("k") is None
    assert client.set("k", b"v", noreply=False)
    assert client.get("k") == b"v"
    assert client.set_many({"a": b"1", "b": b"2"}) == []
    assert client.get_many(["a", "b", "c"]) == {"a": b"1", "b": b"2"}
    assert not client.add("a", b"x", noreply=False)
    assert client.replace("a", b"x", noreply=False)
    assert client.append("a", b"y", noreply=False)
    assert client.prepend("a", b"w", noreply=False)
    assert client.get("a") == b"wxy"
    assert client.delete("a", noreply=False)
    assert not client.delete("a", noreply=False)
    large = bytes(range(256)) * 4000
    assert client.set("large", large, noreply=False)
    assert client.get("large") == large


def test_cas(client):
    client.set("k", b"1", noreply=False)
    value, cas = client.gets("k")
    assert value == b"1"
    assert client.cas("k", b"2", cas) is True
    assert client.cas("k", b"3", cas) is False
    assert client.cas("none", b"3", cas) is None


def test_counters(client):
    client.set("n", b"10", noreply=False)
    assert client.incr("n", 5) == 15
    assert client.decr("n", 100) == 0
    assert client.incr("none", 1) is None
    client.set("w", b"word", noreply=False)
    with pytest.raises(MemcacheClientError):
        client.incr("w", 1)


def test_expiry_and_the_rest(client):
    client.set("k", b"v", expire=100, noreply=False)
    assert client.touch("k", 200, noreply=False)
    client.set("gone", b"v", expire=-1, noreply=False)
    assert client.get("gone") is None
    assert client.version().count(b".") == 2
    assert client.stats()[b"curr_items"] >= 1
    assert client.stats("settings")[b"cas_enabled"]
    assert client.flush_all(noreply=False)
    assert client.get("k") is None


def test_meta_commands(server):
    with closing(Client(("127.0.0.1", server.memcached_port), timeout=30)) as client:
        assert client.raw_command("mg none v", b"\r\n") == b"EN"
        assert client.raw_command("mg k N30 v", b"\r\n\r\n") == b"VA 0 W"
    with Raw(server.path) as raw:
        replies = raw.ask(b"ms k 5 T0 F7 q\r\nhello\r\nmg k v f t s\r\nmn\r\n", b"MN\r\n")
        assert replies == b"VA 5 f7 t-1 s5\r\nhello\r\nMN\r\n"


def test_a_pipeline_is_answered_in_order(server):
    with Raw(("127.0.0.1", server.memcached_port)) as raw:
        requests = [b"set k%d 0 0 3\r\n%03d\r\nget k%d\r\n" % (i, i, i) for i in range(500)]
        replies = [b"STORED\r\nVALUE k%d 0 3\r\n%03d\r\nEND\r\n" % (i, i) for i in range(500)]
        expected = b"".join(replies)
        raw.send(b"".join(requests) + b"version\r\n")
        data = raw.read_until(b"VERSION 1.6.18\r\n")
        assert data == expected + b"VERSION 1.6.18\r\n"


def test_a_record_is_one_in_all_protocols(server):
    database = "memcached" if "memcached.sock" in server.path else "durable"
    redis = server.redis(db=database)
    with closing(Client(("127.0.0.1", server.memcached_port), timeout=30)) as client:
        client.set("k", b"\x00\xff", flags=9, expire=1000, noreply=False)
        assert redis.get("k") == b"\x00\xff"
        assert 990 < redis.ttl("k") <= 1000
        status, headers, body = server.http("GET", f"/v1/db/{database}/k")
        assert (status, body, headers["tokaido-flags"]) == (200, b"\x00\xff", "9")
        redis.set("k", "theirs")
        assert client.get("k") == b"theirs"
        redis.set("n", 41)
        assert client.incr("n", 1) == 42
        assert redis.incr("n") == 43
        status, *_ = server.http("PUT", f"/v1/db/{database}/h", b"over http", {"tokaido-flags": "3"})
        assert status in (200, 201, 204)
        with Raw(server.path) as raw:
            assert raw.ask(b"get h\r\n", b"END\r\n") == b"VALUE h 3 9\r\nover http\r\nEND\r\n"
        redis.delete("k")
        assert client.get("k") is None


def test_a_database_of_the_store_keeps_its_records(make_memcached):
    server = make_memcached("durable")
    with closing(Client(("127.0.0.1", server.memcached_port), timeout=30)) as client:
        client.set("k", b"v", flags=7, noreply=False)
    with Raw(server.path) as raw:
        assert raw.ask(b"md k I\r\n") == b"HD\r\n"
    server.kill()
    server.start()
    with Raw(("127.0.0.1", server.memcached_port)) as raw:
        assert raw.ask(b"mg k v f\r\n", b"v\r\n") == b"VA 1 f7 X W\r\nv\r\n"


def test_the_first_line_tells_the_protocol(memcached):
    address = ("127.0.0.1", memcached.port)
    for line, reply in [
        (b"version\r\n", b"VERSION 1.6.18\r\n"),
        (b"set k 0 0 1\r\nx\r\n", b"STORED\r\n"),
        (b"get k j\r\n", b"VALUE k 0 1\r\nx\r\nEND\r\n"),
        (b"mg k v\r\n", b"VA 1\r\nx\r\n"),
        # What is valid in both protocols is read as Redis.
        (b"get k\r\n", b"$-1\r\n"),
    ]:
        with Raw(address) as raw:
            assert raw.ask(line, reply) == reply
    with Raw(("127.0.0.1", memcached.memcached_port)) as raw:
        assert raw.ask(b"get k\r\n", b"END\r\n") == b"VALUE k 0 1\r\nx\r\nEND\r\n"
    with Raw(("127.0.0.1", memcached.memcached_port)) as raw:
        reply = b"-ERR this address speaks memcached, not redis; connect to one that does\r\n"
        assert raw.ask(b"*1\r\n$4\r\nPING\r\n") == reply


def test_a_password_is_a_value(make_memcached):
    server = make_memcached(options=["--password", "sesame"])
    with Raw(("127.0.0.1", server.memcached_port)) as raw:
        assert raw.ask(b"get k\r\n") == b"CLIENT_ERROR unauthenticated\r\n"
        assert raw.ask(b"set a 0 0 9\r\nme sesama\r\n") == b"CLIENT_ERROR authentication failure\r\n"
        assert raw.ask(b"set a 0 0 9\r\nme sesame\r\n") == b"STORED\r\n"
        assert raw.ask(b"get k\r\n") == b"END\r\n"


def test_the_tools_of_libmemcached(memcached, tmp_path):
    servers = f"--servers=127.0.0.1:{memcached.memcached_port}"

    def tool(name, *arguments):
        done = subprocess.run(
            [name, servers, *arguments], capture_output=True, text=True, timeout=60, check=False
        )
        return done.returncode, done.stdout

    file = tmp_path / "station"
    file.write_text("Shinagawa")
    assert tool("memccp", str(file))[0] == 0
    assert tool("memccat", "station") == (0, "Shinagawa\n")
    assert tool("memcexist", "station")[0] == 0
    assert tool("memctouch", "--expire=100", "station")[0] == 0
    assert "curr_items: 1" in tool("memcstat")[1]
    assert tool("memcping")[0] == 0
    assert tool("memcrm", "station")[0] == 0
    assert tool("memcexist", "station")[0] != 0
    assert tool("memcflush")[0] == 0
    assert tool("memcslap", "--concurrency=4", "--execute-number=200", "--test=set")[0] == 0
