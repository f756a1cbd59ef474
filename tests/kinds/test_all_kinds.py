"""What all kinds of values have in common, small and large ones: their keys."""

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
}
READING = {
    "string": lambda key: ("GET", key),
    "hash": lambda key: ("HGETALL", key),
    "list": lambda key: ("LRANGE", key, 0, -1),
    "set": lambda key: ("SMEMBERS", key),
    "zset": lambda key: ("ZRANGE", key, 0, -1, "WITHSCORES"),
}
CHANGING = {
    "string": lambda key: ("APPEND", key, "more"),
    "hash": lambda key: ("HDEL", key, "f1"),
    "list": lambda key: ("LPOP", key),
    "set": lambda key: ("SREM", key, "m1"),
    "zset": lambda key: ("ZREM", key, "m1"),
}
NAMES = [f"{kind}-{size}" for kind in MAKING for size in COUNTS]


def make_all():
    return [make(f"{kind}-{size}", count) for kind, make in MAKING.items() for size, count in COUNTS.items()]


def read(name):
    return READING[name.split("-")[0]](name)


def test_types_and_scans(pair):
    pair.check_all(make_all())
    pair.check_all([("TYPE", name) for name in [*NAMES, "missing"]] + [("DBSIZE",), ("EXISTS", *NAMES)])
    for kind in [*MAKING, "stream", "nothing"]:
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
