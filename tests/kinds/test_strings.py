"""Strings as bitmaps, as integers of any width, and LCS: the same replies as from Redis."""

import random

import pytest

from .differential import KEYS, generated

OFFSETS = [0, 1, 6, 7, 8, 9, 15, 16, 31, 63, 64, 100, 200]
ENCODINGS = ["u1", "i1", "u4", "i5", "u8", "i8", "u16", "i32", "u63", "i64"]
PLACES = [0, 1, 2, 3, 5, 10, 15, 16, 100, -1, -2, -3, -8, -100, 2**63 - 1, -(2**63)]
NUMBERS = [0, 1, -1, 2, 7, 100, 127, 128, 200, 255, 256, -128, -129, 2**31, 2**62, 2**63 - 1, -(2**63) + 1000]


def operation(rng):
    encoding, offset = rng.choice(ENCODINGS), rng.choice(["", "#"]) + str(rng.choice(OFFSETS))
    return rng.choice([
        ["GET", encoding, offset], ["SET", encoding, offset, rng.choice(NUMBERS)],
        ["INCRBY", encoding, offset, rng.choice(NUMBERS)], ["OVERFLOW", rng.choice(["WRAP", "SAT", "FAIL", "sat"])],
    ])


def command(rng):
    key, other = rng.choice(KEYS), rng.choice(KEYS)
    some = [rng.choice([*KEYS, "missing"]) for _ in range(rng.randint(1, 3))]
    start, end, bit = rng.choice(PLACES), rng.choice(PLACES), rng.choice([0, 1])
    unit = rng.choice(["BYTE", "BIT", "bit"])
    return rng.choice([
        ("SETBIT", key, rng.choice(OFFSETS), bit), ("SETBIT", key, rng.choice(OFFSETS), 1), ("GETBIT", key, rng.choice(OFFSETS)),
        ("BITCOUNT", key), ("BITCOUNT", key, start, end), ("BITCOUNT", key, start, end, unit),
        ("BITPOS", key, bit), ("BITPOS", key, bit, start), ("BITPOS", key, bit, start, end),
        ("BITPOS", key, bit, start, end, unit), ("BITPOS", key, bit, start, end, unit),
        ("BITOP", rng.choice(["AND", "OR", "XOR", "and"]), key, *some), ("BITOP", "NOT", key, other),
        ("BITFIELD", key, *sum((operation(rng) for _ in range(rng.randint(0, 4))), [])),
        ("BITFIELD_RO", key, "GET", rng.choice(ENCODINGS), rng.choice(OFFSETS)),
        ("SETRANGE", key, rng.choice(OFFSETS), rng.choice([b"\xff\xff", b"\x00", "text", b"\xff" * 20])),
        ("LCS", key, other), ("LCS", key, other, "LEN"), ("LCS", key, other, "IDX", "MINMATCHLEN", rng.choice(PLACES)),
        ("LCS", key, other, "IDX", "WITHMATCHLEN"), ("GET", key), ("STRLEN", key), ("SUBSTR", key, start, end),
        ("GETRANGE", key, start, end),
    ])


@pytest.mark.parametrize("seed", range(4))
def test_generated_commands(pair, seed):
    pair.check_all(generated(seed, 1500, command))
    pair.check_state()


WORDS = ["0", "1", "2", "-1", "x", "AND", "NOT", "BIT", "BYTE", "GET", "SET", "INCRBY", "OVERFLOW", "u8", "i64", "u64", "i65",
         "i0", "I8", "#1", "#", "#-1", "FAIL", "LEN", "IDX", "MINMATCHLEN", "WITHMATCHLEN", "string", "list", "missing",
         str(2**63), str(2**62), "4294967296", "-4294967296", "01"]


@pytest.mark.parametrize("name", [
    "SETBIT", "GETBIT", "BITCOUNT", "BITPOS", "BITOP", "BITFIELD", "BITFIELD_RO", "LCS", "SUBSTR", "GETRANGE",
])
def test_wrong_arguments(pair, name):
    rng = random.Random(name)
    again = [("SET", "string", "value"), ("DEL", "list", "missing"), ("RPUSH", "list", "item")]
    pair.check_all([*again, (name,)])
    for first in ("string", "list", "missing", "AND", "NOT"):
        pair.check_all([(name, first), *((name, first, word) for word in WORDS), *again])
        some = [tuple(rng.choice(WORDS) for _ in range(rng.randint(2, 5))) for _ in range(250)]
        pair.check_all([step for words in some for step in ((name, first, *words), *again)])
    pair.check_all([("GET", "string"), ("LRANGE", "list", 0, -1), ("EXISTS", "missing")])


def test_expiry_stays_where_a_part_changes(pair):
    for change in (("SETBIT", "k", 3, 1), ("BITFIELD", "k", "SET", "u8", 0, 7), ("BITFIELD", "k", "INCRBY", "u8", 0, 7)):
        pair.check_all([("SET", "k", "v", "EX", 1000), change, ("TTL", "k"), ("GET", "k")])
    pair.check_all([("BITOP", "OR", "k", "k"), ("TTL", "k"), ("BITOP", "OR", "k", "missing"), ("EXISTS", "k")])


def test_bits_of_long_values(pair):
    text = random.Random(1).randbytes(300_000)
    pair.check_all([("SET", "a", text), ("SET", "b", bytes(200_000)), ("SET", "c", b"\xff" * 100_000)])
    pair.check_all([("BITCOUNT", "a"), ("BITCOUNT", "a", 70, -70, "BIT"), ("BITPOS", "b", 1), ("BITPOS", "c", 0)])
    pair.check_all([("BITPOS", "c", 0, 0, -1), ("SETBIT", "b", 1_599_999, 1), ("BITPOS", "b", 1), ("BITPOS", "b", 1, 5, -1, "BIT")])
    for name in ("AND", "OR", "XOR"):
        pair.check_all([("BITOP", name, "d", "a", "b", "c", "missing"), ("GET", "d")])


def test_texts_in_common(pair):
    rng = random.Random(2)
    for letters, most in (("ab", 60), ("abcdefgh", 200), ("ab", 3)):
        for _ in range(15):
            one, other = ("".join(rng.choice(letters) for _ in range(rng.randint(0, most))) for _ in range(2))
            pair.check_all([("SET", "a", one), ("SET", "b", other), ("LCS", "a", "b"), ("LCS", "a", "b", "LEN")])
            pair.check_all([("LCS", "a", "b", "IDX"), ("LCS", "a", "b", "IDX", "MINMATCHLEN", 3, "WITHMATCHLEN")])


def test_what_is_too_long_is_refused_before_it_is_made(wire):
    assert wire.run("SETBIT", "k", 2**29, 1) == ("-", "ERR bit offset is not an integer or out of range")
    assert wire.run("BITFIELD", "k", "SET", "i64", 2**29 - 63, 1)[0] == "-"
    assert wire.run("BITFIELD", "k", "GET", "u8", f"#{2**62}")[0] == "-"
    assert wire.run("EXISTS", "k") == (":", "0")
    wire.run("SET", "a", "a" * 5000)
    kind, text = wire.run("LCS", "a", "a", "LEN")
    assert kind == "-" and "too long for LCS" in text
    wire.run("SET", "b", "b" * 3000)
    assert wire.run("LCS", "a", "b", "LEN") == (":", "0")
