"""Keyspace events: the same as in Redis, command by command."""

import pytest
from support import PROCEDURES

from .wire import Wire, encode

ALL = "KEA"


class Listener:
    """Runs commands on a server, and returns the events that each of them caused."""

    def __init__(self, port, flags=ALL):
        self.main, self.listener, self.other = (Wire(port, 2) for _ in range(3))
        assert self.main.run("CONFIG", "SET", "notify-keyspace-events", flags) == ("+", "OK")
        self.listener.run("PSUBSCRIBE", "__key*__:*")
        self.listener.run("SUBSCRIBE", "done")

    def events(self, *command):
        self.main.run(*command)
        self.other.run("PUBLISH", "done", "")
        events = []
        while (message := self.listener.reply()[1])[0][1] == b"pmessage":
            events.append(tuple(text for _, text in message[2:]))
        return sorted(events)  # those of one command may have another order than in Redis

    def close(self):
        self.main.run("CONFIG", "SET", "notify-keyspace-events", "")
        for wire in (self.main, self.listener, self.other):
            wire.close()


@pytest.fixture
def both(redis_port, tokaido_server):
    listeners = []

    def listen(flags=ALL):
        for port in (redis_port, tokaido_server.port):
            listeners.append(Listener(port, flags))
            listeners[-1].main.run("FLUSHALL")
        return check

    def check(*commands):
        for command in commands:
            expected, ours = (listener.events(*command) for listener in listeners)
            assert expected == ours, f"{command}: Redis {expected}, Tokaido {ours}"

    yield listen
    for listener in listeners:
        listener.close()


def test_strings_and_keys(both):
    both()(
        ("SET", "a", "1"), ("SET", "a", "2", "XX"), ("SET", "a", "2", "NX"), ("SET", "a", "1", "EX", "100"), ("SETNX", "a", "1"),
        ("SETNX", "b", "1"), ("SETEX", "a", "100", "1"), ("PSETEX", "a", "100000", "1"), ("GETSET", "a", "5"), ("MSET", "b", "1", "a", "2"),
        ("MSETNX", "b", "1", "c", "2"), ("MSETNX", "d", "1", "c", "2"), ("APPEND", "a", "x"), ("SETRANGE", "a", "1", "y"), ("INCR", "b"),
        ("DECR", "b"), ("INCRBY", "b", "5"), ("DECRBY", "b", "5"), ("INCRBYFLOAT", "b", "1.5"), ("GETDEL", "b"), ("GETDEL", "b"),
        ("GETEX", "a"), ("GETEX", "a", "EX", "100"), ("GETEX", "a", "PERSIST"), ("EXPIRE", "a", "100"), ("PEXPIRE", "a", "100000"), ("PERSIST", "a"), ("PERSIST", "a"),
        ("EXPIREAT", "a", "1"), ("EXPIRE", "a", "100"), ("SET", "a", "1"), ("RENAME", "a", "b"), ("RENAMENX", "b", "a"),
        ("RENAMENX", "a", "c"), ("COPY", "a", "b"), ("COPY", "a", "b"), ("COPY", "a", "b", "REPLACE"), ("COPY", "a", "z", "DB", "1"),
        ("MOVE", "a", "1"), ("MOVE", "a", "1"), ("GET", "a"), ("EXISTS", "a"), ("SELECT", "1"), ("DEL", "a", "z", "none"), ("SET", "x", "1"),
        ("UNLINK", "x"), ("SELECT", "0"), ("TOUCH", "b"), ("INCR", "word"), ("SET", "word", "x"), ("INCR", "word"), ("LPUSH", "word", "x"),
        ("SETBIT", "bits", "1", "1"), ("BITFIELD", "bits", "SET", "u8", "0", "5"), ("BITFIELD", "bits", "GET", "u8", "0"),
        ("BITOP", "NOT", "other", "bits"), ("BITOP", "AND", "other", "none"), ("PFADD", "hll", "a"), ("PFADD", "hll", "a"),
    )


