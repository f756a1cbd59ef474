"""Handles of collections in Lua: their results and effects are those of the Redis commands."""

import random

import pytest
from support import Server

from .wire import NULL, Wire

PROCEDURES = """
local tokaido = require "tokaido"
local handles = {}

-- Arguments are strings, and numbers behind an equals sign.
local function argument(text)
  local number = text and text:match "^=(.*)"
  return number and tonumber(number) or text
end

-- A method's first result as a command replies: a number for a boolean.
handles.call = tokaido.write(function(tx, kind, key, method, first, second)
  local handle = tx.main[kind](tx.main, key)
  local result = handle[method](handle, argument(first), argument(second))
  if type(result) == "boolean" then return result and 1 or 0 end
  return result
end)

handles.scan = tokaido.read(function(tx, kind, key)
  local found = {}
  for first, second in tx.main[kind](tx.main, key):scan() do
    found[#found + 1] = tokaido.text(kind == "list" and second or first)
    if kind == "hash" or kind == "sorted_set" then found[#found + 1] = tokaido.text(second) end
  end
  return found
end)

return handles
"""

NAMES = [f"n{i}" for i in range(14)] + ["a name of more bytes"]
VALUES = ["0", "1", "-7", "text", "", "a value of more bytes"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    directory = tmp_path_factory.mktemp("handles")
    (directory / "procedures").mkdir()
    (directory / "procedures" / "handles.lua").write_text(PROCEDURES)
    options = ["--packed-elements-max", "8", "--packed-text-bytes-max", "16", "--sync", "os"]
    procedures = directory / "procedures"
    with Server(directory / "data", directory / "log", procedures, options=options) as server:
        yield server


def of_hash(rng):
    name, value, number = rng.choice(NAMES), rng.choice(VALUES), rng.randint(-9, 9)
    return rng.choice([
        (("set", name, value), ("HSET", name, value)), (("set", name, number), ("HSET", name, number)),
        (("add", name, value), ("HSETNX", name, value)), (("get", name), ("HGET", name)),
        (("has", name), ("HEXISTS", name)), (("delete", name), ("HDEL", name)), (("count",), ("HLEN",)),
        (("increment", name, number), ("HINCRBY", name, number)),
    ])


def of_list(rng):
    item, position = rng.choice(NAMES), rng.randint(1, 12)
    at = position - 1
    return rng.choice([
        (("push_left", item), ("LPUSH", item)), (("push_right", item), ("RPUSH", item)),
        (("push_right", item), ("RPUSH", item)), (("pop_left",), ("LPOP",)), (("pop_right",), ("RPOP",)),
        (("get", position), ("LINDEX", at)), (("get", -position), ("LINDEX", -position)), (("count",), ("LLEN",)),
        (("range", position, -2), ("LRANGE", at, -2)), (("range", -3, position), ("LRANGE", -3, at)),
        (("find", item), ("LPOS", item)), (("trim", 2, -1), ("LTRIM", 1, -1)), (("trim", 1, 10), ("LTRIM", 0, 9)),
    ])


def of_set(rng):
    name = rng.choice(NAMES)
    return rng.choice([
        (("add", name), ("SADD", name)), (("add", name), ("SADD", name)), (("remove", name), ("SREM", name)),
        (("has", name), ("SISMEMBER", name)), (("count",), ("SCARD",)),
    ])


def of_sorted_set(rng):
    name, score = rng.choice(NAMES), rng.randint(-5, 5)
    return rng.choice([
        (("add", name, score), ("ZADD", score, name)), (("add", name, score), ("ZADD", score, name)),
        (("remove", name), ("ZREM", name)), (("increment", name, score), ("ZINCRBY", score, name)),
        (("score", name), ("ZSCORE", name)), (("rank", name), ("ZRANK", name)), (("count",), ("ZCARD",)),
        (("pop_min",), ("ZPOPMIN",)), (("pop_max",), ("ZPOPMAX",)),
    ])


def text_of(reply):
    """A reply without its type, or the parts of an array; scores without a fraction."""
    kind, *rest = reply
    if kind.startswith("null"):
        return None
    if kind in "*~":
        return [text_of(part) for part in rest[0]]
    text = rest[0].decode() if isinstance(rest[0], bytes) else rest[0]
    return text


def expected_of(call, reply):
    """The handle's result for a reply of the command."""
    if call[0] == "trim":
        return None
    if call[0] in ("pop_min", "pop_max"):
        return reply[0] if reply else None
    if call[0] in ("find", "rank") and reply is not None:
        return str(int(reply) + 1)
    return reply


ALL = {
    "hash": (of_hash, "HGETALL"), "list": (of_list, "LRANGE 0 -1"), "set": (of_set, "SMEMBERS"),
    "sorted_set": (of_sorted_set, "ZRANGE 0 -1 WITHSCORES"),
}


def contents(wire, kind, key):
    """The whole value, as its command and as a scan of its handle return it."""
    name, *options = ALL[kind][1].split()
    by_command = text_of(wire.run(name, key, *options))
    by_handle = text_of(wire.run("handles.scan", kind, key))
    if kind == "set":
        return sorted(by_command), sorted(by_handle)
    return by_command, by_handle


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("seed", range(2))
def test_generated_calls(server, kind, seed):
    """The same changes by handles and by commands, to two keys; then each is read in both ways."""
    rng, wire = random.Random(seed), Wire(server.port, 2)
    wire.run("FLUSHALL")
    for step in range(500):
        call, (command, *arguments) = ALL[kind][0](rng)
        reply = wire.run(command, "by command", *arguments)
        call = [f"={part}" if isinstance(part, int) else part for part in call]
        came = wire.run("handles.call", kind, "by handle", *call)
        if reply[0] == "-":
            assert came[0] == "-", (seed, step, call, came)
            continue
        assert text_of(came) == expected_of(call, text_of(reply)), (seed, step, call)
        if step % 50 == 0:
            by_handle, by_command = contents(wire, kind, "by handle"), contents(wire, kind, "by command")
            assert by_handle[0] == by_handle[1] == by_command[0] == by_command[1], (seed, step)
    wire.close()


def test_another_kind_is_refused_with_its_code(server):
    wire = Wire(server.port, 2)
    wire.run("FLUSHALL")
    wire.run("SADD", "k", "m")
    for kind, method in [("hash", "count"), ("list", "pop_left"), ("sorted_set", "pop_max")]:
        kind, message = wire.run("handles.call", kind, "k", method)
        assert kind == "-" and message.startswith("WRONGTYPE "), message
    assert wire.run("GET", "none") == NULL
    wire.close()
