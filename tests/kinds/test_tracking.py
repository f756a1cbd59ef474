"""CLIENT TRACKING: the invalidations that caching clients receive, compared with Redis."""

import pytest
from redis.cache import CacheConfig
from redis.connection import CacheProxyConnection
from support import PROCEDURES, Server, wait_until

from .wire import Wire, encode


class Tracked:
    """A connection, and the pushes that it received besides replies."""

    def __init__(self, port, protocol):
        self.wire = Wire(port, protocol)
        self.pushed = []

    def run(self, *command):
        self.wire.socket.sendall(encode(command))
        return self.reply()

    def reply(self):
        while (reply := self.wire.reply())[0] == ">" or is_message(reply):
            self.pushed.append(reply)
        return reply

    def told(self):
        """The pushes since the last call. Any push sent before a PING arrives before the reply to the next PING."""
        for word in ("one", "two"):
            self.run("PING", word)
        pushed, self.pushed = self.pushed, []
        return pushed

    def keys_told(self):
        """The same as keys only; None stands for all keys."""
        return [None if keys == ("null",) else [key for _, key in keys[1]] for *_, keys in (push[1] for push in self.told())]


def is_message(reply):
    return reply[0] == "*" and reply[1][:1] == [("$", b"message")]


class Both:
    """The same steps on both servers, with the same results."""

    def __init__(self, ports, protocol):
        self.ports, self.protocol, self.sides, self.names = ports, protocol, [{} for _ in ports], []
        self.run("main", "FLUSHALL")

    def clients(self, name):
        for side, port in zip(self.sides, self.ports, strict=True):
            if name not in side:
                side[name] = Tracked(port, self.protocol)
        return [side[name] for side in self.sides]

    def run(self, name, *command):
        """Runs a command on the connection of that name. A function stands for an argument that differs by server."""
        replies = []
        for side, client in zip(self.sides, self.clients(name), strict=True):
            replies.append(client.run(*(part(side) if callable(part) else part for part in command)))
        assert replies[0] == replies[1], f"{command}: Redis {replies[0]}, Tokaido {replies[1]}"
        return replies[1]

    def told(self, name):
        expected, ours = (client.told() for client in self.clients(name))
        assert sorted(expected, key=repr) == sorted(ours, key=repr), f"Redis {expected}, Tokaido {ours}"
        return ours

    def close(self):
        for side in self.sides:
            for client in side.values():
                client.wire.close()


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def both(request, redis_port, tokaido_server):
    pair = Both((redis_port, tokaido_server.port), request.param)
    yield pair
    pair.close()


@pytest.fixture
def both3(redis_port, tokaido_server):
    pair = Both((redis_port, tokaido_server.port), 3)
    yield pair
    pair.close()


def id_of(name):
    def find(side):
        return side[name].run("CLIENT", "ID")[1]

    return find


def test_options_are_refused_as_redis_refuses_them(both):
    for words in (
        "ON PREFIX a", "ON BCAST OPTIN", "ON BCAST OPTOUT", "ON OPTIN OPTOUT", "ON REDIRECT", "ON REDIRECT x", "ON REDIRECT 999999", "ON NOSUCH", "x",
        "ON PREFIX", "ON BCAST PREFIX a PREFIX ab", "ON BCAST PREFIX b PREFIX a", "ON BCAST PREFIX ab", "ON BCAST PREFIX c", "ON", "ON BCAST NOLOOP",
        "OFF PREFIX a", "OFF x", "OFF", "ON OPTIN", "ON OPTOUT", "ON OPTIN", "ON BCAST", "OFF", "ON OPTOUT", "ON OPTIN", "ON", "ON OPTIN", "OFF", "OFF",
    ):
        both.run("main", "CLIENT", "TRACKING", *words.split())
        for question in ("TRACKINGINFO", "GETREDIR", "CACHING YES", "TRACKINGINFO", "CACHING NO", "CACHING x", "TRACKINGINFO"):
            both.run("main", "CLIENT", *question.split())
        both.run("main", "CLIENT", "CACHING")