def test_collections(both):
    both()(
        ("HSET", "h", "f", "1", "g", "2"), ("HSETNX", "h", "f", "1"), ("HSETNX", "h", "i", "1"), ("HMSET", "h", "f", "1"),
        ("HINCRBY", "h", "f", "1"), ("HINCRBYFLOAT", "h", "f", "1"), ("HDEL", "h", "none"), ("HDEL", "h", "f"), ("HDEL", "h", "g", "i"),
        ("LPUSH", "l", "1", "2"), ("RPUSH", "l", "3"), ("LPUSHX", "l", "0"), ("RPUSHX", "l", "4"), ("LPUSHX", "none", "0"), ("LPOP", "l"),
        ("RPOP", "l"), ("LINSERT", "l", "BEFORE", "1", "x"), ("LINSERT", "l", "BEFORE", "none", "x"), ("LSET", "l", "0", "y"),
        ("LREM", "l", "0", "y"), ("LREM", "l", "0", "none"), ("LMOVE", "l", "m", "LEFT", "RIGHT"), ("LMOVE", "l", "m", "RIGHT", "LEFT"),
        ("RPUSH", "l", "a", "b", "c"), ("LTRIM", "l", "1", "-1"), ("LMPOP", "2", "none", "l", "RIGHT", "COUNT", "1"), ("RPOPLPUSH", "l", "m"),
        ("BLPOP", "m", "0"), ("BRPOP", "m", "0"), ("BLMPOP", "0", "1", "m", "LEFT"), ("BLPOP", "m", "0.01"),
        ("SADD", "s", "a", "b", "c"), ("SADD", "s", "a"), ("SREM", "s", "a"), ("SREM", "s", "none"), ("SMOVE", "s", "t", "b"),
        ("SMOVE", "s", "t", "none"), ("SMOVE", "s", "t", "c"), ("SPOP", "t"), ("SPOP", "t"), ("SADD", "s", "a", "b"), ("SUNIONSTORE", "u", "s", "t"),
        ("SDIFFSTORE", "d", "s", "t"), ("SINTERSTORE", "u", "s", "none"), ("SINTERSTORE", "u", "s", "none"),
        ("ZADD", "z", "1", "a", "2", "b", "3", "c", "4", "d", "5", "e"), ("ZADD", "z", "NX", "1", "a"), ("ZADD", "z", "INCR", "1", "a"),
        ("ZINCRBY", "z", "1", "a"), ("ZREM", "z", "none"), ("ZREM", "z", "a"), ("ZPOPMIN", "z"), ("ZPOPMAX", "z"),
        ("ZUNIONSTORE", "y", "2", "z", "none"), ("ZINTERSTORE", "y", "2", "z", "none"), ("ZDIFFSTORE", "y", "2", "z", "none"),
        ("ZRANGESTORE", "x", "z", "0", "-1"), ("ZMPOP", "1", "x", "MAX"), ("BZPOPMIN", "x", "0"), ("ZREMRANGEBYSCORE", "z", "0", "3"),
        ("ZREMRANGEBYRANK", "z", "0", "-1"), ("ZADD", "z", "0", "a", "0", "b"), ("ZREMRANGEBYLEX", "z", "-", "+"), ("EXISTS", "z"),
    )


