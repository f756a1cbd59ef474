"""Handles of streams and their groups in Lua: their results and effects are those of the Redis commands."""

import random

import pytest
from support import Server

from .wire import Wire, encode

PROCEDURES = """
local tokaido = require "tokaido"
local streams = {}

-- An entry as a command replies: its id, and its fields with their values, in the order of the fields.
local function entry(id, fields)
  local names, flat = {}, {}
  for name in pairs(fields) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    flat[#flat + 1] = name
    flat[#flat + 1] = fields[name]
  end
  return { id, flat }
end

local calls = {}

function calls.add(s, id, a, b, name, value)
  local options = { id = id }
  if name then options[name] = name == "max_count" and tonumber(value) or value end
  return s:add({ a = a, b = b }, options)
end

function calls.count(s) return s:count() end
function calls.delete(s, id) return s:delete(id) and 1 or 0 end
function calls.trim(s, name, value) return s:trim { [name] = name == "max_count" and tonumber(value) or value } end

function calls.scan(s, low, low_id, high, high_id, reverse, limit)
  local range = { [low] = low_id, [high] = high_id, reverse = reverse == "1", limit = tonumber(limit) }
  local found = {}
  for id, fields in s:scan(range) do found[#found + 1] = entry(id, fields) end
  return found
end

function calls.create(s, name, after) return s:group(name):create(after) and "OK" or error("it is there", 0) end
function calls.destroy(s, name) return s:group(name):destroy() and 1 or 0 end
function calls.acknowledge(s, name, id) return s:group(name):acknowledge(id) and 1 or 0 end

function calls.read(s, name, consumer, count)
  local found = {}
  for _, read in ipairs(s:group(name):read(consumer, tonumber(count))) do
    found[#found + 1] = entry(read.id, read.fields)
  end
  return found
end

function calls.claim(s, name, consumer, id)
  local fields = s:group(name):claim(consumer, id, 0)
  return fields and { entry(id, fields) } or {}
end

function calls.pending(s, name, from, to, limit, consumer)
  local found = {}
  for _, p in ipairs(s:group(name):pending { from = from, to = to, limit = tonumber(limit), consumer = consumer }) do
    found[#found + 1] = { p.id, p.consumer, p.deliveries }
  end
  return found
end

function calls.summary(s, name)
  local summary, found = s:group(name):summary(), {}
  for consumer, count in pairs(summary.consumers) do
    if count > 0 then found[#found + 1] = consumer .. "=" .. count end
  end
  table.sort(found)
  return { summary.pending, table.concat(found, " ") }
end

streams.call = tokaido.write(function(tx, key, method, ...) return calls[method](tx.main:stream(key), ...) end)

return streams
"""

