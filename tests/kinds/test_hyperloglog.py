"""HyperLogLogs: the same replies as from Redis, and the same bytes under the key."""

import random

import pytest


def same_bytes(pair, *keys):
    """The whole values, before any count is cached: Redis writes it to the value when it counts."""
    pair.check_all([("GET", key) for key in keys])


@pytest.mark.parametrize("seed", range(3))
def test_the_bytes_are_those_of_redis(pair, seed):
    """From no elements through the sparse form to the dense one."""
    rng = random.Random(seed)
    steps = [1, 1, 1, 2, 5, 10, 50, 100, 300, 500, 500, 500, 1000, 5000]
    for step in steps:
        elements = [f"{seed}:{rng.randint(0, 20_000)}" + "x" * rng.randint(0, 9) for _ in range(step)]
        pair.check_all([("PFADD", "k", *elements), ("GET", "k"), ("PFADD", "k", elements[0]), ("STRLEN", "k")])
    same_bytes(pair, "k")
    pair.check_all([("PFCOUNT", "k"), ("PFCOUNT", "k", "missing"), ("PFCOUNT", "k"), ("PFADD", "k"), ("PFADD", "k", "another")])


def test_neighbours_of_the_sparse_form_are_joined(pair):
    """One element per command, to meet every way of splitting and joining."""
    for start in range(0, 1500, 250):
        pair.check_all([step for i in range(start, start + 250) for step in (("PFADD", "k", i), ("GET", "k"))])


@pytest.mark.parametrize("counts", [(10, 20), (0, 300), (900, 700), (3000, 10), (10, 20_000), (5000, 5000)])
def test_merges(pair, counts):
    for key, count in zip("ab", counts, strict=True):
        pair.check_all([("PFADD", key, *(f"{key}{i % 4000}{i}" for i in range(count)))])
    pair.check_all([("PFMERGE", "c", "a", "b"), ("GET", "c"), ("PFMERGE", "a", "b", "missing"), ("GET", "a"), ("PFMERGE", "d")])
    same_bytes(pair, "a", "b", "c", "d")
    pair.check_all([("PFCOUNT", "a", "b", "missing"), ("PFCOUNT", "a"), ("PFCOUNT", "c"), ("PFCOUNT", "d"), ("PFCOUNT", "missing")])
    pair.check_all([("EXPIRE", "a", 1000), ("PFADD", "a", "new", "newer"), ("PFMERGE", "a", "c"), ("TTL", "a"), ("PFCOUNT", "a")])


def test_a_count_that_redis_has_noted_is_given(pair):
    pair.check_all([("PFADD", "k", *range(1000)), ("PFCOUNT", "k")])
    _, noted = pair.redis.run("GET", "k")
    odd = noted[:8] + (123456).to_bytes(8, "little") + noted[16:]
    for value in (noted, odd):
        pair.check_all([("SET", "k", value), ("PFCOUNT", "k"), ("GET", "k"), ("PFADD", "k", 1, 2, 3), ("GET", "k"), ("PFCOUNT", "k", "k")])
        pair.check_all([("PFADD", "k", "new", "newer", "newest"), ("GET", "k")])


def test_the_dense_form(pair):
    head = b"HYLL\x00\x00\x00\x00" + b"\x00" * 7 + b"\x80"
    for register in (b"\x00\x00\x00", b"\x41\x10\x04", b"\x2c\xcb\xb2"):
        pair.check_all([("SET", "k", head + register * 4096), ("PFADD", "k", *range(100)), ("GET", "k")])
        pair.check_all([("PFADD", "s", 1, 2), ("PFMERGE", "s", "k"), ("GET", "s"), ("PFCOUNT", "k"), ("DEL", "s")])


def test_what_is_no_hyperloglog(pair):
    head = b"HYLL\x01\x00\x00\x00" + b"\x00" * 7 + b"\x80"
    values = [b"", b"text", b"HYLL", head[:15], head, head + b"\x7f\xff\x00", head + b"\x7f\xfe",
              b"HYLL\x00" + head[5:] + b"\x00" * 12287, b"HYLL\x02" + head[5:] + b"\x7f\xff", b"hyll" + head[4:] + b"\x7f\xff",
              head + b"\x3f" * 255, head + b"\x3f" * 256, head + b"\x3f" * 257, "1"]
    pair.check_all([("RPUSH", "list", "item"), ("PFADD", "good", "a", "b")])
    for value in values:
        pair.check_all([("SET", "k", value), ("PFCOUNT", "k"), ("PFCOUNT", "good", "k"), ("PFMERGE", "d", "k"), ("EXISTS", "d")])
        pair.check_all([("PFMERGE", "k", "good"), ("SET", "k", value), ("PFMERGE", "good", "k"), ("DEL", "d")])
    for name in ("PFADD", "PFCOUNT", "PFMERGE"):
        pair.check_all([(name,), (name, "list"), (name, "list", "a"), (name, "good", "list"), (name, "missing", "list")])
    pair.check_all([("LRANGE", "list", 0, -1), ("PFCOUNT", "good"), ("EXISTS", "missing")])