def test_streams(both):
    both()(
        ("XADD", "s", "1-1", "a", "1"), ("XADD", "s", "2-1", "a", "1"), ("XADD", "s", "NOMKSTREAM", "3-1", "a", "1"), ("XADD", "none", "NOMKSTREAM", "3-1", "a", "1"),
        ("XADD", "s", "MAXLEN", "3", "4-1", "a", "1"), ("XADD", "s", "MAXLEN", "9", "5-1", "a", "1"), ("XADD", "s", "5-1", "a", "1"), ("XDEL", "s", "9-9"), ("XDEL", "s", "5-1", "4-1"),
        ("XTRIM", "s", "MAXLEN", "1"), ("XTRIM", "s", "MAXLEN", "1"), ("XSETID", "s", "9-9"), ("XGROUP", "CREATE", "s", "g", "0"), ("XGROUP", "CREATE", "s", "g", "0"),
        ("XGROUP", "CREATE", "t", "g", "0", "MKSTREAM"), ("XGROUP", "SETID", "s", "g", "0"), ("XGROUP", "CREATECONSUMER", "s", "g", "a"), ("XGROUP", "CREATECONSUMER", "s", "g", "a"),
        ("XREADGROUP", "GROUP", "g", "a", "STREAMS", "s", ">"), ("XREADGROUP", "GROUP", "g", "b", "STREAMS", "s", ">"), ("XADD", "s", "10-1", "a", "1"), ("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">"),
        ("XREADGROUP", "GROUP", "g", "d", "STREAMS", "s", "0"), ("XACK", "s", "g", "10-1"), ("XCLAIM", "s", "g", "e", "0", "3-1"), ("XCLAIM", "s", "g", "f", "0", "3-3"), ("XAUTOCLAIM", "s", "g", "h", "0", "0"),
        ("XPENDING", "s", "g"), ("XREAD", "STREAMS", "s", "0"), ("XGROUP", "DELCONSUMER", "s", "g", "h"), ("XGROUP", "DELCONSUMER", "s", "g", "h"), ("XGROUP", "DESTROY", "s", "g"), ("XGROUP", "DESTROY", "s", "g"),
        ("XTRIM", "s", "MAXLEN", "0"), ("RENAME", "s", "u"), ("COPY", "u", "v"), ("MULTI",), ("XADD", "u", "11-1", "a", "1"), ("XADD", "u", "12-1", "a", "1"), ("XDEL", "u", "11-1"), ("EXEC",), ("DEL", "u"),
    )


def test_transactions_tell_of_each_command(both):
    check = both()
    check(("MSET", "a", "1", "b", "0"), ("MULTI",), ("SET", "b", "1"), ("RPUSH", "l", "x"), ("INCR", "a"), ("RENAME", "b", "c"), ("EXEC",))
    check(("MULTI",), ("DEL", "none"), ("SADD", "s", "m"), ("DISCARD",), ("EXISTS", "s"))


@pytest.mark.parametrize("flags", ["Kg$", "Elsz", "KEx", "K", "A", "Kh", "KEl$", "Et"])
def test_only_what_is_asked_for(both, flags):
    both(flags)(
        ("SET", "a", "1", "EX", "100"), ("DEL", "a"), ("RPUSH", "l", "x"), ("LPOP", "l"), ("SADD", "s", "x"), ("ZADD", "z", "1", "m"),
        ("HSET", "h", "f", "1"), ("INCR", "n"), ("RENAME", "n", "m"), ("XADD", "x", "*", "f", "1"),
    )


def test_the_setting(redis_port, tokaido_server):
    name = "notify-keyspace-events"
    wires = [Wire(redis_port, 2), Wire(tokaido_server.port, 2)]
    for flags in ("KEA", "AKE", "Ex", "xE", "g$lshzxet", "g$lshzxetdKE", "Km", "nK", "q", "KEAq", "", "lK", "zhsl$gE"):
        for command in (["SET", name, flags], ["GET", name], ["SET", name, "K", name], ["SET", "nothing", "x"], ["SET", name]):
            expected, ours = (wire.run("CONFIG", *command) for wire in wires)
            assert expected == ours, (flags, command)
    for wire in wires:
        wire.run("CONFIG", "SET", name, "")


def test_what_is_rolled_back_has_no_events(tokaido_server):
    listener = Listener(tokaido_server.port)
    listener.main.run_all([("FLUSHALL",), ("SET", "word", "x"), ("MULTI",), ("SET", "a", "1"), ("INCR", "word")])
    listener.events("EXEC")
    assert listener.events("APPEND", "a", "x") == [(b"__keyevent@0__:append", b"a"), (b"__keyspace@0__:a", b"append")]
    listener.close()


def test_expired_records_have_an_event(tokaido_server):
    listener = Listener(tokaido_server.port, "Ex")
    listener.main.run_all([("SET", "a", "1", "PX", "1"), ("RPUSH", "l", "1"), ("PEXPIRE", "l", "1")])
    expired = {listener.listener.reply()[1][3][1] for _ in range(2)}
    assert expired == {b"a", b"l"}
    listener.close()


def test_whoever_writes_is_told_of(own_server):
    with own_server(procedures=PROCEDURES) as server:
        listener = Listener(server.port, "EA")
        assert listener.events("news.tell", "x", "v") == [(b"__keyevent@0__:set", b"x")]
        assert listener.events("queue.push", "q", "v") == [(b"__keyevent@0__:rpush", b"q")]
        assert listener.events("queue.pop", "q") == [(b"__keyevent@0__:del", b"q"), (b"__keyevent@0__:lpop", b"q")]
        for method, event in (("PUT", b"set"), ("DELETE", b"del")):
            assert server.http(method, "/v1/db/companies/k", b"v")[0] < 300
            assert listener.events("PING") == [(b"__keyevent@companies__:" + event, b"k")]
        assert server.http("POST", "/v1/call/queue.push", b'["q", "v"]')[0] == 200
        assert listener.events("PING") == [(b"__keyevent@0__:rpush", b"q")]
        listener.main.run("FLUSHALL")
        listener.main.socket.sendall(encode(("BRPOP", "q", "0")))
        server.redis().rpush("q", "v")
        listener.main.reply()
        assert [text for _, text in listener.events("PING")] == [b"q", b"q", b"q"]
        listener.close()
