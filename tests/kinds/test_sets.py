"""Sets: the same replies as from Redis."""

import collections

import pytest

from .differential import KEYS, generated

MEMBERS = [str(i) for i in range(8)] + [f"m{i}" for i in range(8)] + ["", "a member of more bytes"]


def members(rng, most=5):
    return [rng.choice(MEMBERS) for _ in range(rng.randint(1, most))]


def keys(rng):
    return [rng.choice([*KEYS, "missing"]) for _ in range(rng.randint(1, 3))]


def command(rng):
    key, other, member = rng.choice(KEYS), rng.choice(KEYS), rng.choice(MEMBERS)
    some = keys(rng)
    return rng.choice([
        ("SADD", key, *members(rng)), ("SADD", key, *members(rng)), ("SADD", key, *members(rng, 9)), ("SREM", key, member),
        ("SREM", key, *members(rng)), ("SCARD", key), ("SISMEMBER", key, member), ("SMISMEMBER", key, *members(rng)),
        ("SMEMBERS", key), ("SMOVE", key, other, member), ("SINTER", *some), ("SUNION", *some), ("SDIFF", *some),
        ("SINTERSTORE", key, *some), ("SUNIONSTORE", key, *some), ("SDIFFSTORE", key, *some),
        ("SINTERCARD", len(some), *some), ("SINTERCARD", len(some), *some, "LIMIT", rng.randint(0, 3)),
        ("smembers", key),
    ])


@pytest.mark.parametrize("seed", range(3))
def test_generated_commands(pair, seed):
    pair.check_all(generated(seed, 1500, command))
    pair.check_state()
    sets = [key for key in KEYS if pair.redis.run("TYPE", key) == ("+", "set")]
    pair.check_scans("SSCAN", sets, "COUNT", "2")
    pair.check_scans("SSCAN", sets, "MATCH", "m*")


@pytest.mark.parametrize("name", [
    "SADD", "SREM", "SCARD", "SISMEMBER", "SMISMEMBER", "SMEMBERS", "SMOVE", "SPOP", "SRANDMEMBER", "SINTER", "SUNION",
    "SDIFF", "SINTERSTORE", "SUNIONSTORE", "SDIFFSTORE", "SINTERCARD", "SSCAN",
])
def test_wrong_arguments(pair, name):
    pair.check_all([("SET", "string", "v"), ("SADD", "set", "m")])
    for first in ("string", "set", "missing", "0", "1", "2", "-1", "x"):
        pair.check_all([(name, first, *rest) for rest in tails(name)])
        pair.check_all([("SET", "string", "v"), ("DEL", "set", "missing"), ("SADD", "set", "m")])
    pair.check_all([(name,), ("SMEMBERS", "set"), ("EXISTS", "missing")])


def tails(name):
    texts = ["0", "1", "-1", "m", "x", "string", "set", "missing", "LIMIT", str(2**63), str(-(2**63))]
    # Debian's Redis scans a small set in pages, later ones do not.
    texts = [text for text in texts if name != "SSCAN" or text not in ("1", "-1")]
    yield ()
    for first in texts:
        yield (first,)
        for second in texts:
            yield first, second
        for number in ("x", "-1", "0", "1"):
            yield first, "LIMIT", number
            yield first, "set", "LIMIT", number


def test_pops_and_draws_of_one_member(pair):
    for rest in [(), ("0",), ("1",), ("5",), ("-1",), ("x",), ("1", "2"), (str(-(2**63)),), (str(2**63 - 1),)]:
        for name in ("SPOP", "SRANDMEMBER"):
            pair.check_all([("SADD", "k", "m"), (name, "k", *rest), (name, "missing", *rest), ("SMEMBERS", "k")])


def test_stores_replace_whatever_is_there(pair):
    pair.check_all([("SADD", "a", *range(20)), ("SADD", "b", *range(10, 30)), ("HSET", "h", "f", "v"), ("SET", "s", "v")])
    for name in ("SINTERSTORE", "SUNIONSTORE", "SDIFFSTORE"):
        pair.check_all([(name, "s", "a", "b"), ("SMEMBERS", "s"), (name, "h", "a", "b"), ("TYPE", "h"), ("SCARD", "h")])
        pair.check_all([("EXPIRE", "s", "1000"), (name, "s", "a", "b"), ("TTL", "s"), (name, "a", "a", "b"), ("SMEMBERS", "a")])
        pair.check_all([("SET", "s", "v"), (name, "s", "missing"), ("EXISTS", "s"), (name, "s", "a", "missing", "b")])


@pytest.mark.parametrize("count", [7, 400], ids=["packed", "large"])
def test_members_drawn_by_lot(wire, count):
    every = {f"m{i}".encode() for i in range(count)}
    wire.run("SADD", "k", *every)
    for asked in (1, count // 2, count, count * 2):
        drawn = [text for _, text in wire.run("SRANDMEMBER", "k", asked)[1]]
        assert len(drawn) == min(asked, count) == len(set(drawn)) and set(drawn) <= every
    drawn = [text for _, text in wire.run("SRANDMEMBER", "k", -20 * count)[1]]
    met = collections.Counter(drawn)
    assert len(drawn) == 20 * count and set(drawn) <= every
    assert len(met) > 0.98 * count and max(met.values()) < 5 * 20


@pytest.mark.parametrize("count", [7, 400], ids=["packed", "large"])
def test_members_are_popped_until_none_is_left(wire, count):
    every = {f"m{i}".encode() for i in range(count)}
    wire.run("SADD", "k", *every)
    popped = [wire.run("SPOP", "k")[1]] + [text for _, text in wire.run("SPOP", "k", count // 3)[1]]
    assert len(popped) == len(set(popped)) == 1 + count // 3 and set(popped) <= every
    left = {text for _, text in wire.run("SMEMBERS", "k")[1]}
    assert left == every - set(popped) and wire.run("SCARD", "k") == (":", str(len(left)))
    assert {text for _, text in wire.run("SPOP", "k", count)[1]} == left
    assert wire.run("EXISTS", "k") == (":", "0")


def test_large_sets_together(pair):
    """More members than are looked up at a time."""
    pair.check_all([("SADD", "a", *range(0, 3000, 2)), ("SADD", "b", *range(0, 3000, 3)), ("SADD", "c", *range(2000))])
    pair.check_all([(name, "a", "b", "c") for name in ("SINTER", "SUNION", "SDIFF")])
    pair.check_all([("SINTERCARD", 3, "a", "b", "c"), ("SINTERCARD", 3, "a", "b", "c", "LIMIT", 100)])
    pair.check_all([("SINTERSTORE", "d", "a", "c"), ("SMEMBERS", "d"), ("SDIFFSTORE", "d", "d", "b"), ("SMEMBERS", "d")])


def test_keys_are_found_behind_their_number(wire):
    assert wire.run("COMMAND", "GETKEYS", "SINTERCARD", "2", "a", "b", "LIMIT", "1") == ("*", [("$", b"a"), ("$", b"b")])
    assert wire.run("COMMAND", "GETKEYS", "SINTERCARD", "3", "a", "b")[0] == "-"
