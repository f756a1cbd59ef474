"""What all types of values have in common, small and large: their keys."""

import itertools
import time

import pytest

COUNTS = {"small": 3, "large": 300}
MAKING = {
    "string": lambda key, count: ("SET", key, "x" * count),
    "hash": lambda key, count: ("HSET", key, *(text for i in range(count) for text in (f"f{i}", i))),
    "list": lambda key, count: ("RPUSH", key, *range(count)),
    "set": lambda key, count: ("SADD", key, *(f"m{i}" for i in range(count))),
    "zset": lambda key, count: ("ZADD", key, *(text for i in range(count) for text in (i, f"m{i}"))),
    "stream": lambda key, count: ("XADD", key, "5-1", *(text for i in range(count) for text in (f"f{i}", i))),
}
READING = {
    "string": lambda key: ("GET", key),
    "hash": lambda key: ("HGETALL", key),
    "list": lambda key: ("LRANGE", key, 0, -1),
    "set": lambda key: ("SMEMBERS", key),
    "zset": lambda key: ("ZRANGE", key, 0, -1, "WITHSCORES"),
    "stream": lambda key: ("XRANGE", key, "-", "+"),
}
CHANGING = {
    "string": lambda key: ("APPEND", key, "more"),
    "hash": lambda key: ("HDEL", key, "f1"),
    "list": lambda key: ("LPOP", key),
    "set": lambda key: ("SREM", key, "m1"),
    "zset": lambda key: ("ZREM", key, "m1"),
    "stream": lambda key: ("XTRIM", key, "MAXLEN", 0),
}
NAMES = [f"{kind}-{size}" for kind in MAKING for size in COUNTS]


def make_all():
    return [make(f"{kind}-{size}", count) for kind, make in MAKING.items() for size, count in COUNTS.items()]


def read(name):
    return READING[name.split("-")[0]](name)


def test_types_and_scans(pair):
    pair.check_all(make_all())
    pair.check_all([("TYPE", name) for name in [*NAMES, "missing"]] + [("DBSIZE",), ("EXISTS", *NAMES)])
    for kind in [*MAKING, "nothing"]:
        found = [scan_of_keys(wire, kind) for wire in (pair.redis, pair.tokaido)]
        assert found[0] == found[1], kind


def scan_of_keys(wire, kind):
    found, cursor = set(), b"0"
    while True:
        (_, cursor), (_, keys) = wire.run("SCAN", cursor, "COUNT", "3", "TYPE", kind)[1]
        found |= {key for _, key in keys}
        if cursor == b"0":
            return found


def test_copies_are_apart(pair):
    pair.check_all(make_all())
    for name in NAMES:
        change = CHANGING[name.split("-")[0]]
        copy = READING[name.split("-")[0]]("copy")
        pair.check_all([
            ("EXPIRE", name, "1000"), ("COPY", name, "copy"), ("COPY", name, "copy"), ("TTL", "copy"), change(name), copy,
            ("COPY", name, "copy", "REPLACE"), change("copy"), read(name), copy, ("DEL", "copy"),
        ])


def test_keys_are_renamed_and_moved(pair):
    pair.check_all(make_all())
    for name, other in itertools.pairwise(NAMES):
        pair.check_all([
            ("RENAME", name, "renamed"), ("TYPE", name), ("TYPE", "renamed"), ("RENAMENX", "renamed", other), ("RENAME", "renamed", name),
            read(name), ("MOVE", name, 1), ("SELECT", 1), read(name), ("TYPE", name), ("SELECT", 0), ("EXISTS", name),
        ])
    pair.check_all([("FLUSHALL",), ("SELECT", 1), ("DBSIZE",), ("SELECT", 0), ("DBSIZE",)])


def test_keys_that_expire_can_be_made_anew(pair):
    pair.check_all(make_all())
    pair.check_all([("PEXPIRE", name, 1) for name in NAMES])
    time.sleep(0.01)
    pair.check_all([("EXISTS", *NAMES)] + [read(name) for name in NAMES])
    turned = [make(name, 3) for name, make in zip(NAMES, reversed([*MAKING.values(), *MAKING.values()]), strict=True)]
    pair.check_all(turned + [("TYPE", name) for name in NAMES] + [("TTL", name) for name in NAMES])


@pytest.mark.parametrize("kind", MAKING)
def test_every_kind_refuses_the_commands_of_the_others(pair, kind):
    pair.check_all(make_all())
    for size, other in itertools.product(COUNTS, MAKING):
        name = f"{kind}-{size}"
        pair.check_all([
            READING[other](name), CHANGING[other](name), ("SET", name, "v"), READING[other](name), ("DEL", name),
            MAKING[kind](name, COUNTS[size]), ("TYPE", name),
        ])


def test_databases_are_swapped(pair):
    pair.check_all([*make_all(), ("EXPIRE", "hash-large", 1000), ("SELECT", 1), ("SET", "k", "one"), ("SET", "x", "v", "PX", 50), ("SELECT", 0)])
    pair.check_all([
        ("SWAPDB", 0, 99), ("SWAPDB", -1, 0), ("SWAPDB", 0), ("SWAPDB", 0, 0), ("DBSIZE",), ("SWAPDB", 0, 1),
        ("GET", "k"), *[read(name) for name in NAMES], ("SELECT", 1), ("GET", "k"), *[read(name) for name in NAMES], ("TTL", "hash-large"),
        ("SELECT", 0), ("SWAPDB", 1, 5), ("SELECT", 5), *[read(name) for name in NAMES], ("SELECT", 1), ("DBSIZE",), ("SELECT", 5),
    ])
    pair.check_all([CHANGING[name.split("-")[0]](name) for name in NAMES] + [read(name) for name in NAMES])
    time.sleep(0.06)
    pair.check_all([("SELECT", 0), ("EXISTS", "x"), ("MULTI",), ("SET", "a", "b"), ("SWAPDB", 0, 5), ("GET", "a"), ("EXEC",), ("SELECT", 5), ("GET", "a")])


def test_what_will_expire_is_counted(pair):
    pair.check_all([("SET", "a", "v", "EX", 1000), ("SET", "b", "v"), ("SET", "c", "v", "PX", 100000), ("RPUSH", "l", "x")])
    assert expires(pair) == [b"2", b"2"]
    pair.check_all([("EXPIRE", "l", 1000), ("PERSIST", "a"), ("SET", "c", "w", "KEEPTTL"), ("EXPIRE", "c", 2000), ("SET", "d", "v", "EX", 5)])
    assert expires(pair) == [b"3", b"3"]
    pair.check_all([("DEL", "d"), ("SET", "c", "v"), ("SELECT", 1), ("SET", "e", "v", "EX", 5), ("SELECT", 0)])
    assert expires(pair) == [b"1", b"1"]


def expires(pair):
    """What both report about database 0."""
    texts = [wire.run("INFO", "keyspace")[1] for wire in (pair.redis, pair.tokaido)]
    return [text.split(b"db0:")[1].split(b"expires=")[1].split(b",")[0] for text in texts]