def test_what_was_read_is_told_of_once(both3):
    both3.run("reader", "CLIENT", "TRACKING", "ON")
    for command in (
        ("SET", "a", 1), ("SET", "b", 1), ("HSET", "h", "f", 1, "g", 2), ("RPUSH", "l", 1, 2, 3), ("ZADD", "z", 1, "m"), ("SADD", "s", "m"), ("XADD", "x", "1-1", "f", "v"),
    ):
        both3.run("writer", *command)
    assert both3.told("reader") == []
    reads = [
        ("GET", "a"), ("MGET", "a", "b", "missing"), ("HGET", "h", "f"), ("LRANGE", "l", 0, -1), ("ZRANGE", "z", 0, -1), ("SMEMBERS", "s"), ("XRANGE", "x", "-", "+"),
        ("EXISTS", "a", "none"), ("TTL", "b"), ("TYPE", "h"), ("SINTER", "s", "t"), ("GETRANGE", "a", 0, 1), ("LPOS", "l", 1), ("ZCARD", "y"), ("SORT_RO", "l"),
        ("OBJECT", "ENCODING", "a"), ("XREAD", "STREAMS", "x", "0"), ("SINTERCARD", 2, "s", "u"), ("BITCOUNT", "v"), ("PFCOUNT", "p", "q"), ("DBSIZE",),
    ]
    for read in reads:
        both3.run("reader", *read)
    writes = [
        ("SET", "a", 2), ("SET", "a", 3), ("MSET", "missing", 1, "b", 2), ("HDEL", "h", "g"), ("LPUSH", "l", 0), ("ZINCRBY", "z", 1, "m"), ("SREM", "s", "m"), ("XDEL", "x", "1-1"),
        ("DEL", "none"), ("SET", "none", 1), ("DEL", "none"), ("SADD", "t", 1), ("ZADD", "y", 1, "m"), ("RENAME", "b", "u"), ("SETBIT", "v", 1, 1), ("PFADD", "q", 1),
    ]
    for write in writes:
        both3.run("writer", *write)
        both3.told("reader")
    both3.run("reader", "GET", "a")
    both3.run("reader", "SET", "a", 4)
    assert both3.told("reader") == [(">", [("$", b"invalidate"), ("*", [("$", b"a")])])]
    both3.run("reader", "CLIENT", "TRACKING", "OFF")
    both3.run("reader", "GET", "a")
    both3.run("writer", "SET", "a", 5)
    assert both3.told("reader") == []


def test_large_collections_change_whichever_element_does(both3):
    both3.run("reader", "CLIENT", "TRACKING", "ON")
    for number in range(100):
        for command in (("HSET", "h", number, "x" * 50), ("SADD", "s", f"{number}" * 9), ("ZADD", "z", number, f"{number}" * 9), ("RPUSH", "l", "x" * 50)):
            both3.run("writer", *command)
    for write, read in (
        (("HSET", "h", 50, "y"), ("HGET", "h", 7)), (("SREM", "s", "7" * 9), ("SISMEMBER", "s", 8)), (("ZADD", "z", 7.5, "7" * 9), ("ZSCORE", "z", "8" * 9)),
        (("LSET", "l", 50, "y"), ("LINDEX", "l", 7)), (("HSET", "h", 50, "y"), ("HGET", "h", 7)),
    ):
        both3.run("reader", *read)
        both3.run("writer", *write)
        assert len(both3.told("reader")) == 1


