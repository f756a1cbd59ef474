"""Hashes: the same replies as from Redis."""

import collections

import pytest

from .differential import KEYS, generated, pairs

FIELDS = [f"f{i}" for i in range(14)] + ["", "a field of more bytes"]
COUNTERS = ["c1", "c2"]  # with numbers that fit both in 64 bits and in the 80 bits that Redis counts with
VALUES = ["0", "1", "-7", "9223372036854775807", "1.5", "text", "", "a value of more bytes", "0x10", " 1"]
INTEGERS = ["1", "-1", "9223372036854775807", "x", "1.5", ""]
FLOATS = ["0.5", "-0.25", "3", "1e2", "inf", "-inf", "nan", "x", "", "0x10", " 1", "1 "]


def fields(rng, most=4):
    return [rng.choice(FIELDS) for _ in range(rng.randint(1, most))]


def fields_and_values(rng):
    return [text for field in fields(rng, 6) for text in (field, rng.choice(VALUES))]


def command(rng):
    key, field, value = rng.choice(KEYS), rng.choice(FIELDS), rng.choice(VALUES)
    return rng.choice([
        ("HSET", key, *fields_and_values(rng)), ("HSET", key, *fields_and_values(rng)), ("HSET", key, field, value),
        ("HSET", key, field), ("HSETNX", key, field, value), ("HMSET", key, *fields_and_values(rng)),
        ("HMSET", key, field, value, field), ("HGET", key, field), ("HMGET", key, *fields(rng)), ("HGETALL", key),
        ("HKEYS", key), ("HVALS", key), ("HLEN", key), ("HEXISTS", key, field), ("HDEL", key, field),
        ("HDEL", key, *fields(rng)), ("HINCRBY", key, field, rng.choice(INTEGERS)), ("HSTRLEN", key, field),
        ("HINCRBYFLOAT", key, rng.choice(COUNTERS), rng.choice(FLOATS)), ("HINCRBY", key, field, "3"),
        ("HSET", key, rng.choice(COUNTERS), rng.choice(["7", "1.5", "-0.25", "1e3"])), ("hgetall", key),
    ])


@pytest.mark.parametrize("seed", range(3))
def test_generated_commands(pair, seed):
    pair.check_all(generated(seed, 1500, command))
    pair.check_state()
    hashes = [key for key in KEYS if pair.redis.run("TYPE", key) == ("+", "hash")]
    pair.check_scans("HSCAN", hashes, "COUNT", "2")
    pair.check_scans("HSCAN", hashes, "MATCH", "f1*")


def test_growth_and_forms(pair):
    """A hash is packed until it has too many fields, or a text is too long."""
    for i in range(12):
        pair.check_all([("HSET", "k1", f"f{i}", i), ("OBJECT", "ENCODING", "k1"), ("HLEN", "k1")])
    long = "x" * 17
    for command in [
        ("HSET", "k2", "f", long), ("HSET", "k3", long, "v"), ("HSET", "k4", "f", "x" * 16), ("HSETNX", "k4", "g", long)
    ]:
        pair.check_all([command, ("OBJECT", "ENCODING", command[1]), ("HGETALL", command[1])])
    pair.check_all([("HDEL", "k1", *(f"f{i}" for i in range(11))), ("HGETALL", "k1"), ("OBJECT", "ENCODING", "k1")])
    pair.check_all([("HDEL", "k1", "f11"), ("EXISTS", "k1"), ("HSET", "k1", "f", "v"), ("OBJECT", "ENCODING", "k1")])


@pytest.mark.parametrize("name", [
    "HSET", "HSETNX", "HMSET", "HGET", "HMGET", "HGETALL", "HKEYS", "HVALS", "HLEN", "HEXISTS", "HDEL",
    "HINCRBY", "HINCRBYFLOAT", "HSTRLEN", "HRANDFIELD", "HSCAN",
])
def test_wrong_arguments(pair, name):
    pair.check("SET", "string", "v")
    pair.check("HSET", "hash", "f", "v", "n", "5", "max", "9223372036854775807")
    texts = ["0", "1", "-1", "x", "WITHVALUES", "MATCH", "9223372036854775808", str(-(2**63))]
    if name == "HINCRBYFLOAT":
        texts = [text for text in texts if len(text) < 19]
    for key in ("string", "missing"):
        pair.check_all([(name, key, *rest) for rest in wrong_tails(texts)])
    if name not in ("HRANDFIELD", "HSCAN"):
        fields = ["f", "n"] if name == "HINCRBYFLOAT" else ["f", "n", "max"]
        pair.check_all([(name, "hash", *rest) for rest in wrong_tails([*fields, *texts])])
    pair.check_all([(name,), ("HGETALL", "hash"), ("HGETALL", "missing")])


def wrong_tails(texts):
    yield ()
    for first in texts:
        yield (first,)
        for second in texts:
            yield first, second
            yield first, second, "x"


