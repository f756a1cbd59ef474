"""Odd requests that clients send nevertheless: the same replies as from Redis."""

import pytest

from .wire import encode

FLOATS = ["inf", "-inf", "infinity", "nan", "0x10", "-0x1p-1", "+1", "1e3", "x", "", " 1", "1 ", "0x", "1.5"]
DIGITS = "1" * 30


def test_numbers_with_a_fraction(pair):
    for old in FLOATS:
        for by in FLOATS:
            pair.check_all([("SET", "k", old), ("INCRBYFLOAT", "k", by), ("GET", "k")])
    pair.check_all([step for by in FLOATS for step in (("DEL", "k"), ("INCRBYFLOAT", "k", by), ("GET", "k"))])
    pair.check_all([("RPUSH", "list", "a"), ("INCRBYFLOAT", "list", "1"), ("INCRBYFLOAT", "list", "x")])
    pair.check_all([("SET", "k", "1", "EX", "1000"), ("INCRBYFLOAT", "k", "0.5"), ("TTL", "k")])


@pytest.mark.parametrize("inside", [(), ("MULTI",), ("MULTI", "GET")])
def test_exec_with_arguments(pair, inside):
    steps = [("SET", "k", "v"), *((name, "k") if name == "GET" else (name,) for name in inside)]
    pair.check_all([*steps, ("EXEC", "now"), ("PING",), ("EXEC",), ("MULTI",), ("GET", "k"), ("EXEC",)])


def test_an_expiry_that_is_none(pair):
    for key in ("missing", "k", "list"):
        for number in ("0", "-1", "x", "1000", str(2**63 - 1), ""):
            for unit in ("EX", "PX", "EXAT", "PXAT"):
                pair.check_all([("SET", "k", "v"), ("DEL", "list"), ("RPUSH", "list", "a"), ("GETEX", key, unit, number)])


@pytest.mark.parametrize("number", [DIGITS, "-" + DIGITS, "99", "-1", str(2**63)])
def test_numbers_of_databases(pair, number):
    pair.check_all([("SET", "k", "v"), ("SELECT", number), ("MOVE", "k", number), ("COPY", "k", "l", "DB", number)])
    pair.check_all([("EXISTS", "k", "l"), ("DBSIZE",)])


def test_what_is_told_of_an_object(pair):
    pair.check_all([("SET", "k", "v"), ("OBJECT", "REFCOUNT", "k"), ("OBJECT", "FREQ", "k"), ("OBJECT", "REFCOUNT")])
    pair.check_all([("OBJECT", name, "missing") for name in ("REFCOUNT", "FREQ", "IDLETIME", "ENCODING", "NOTHING")])


@pytest.mark.parametrize("modes", [("SKIP", "ON"), ("SKIP", "SKIP", "ON"), ("OFF", "SKIP", "ON"), ("SKIP", "OFF", "ON"), ("ON", "ON")])
def test_replies_that_are_turned_on_again(pair, modes):
    between = [*(step for mode in modes for step in (("CLIENT", "REPLY", mode), ("PING", mode))), ("PING", "last")]
    for steps in (between, [("CLIENT", "REPLY", mode) for mode in modes] + [("PING", "next"), ("PING", "last")]):
        assert replies(pair.redis, steps) == replies(pair.tokaido, steps), steps


def replies(wire, steps):
    """The replies until the last one."""
    wire.socket.sendall(b"".join(map(encode, steps)))
    came = [wire.reply()]
    while came[-1] != ("$", b"last"):
        came.append(wire.reply())
    return came