def test_flushes_tell_everybody_of_everything(both3):
    both3.run("reader", "CLIENT", "TRACKING", "ON", "NOLOOP")
    both3.run("other", "CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "x")
    for flush in ("FLUSHALL", "FLUSHDB"):
        both3.run("writer", "SET", "a", 1)
        both3.run("reader", "GET", "a")
        both3.run("reader", flush)
        for name in ("reader", "other"):
            assert both3.told(name) == [(">", [("$", b"invalidate"), ("null",)])]


def test_one_can_choose_request_by_request(both3):
    for mode, word in (("OPTIN", "YES"), ("OPTOUT", "NO")):
        both3.run("reader", "CLIENT", "TRACKING", "ON", mode)
        both3.run("reader", "GET", "a")
        both3.run("reader", "CLIENT", "CACHING", word)
        both3.run("reader", "CLIENT", "TRACKINGINFO")
        both3.run("reader", "GET", "b")
        both3.run("reader", "GET", "c")
        both3.run("reader", "CLIENT", "CACHING", word)
        for command in (("MULTI",), ("GET", "d"), ("GET", "e"), ("EXEC",), ("GET", "f")):
            both3.run("reader", *command)
        both3.run("reader", "CLIENT", "CACHING", word)
        both3.run("reader", "EVAL", "return redis.call('GET', KEYS[1])", 1, "g")
        both3.run("reader", "GET", "h")
        for key in "abcdefgh":
            both3.run("writer", "SET", key, 1)
        told = both3.told("reader")
        assert len(told) == {"OPTIN": 4, "OPTOUT": 4}[mode]
        both3.run("reader", "CLIENT", "TRACKING", "OFF")


def test_prefixes_are_told_of_whoever_has_read(both3):
    both3.run("reader", "CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "user:", "PREFIX", "item:")
    both3.run("reader", "CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "more:")
    both3.run("all", "CLIENT", "TRACKING", "ON", "BCAST", "NOLOOP")
    both3.run("reader", "CLIENT", "TRACKINGINFO")
    for command in (("SET", "user:1", 1), ("SET", "other", 1), ("MSET", "user:1", 1, "user:2", 2, "item:1", 3, "x", 4), ("DEL", "more:1"), ("SET", "more:1", 1), ("DEL", "more:1")):
        for name in ("writer", "all", "reader"):
            both3.run(name, *command)
            both3.told("reader")
            both3.told("all")


def test_one_is_not_told_of_ones_own(both3):
    both3.run("reader", "CLIENT", "TRACKING", "ON", "NOLOOP")
    for command in (("SET", "a", 1), ("MULTI",), ("SET", "a", 2), ("GET", "b"), ("EXEC",), ("EVAL", "redis.call('SET', 'b', 1)", 0), ("DEL", "missing")):
        both3.run("reader", "GET", "a")
        both3.run("reader", *command)
        assert both3.told("reader") == []
    for key in ("a", "b"):
        both3.run("reader", "GET", key)
        both3.run("writer", "SET", key, 1)
    assert len(both3.told("reader")) == 2


def test_transactions_and_scripts_tell_of_what_they_change_and_track_what_they_read(both3):
    both3.run("reader", "CLIENT", "TRACKING", "ON")
    for read in (
        [("MULTI",), ("GET", "a"), ("INCR", "z"), ("MGET", "b", "c"), ("EXEC",)],
        [("EVAL", "return {redis.call('GET', KEYS[1]), redis.call('MGET', KEYS[2], KEYS[3])}", 3, "a", "b", "c")],
    ):
        for write in (
            [("MULTI",), ("SET", "a", 1), ("SET", "b", 1), ("SET", "c", 1), ("EXEC",)],
            [("EVAL", "for _, key in ipairs(KEYS) do redis.call('SET', key, 1) end", 3, "a", "b", "c")],
        ):
            for command in read:
                both3.run("reader", *command)
            for command in write:
                both3.run("writer", *command)
            assert len(both3.told("reader")) == 3


def test_of_scripts_that_only_read_the_reads_count(tokaido_server):
    """As in Redis since 7.2; before, the declared keys counted."""
    reader, writer = (Tracked(tokaido_server.port, 3) for _ in range(2))
    reader.run("FLUSHALL")
    reader.run("CLIENT", "TRACKING", "ON")
    script = "return {redis.call('GET', 'a'), redis.call('MGET', 'b', KEYS[1])}"
    library = f"#!lua name=lib\nredis.register_function{{function_name='f', callback=function(KEYS) {script} end, flags={{'no-writes'}}}}"
    assert reader.run("FUNCTION", "LOAD", "REPLACE", library) == ("$", b"lib")
    for command in (("EVAL_RO", script, 2, "c", "named"), ("FCALL_RO", "f", 2, "c", "named")):
        assert reader.run(*command)[0] == "*"
        for key in ("a", "b", "c", "named"):
            writer.run("SET", key, 1)
        assert reader.keys_told() == [[b"a"], [b"b"], [b"c"]]
    reader.run("FUNCTION", "DELETE", "lib")
    for client in (reader, writer):
        client.wire.close()


def test_another_connection_is_told_in_its_own_version(redis_port, tokaido_server):
    both = Both((redis_port, tokaido_server.port), 2)
    for side, port in zip(both.sides, both.ports, strict=True):
        side["new"] = Tracked(port, 3)
    for target in ("old", "new"):
        both.run(target, "PING")
        both.run("reader", "CLIENT", "TRACKING", "ON", "REDIRECT", id_of(target))
        both.run("reader", "GET", "a")
        both.run("writer", "SET", "a", 1)
        # In version 2, only a connection that has subscribed can be notified.
        assert len(both.told(target)) == (1 if target == "new" else 0)
        if target == "old":
            both.run(target, "SUBSCRIBE", "__redis__:invalidate")
        both.run("reader", "GET", "a")
        both.run("writer", "SET", "a", 2)
        both.run("writer", "FLUSHALL")
        if target == "new":
            assert len(both.told(target)) == 2
            continue
        redis, tokaido = ([client.wire.reply() for _ in range(2)] for client in both.clients(target))
        assert redis == tokaido and redis[1][1][2] == ("null",)
    both.close()


def test_who_has_named_one_that_goes_is_told_so(both3):
    both3.run("target", "PING")
    both3.run("reader", "CLIENT", "TRACKING", "ON", "REDIRECT", id_of("target"))
    for side in both3.sides:
        identity = side["target"].run("CLIENT", "ID")[1]
        side["target"].wire.close()
        writer = side["main"]
        wait_until(lambda writer=writer, identity=identity: f"id={identity} ".encode() not in writer.run("CLIENT", "LIST")[1], "the end of the connection")
    both3.run("reader", "GET", "a")
    both3.run("writer", "SET", "a", 1)
    for client in both3.clients("reader"):
        (_, (name, number)), = client.told()
        assert name == ("$", b"tracking-redir-broken") and number[0] == ":"
        assert b"flags=tR" in client.run("CLIENT", "INFO")[1]
        assert ("$", b"broken_redirect") in client.run("CLIENT", "TRACKINGINFO")[1][0][1][1]
    both3.run("reader", "CLIENT", "TRACKING", "ON")
    both3.run("reader", "CLIENT", "TRACKINGINFO")


def test_what_expires_is_told_of(both3):
    both3.run("reader", "CLIENT", "TRACKING", "ON")
    both3.run("writer", "SET", "a", 1, "PX", 100)
    both3.run("reader", "GET", "a")
    for client in both3.clients("reader"):
        wait_until(lambda client=client: client.keys_told() == [[b"a"]], "the expiry")


def test_the_table_has_a_limit_and_tells_of_what_it_forgets(tokaido_server):
    reader, other = Tracked(tokaido_server.port, 3), Tracked(tokaido_server.port, 3)
    reader.run("FLUSHALL")
    before = reader.run("CONFIG", "GET", "tracking-table-max-keys")
    try:
        assert reader.run("CONFIG", "SET", "tracking-table-max-keys", 10) == ("+", "OK")
        for client in (reader, other):
            client.run("CLIENT", "TRACKING", "ON")
        for number in range(10):
            reader.run("GET", f"k{number}")
        other.run("GET", "k0")
        assert reader.told() == [] == other.told()
        reader.run("GET", "more")
        assert reader.keys_told() == [[b"k0"]] == other.keys_told()
        information = reader.run("INFO")[1]
        for line in (b"tracking_total_keys:10", b"tracking_total_items:10", b"tracking_total_prefixes:0"):
            assert line in information
        assert b" redir=0 " in reader.run("CLIENT", "INFO")[1] and b"flags=t " in reader.run("CLIENT", "INFO")[1]
        reader.wire.close()
        wait_until(lambda: b"tracking_clients:1\r" in other.run("INFO")[1], "the end of the reader")
        assert other.run("CONFIG", "SET", "tracking-table-max-keys", 0)[0] == "-"
    finally:
        other.run("CONFIG", "SET", "tracking-table-max-keys", before[1][0][1][1].decode())
        other.run("CLIENT", "TRACKING", "OFF")
    assert b"tracking_total_keys:0" in other.run("INFO")[1]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server with procedures and a cache."""
    directory = tmp_path_factory.mktemp("tracking")
    (directory / "t.toml").write_text('[databases.fast]\nengine = "cache"\nbytes = "1 MiB"\n')
    options = ["--config", directory / "t.toml", "--sync", "os", "--workers", "2"]
    with Server(directory / "data", directory / "log", procedures=PROCEDURES, options=map(str, options)) as server:
        yield server


def test_changes_by_http_and_by_procedures_are_told_of(server):
    reader = Tracked(server.port, 3)
    reader.run("CLIENT", "TRACKING", "ON")
    reader.run("GET", "a")
    server.http("PUT", "/v1/db/main/a", b"1")
    assert reader.keys_told() == [[b"a"]]
    reader.run("GET", "a")
    server.http("DELETE", "/v1/db/main/a")
    assert reader.keys_told() == [[b"a"]]
    reader.wire.close()


def test_keys_of_a_cache_are_not_kept(server):
    reader = Tracked(server.port, 3)
    reader.run("SELECT", "fast")
    reader.run("CLIENT", "TRACKING", "ON")
    for _ in range(2):
        reader.run("GET", "a")
        assert reader.keys_told() == [[b"a"]]
    reader.wire.close()


def test_a_client_library_keeps_what_it_has_read(server, monkeypatch):
    # The library asks for a version number that includes nothing else that it needs.
    monkeypatch.setattr(CacheProxyConnection, "MIN_ALLOWED_VERSION", "7.2.0")
    cached = server.redis(protocol=3, cache_config=CacheConfig())
    writer = server.redis()
    writer.set("k", "one")
    writer.hset("h", "f", "1")
    assert [cached.get("k"), cached.hget("h", "f")] == [b"one", b"1"]
    cache = cached.get_cache()
    assert cache.size == 2
    assert [cached.get("k"), cached.hget("h", "f")] == [b"one", b"1"]
    writer.set("k", "two")
    wait_until(lambda: cached.get("k") == b"two", "the invalidation")
    assert cache.size == 2
    writer.flushall()
    wait_until(lambda: cached.hget("h", "f") is None, "the invalidation of everything")
    cached.close()