def test_options_of_scans_and_draws(pair):
    pair.check("HSET", "k", "f", "v")
    for rest in [
        ("0",), ("0", "COUNT", "10"), ("0", "MATCH", "x*"), ("0", "match", "f*", "count", "1"), ("0", "COUNT", "0"),
        ("0", "COUNT", "x"), ("0", "COUNT"), ("0", "WHAT"), ("x",), ("-1",), ("0", "COUNT", "-1"), ("0", "MATCH"),
    ]:
        pair.check_all([("HSCAN", "k", *rest), ("HSCAN", "missing", *rest)])
    for rest in [
        (), ("0",), ("1",), ("2",), ("-3",), ("x",), ("1", "WITHVALUES"), ("-2", "withvalues"), ("1", "WITHSCORES"),
        ("1", "WITHVALUES", "x"), (str(-(2**63)),), (str(-(2**63 - 1)), "WITHVALUES"), (str(2**63 - 1),), ("0", "WITHVALUES"),
    ]:
        pair.check_all([("HRANDFIELD", "k", *rest), ("HRANDFIELD", "missing", *rest)])


@pytest.mark.parametrize("count", [6, 300], ids=["packed", "large"])
def test_fields_drawn_by_lot(wire, count):
    wire.run("HSET", "k", *(text for i in range(count) for text in (f"f{i}", i)))
    all_fields = {f"f{i}".encode() for i in range(count)}
    draws = [wire.run("HRANDFIELD", "k")[1] for _ in range(20)]
    assert set(draws) <= all_fields and len(set(draws)) > 1
    for asked in (1, count // 2, count, count * 2):
        drawn = [text for _, text in wire.run("HRANDFIELD", "k", asked)[1]]
        assert len(drawn) == min(asked, count) == len(set(drawn)) and set(drawn) <= all_fields
    drawn = [text for _, text in wire.run("HRANDFIELD", "k", -20 * count)[1]]
    assert len(drawn) == 20 * count and set(drawn) <= all_fields
    met = collections.Counter(drawn)
    assert len(met) > 0.98 * count and max(met.values()) < 5 * 20
    reply = wire.run("HRANDFIELD", "k", 3, "WITHVALUES")[1]
    with_values = pairs(reply) if reply[0][0] == "$" else [tuple(pair) for _, pair in reply]
    assert len(with_values) == 3 and all(field[1] == b"f" + value[1] for field, value in with_values)


def test_a_scan_without_values(wire):
    wire.run("HSET", "k", "f", "v")
    assert wire.run("HSCAN", "k", "0", "NOVALUES") == ("*", [("$", b"0"), ("*", [("$", b"f")])])


def test_a_scan_meets_what_stays(wire):
    """Fields are added and removed while a hash is scanned."""
    wire.run("HSET", "k", *(text for i in range(400) for text in (f"stays{i}", i)))
    found, cursor, i = [], b"0", 0
    while True:
        (_, cursor), (_, flat) = wire.run("HSCAN", "k", cursor, "COUNT", "7")[1]
        found += [field for (_, field), _ in pairs(flat)]
        wire.run_all([("HSET", "k", f"comes{i}", i), ("HDEL", "k", f"comes{i - 3}")])
        i += 1
        if cursor == b"0":
            break
    assert {f"stays{i}".encode() for i in range(400)} <= set(found)
    assert len(found) == len(set(found))


def test_a_transaction_watches_a_hash(pair):
    """Changing one field of a large hash changes its key."""
    pair.check_all([("HSET", "k1", f"f{i}", "v") for i in range(20)])
    pair.check_all([("WATCH", "k1"), ("HSET", "k1", "f3", "w"), ("MULTI",), ("HLEN", "k1"), ("EXEC",)])
    pair.check_all([("WATCH", "k1"), ("HDEL", "k1", "nothing"), ("MULTI",), ("HLEN", "k1"), ("EXEC",)])


def test_too_long_a_field_is_refused(wire):
    kind, text = wire.run("HSET", "k", "x" * 4097, "v")
    assert kind == "-" and "4096" in text
    assert wire.run("EXISTS", "k") == (":", "0")
    assert wire.run("HSET", "k", "x" * 4096, "v" * 100_000) == (":", "1")
    assert wire.run("HGET", "k", "x" * 4096) == ("$", b"v" * 100_000)
    assert wire.run("HEXISTS", "k", "x" * 4097) == (":", "0")


def test_a_hash_survives_a_restart(own_server):
    with own_server() as server:
        server.redis().hset("small", mapping={"f": "v", "g": "w"})
        server.redis().hset("large", mapping={f"f{i}": i for i in range(500)})
        server.kill()
        server.start()
        assert server.redis().hgetall("small") == {b"f": b"v", b"g": b"w"}
        assert server.redis().hlen("large") == 500
        assert server.redis().hget("large", "f321") == b"321"