GROUPS = ["g", "h"]
CONSUMERS = ["one", "two", "a consumer of more bytes"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    directory = tmp_path_factory.mktemp("streams")
    (directory / "procedures").mkdir()
    (directory / "procedures" / "streams.lua").write_text(PROCEDURES)
    options = ["--sync", "os"]
    with Server(directory / "data", directory / "log", directory / "procedures", options=options) as server:
        yield server


def entries_of(reply):
    return reply[0][1] if reply else []


def summary_of(reply):
    count, _, _, consumers = reply
    return [count, " ".join(sorted(f"{name}={pending}" for name, pending in consumers or []))]


def same(reply):
    return reply


def generated(rng, key, last):
    """A call, the command that does the same, and a function from its reply to the call's result."""
    id_ = f"{rng.randint(1, last + 2)}-{rng.randint(0, 2)}"
    other = f"{rng.randint(1, last + 2)}-{rng.randint(0, 2)}"
    group, consumer, count = rng.choice(GROUPS), rng.choice(CONSUMERS), rng.randint(1, 5)
    new = f"{last + rng.randint(0, 1)}-{rng.randint(0, 2)}"
    low, high = rng.choice(["from", "after"]), rng.choice(["to", "before"])
    ends = (id_ if low == "from" else f"({id_}", other if high == "to" else f"({other}")
    entry = ("a", "x", "b", new)
    return rng.choice(
        [
            (("add", new, "x", new), ("XADD", key, new, *entry), same),
            (("add", new, "x", new), ("XADD", key, new, *entry), same),
            (("add", new, "x", new, "max_count", 20), ("XADD", key, "MAXLEN", 20, new, *entry), same),
            (("add", new, "x", new, "min_id", id_), ("XADD", key, "MINID", id_, new, *entry), same),
            (("count",), ("XLEN", key), same),
            (("delete", id_), ("XDEL", key, id_), same),
            (("trim", "max_count", 15), ("XTRIM", key, "MAXLEN", 15), same),
            (("trim", "min_id", id_), ("XTRIM", key, "MINID", id_), same),
            (("scan", low, id_, high, other, 0, 7), ("XRANGE", key, *ends, "COUNT", 7), same),
            (("scan", low, id_, high, other, 1, 7), ("XREVRANGE", key, *ends[::-1], "COUNT", 7), same),
            (("create", group, id_), ("XGROUP", "CREATE", key, group, id_, "MKSTREAM"), same),
            (("read", group, consumer, count),
             ("XREADGROUP", "GROUP", group, consumer, "COUNT", count, "STREAMS", key, ">"), entries_of),
            (("acknowledge", group, id_), ("XACK", key, group, id_), same),
            (("claim", group, consumer, id_), ("XCLAIM", key, group, consumer, 0, id_), same),
            (("pending", group, id_, other, 9), ("XPENDING", key, group, id_, other, 9), without_times),
            (("pending", group, "0", "999", 9, consumer), ("XPENDING", key, group, "-", "+", 9, consumer), without_times),
            (("summary", group), ("XPENDING", key, group), summary_of),
        ] + [(("destroy", group), ("XGROUP", "DESTROY", key, group), same)] * (rng.random() < 0.1)
    )


def without_times(reply):
    return [[id_, name, deliveries] for id_, name, _, deliveries in reply]


def plain(reply):
    """A reply without its types."""
    kind, *rest = reply
    if kind.startswith("null"):
        return None
    if kind in "*~":
        return [plain(part) for part in rest[0]]
    return rest[0].decode() if isinstance(rest[0], bytes) else rest[0]


def texts(reply):
    return [texts(part) for part in reply] if isinstance(reply, list) else reply if reply is None else str(reply)


@pytest.mark.parametrize("seed", range(4))
def test_generated_calls(server, seed):
    """The same changes by handles and by commands, to two keys; then each is read in both ways."""
    rng, wire, last, done = random.Random(seed), Wire(server.port, 2), 1, 0
    wire.run("FLUSHALL")
    for step in range(600):
        call, command, expected = generated(rng, "by command", last)
        reply = wire.run(*command)
        came = wire.run("streams.call", "by handle", *call)
        if reply[0] == "-":
            assert came[0] == "-", (seed, step, call, came)
            continue
        if call[0] == "acknowledge" and came[0] == "-":
            # The command treats a missing group like one without pending entries.
            assert plain(reply) in (0, "0"), (seed, step, call)
            continue
        last += call[0] == "add"
        done += 1
        assert texts(plain(came)) == texts(expected(plain(reply))), (seed, step, call)
        if step % 50 == 0:
            assert wire.run("XRANGE", "by handle", "-", "+") == wire.run("XRANGE", "by command", "-", "+")
    assert done > 300
    wire.close()


def test_a_read_that_waits_is_woken_by_a_handle(server):
    waiting, wire = Wire(server.port, 2), Wire(server.port, 2)
    wire.run("FLUSHALL")
    waiting.socket.sendall(encode(["XREAD", "BLOCK", "30000", "STREAMS", "s", "$"]))
    while b"blocked_clients:1" not in wire.run("INFO", "clients")[1]:
        pass
    wire.run("streams.call", "s", "add", "5-1", "x", "y")
    assert plain(waiting.reply()) == [["s", [["5-1", ["a", "x", "b", "y"]]]]]
    waiting.close()
    wire.close()
