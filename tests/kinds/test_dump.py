"""DUMP and RESTORE: what Redis dumps is restored here, and the other way round."""

import random
import struct
import time

import pytest
import redis

SEED = 7


def texts(rng, count):
    """Texts of all kinds: some are integers, and some are long and compress well."""
    kinds = [
        lambda: str(rng.choice([0, 1, -1, 12, 13, 127, 128, -4096, 4095, 32767, -32769, 2**23, 2**31, -(2**40), 2**63 - 1])),
        lambda: "x" * rng.choice([0, 1, 5, 63, 64, 300]),
        lambda: bytes(rng.randrange(256) for _ in range(rng.randint(1, 40))),
        lambda: f"{rng.randrange(10**9)}-text",
    ]
    return [rng.choice(kinds)() for _ in range(count)]


def elements(rng, count):
    """The same, but all different, and none empty."""
    found = {text if isinstance(text, bytes) else text.encode() for text in texts(rng, 4 * count)}
    found |= {f"e{n}".encode() for n in range(count)}
    return rng.sample(sorted(found - {b""}), count)


def values(seed):
    """Commands that each create a value under the key `k`."""
    rng = random.Random(seed)
    for text in [*texts(rng, 12), "", "long " * 20000, "12345", "-9223372036854775808", "01"]:
        yield ("SET", "k", text)
    for count in (1, 3, 8, 9, 40, 700):
        yield ("RPUSH", "k", *texts(rng, count))
        yield ("SADD", "k", *elements(rng, count))
        yield ("SADD", "k", *rng.sample(range(-(2 ** rng.choice([10, 20, 40])), 1000), count))
        yield ("HSET", "k", *(part for field in elements(rng, count) for part in (field, texts(rng, 1)[0])))
        scores = ["1", "-1", "0.1", "3.25", "inf", "-inf", "1e300", "12345678901234567"]
        yield ("ZADD", "k", *(part for member in elements(rng, count) for part in (rng.choice(scores), member)))
    yield ("RPUSH", "k", "x" * 20000, "y", "z" * 9000)
    yield ("HSET", "k", "f", "v" * 100000)


def content(wire, key="k"):
    """The value under a key."""
    kind = wire.run("TYPE", key)[1]
    reads = {
        "string": ("GET", key), "list": ("LRANGE", key, "0", "-1"), "set": ("SMEMBERS", key), "hash": ("HGETALL", key),
        "zset": ("ZRANGE", key, "0", "-1", "WITHSCORES"),
    }
    reply = wire.run(*reads[kind])[1]
    if kind == "hash" and isinstance(reply[0][0], str):
        reply = list(zip(reply[::2], reply[1::2], strict=True))
    if kind == "zset":
        # Redis 7.0 shows more digits of some scores.
        scored = [part[1] for part in reply] if isinstance(reply[0][1], list) else zip(reply[::2], reply[1::2], strict=True)
        return kind, [(member[1], float(score[1])) for member, score in scored]
    return kind, sorted(reply) if kind in ("set", "hash") else reply


@pytest.mark.parametrize("to", ["from_redis", "to_redis", "to_itself"])
def test_values_are_restored(pair, to):
    source, target = {
        "from_redis": (pair.redis, pair.tokaido), "to_redis": (pair.tokaido, pair.redis), "to_itself": (pair.tokaido, pair.tokaido),
    }[to]
    for command in values(SEED):
        for wire in (source, target):
            wire.run("DEL", "k")
            assert wire.run(*command)[0] in ":+", command[:3]
        expected, payload = content(source), source.run("DUMP", "k")[1]
        target.run("DEL", "k")
        assert target.run("RESTORE", "k", "0", payload) == ("+", "OK"), command[:6]
        assert content(target) == expected, command[:6]
        assert target.run("RESTORE", "k", "0", payload) == ("-", "BUSYKEY Target key name already exists.")
        assert target.run("RESTORE", "k", "0", payload, "REPLACE") == ("+", "OK")
        assert content(target) == expected
        assert target.run("PTTL", "k") == (":", "-1")


def stream_commands(rng, entries):
    """A stream with groups, and deleted, trimmed, acknowledged and claimed entries."""
    fields = ["temperature", "unit", "x" * 70]
    ids = sorted({(rng.choice([5, 5, 6, 1700000000000, 2**63 + 7]), rng.randrange(10000)) for _ in range(entries)})
    ids = [f"{ms}-{seq}" for ms, seq in ids]
    for place, id in enumerate(ids):
        if place % 3 == 0:
            yield ("XADD", "k", id, *(part for field in fields for part in (field, texts(rng, 1)[0])))
        else:
            yield ("XADD", "k", id, "f", place, rng.choice(["f", "g", ""]), b"\xff" * rng.choice([0, 3, 5000]))
    yield ("XGROUP", "CREATE", "k", "all", "0")
    yield ("XGROUP", "CREATE", "k", "new", "$")
    yield ("XGROUP", "CREATE", "k", "some", ids[len(ids) // 2], "ENTRIESREAD", "3")
    for consumer in ("anna", "ben"):
        yield ("XREADGROUP", "GROUP", "all", consumer, "COUNT", "7", "STREAMS", "k", ">")
        yield ("XREADGROUP", "GROUP", "some", consumer, "COUNT", "2", "STREAMS", "k", ">")
    yield ("XGROUP", "CREATECONSUMER", "k", "all", "idle")
    yield ("XACK", "k", "all", ids[0], ids[3])
    yield ("XCLAIM", "k", "all", "ben", "0", ids[1], "JUSTID")
    yield ("XDEL", "k", *rng.sample(ids[: len(ids) // 2], len(ids) // 4))
    yield ("XTRIM", "k", "MAXLEN", len(ids) * 2 // 3)


def stream_content(wire):
    """Everything visible of a stream except delivery times."""
    reads = [("XRANGE", "k", "-", "+"), ("XLEN", "k"), ("XINFO", "GROUPS", "k"), ("XINFO", "STREAM", "k")]
    found = [wire.run(*command) for command in reads]
    # The memory layout of the stream differs.
    full = found.pop()[1]
    flat = [part for pair in full for part in pair] if isinstance(full[0][0], tuple) else full
    named = dict(zip([name[1] for name in flat[::2]], flat[1::2], strict=True))
    found.append([named[name] for name in (b"length", b"last-generated-id", b"max-deleted-entry-id", b"entries-added", b"groups")])
    for group in ("all", "new", "some"):
        found.append(wire.run("XPENDING", "k", group))
        pending = wire.run("XPENDING", "k", group, "-", "+", "1000")[1]
        found.append([(id, consumer, deliveries) for _, [id, consumer, _, deliveries] in pending])
    return found


@pytest.mark.parametrize("entries", [8, 40, 700])
@pytest.mark.parametrize("to", ["from_redis", "to_redis", "to_itself"])
def test_streams_are_restored(pair, to, entries):
    source, target = {
        "from_redis": (pair.redis, pair.tokaido), "to_redis": (pair.tokaido, pair.redis), "to_itself": (pair.tokaido, pair.tokaido),
    }[to]
    for command in stream_commands(random.Random(SEED), entries):
        assert source.run(*command)[0] != "-", command
    expected, payload = stream_content(source), source.run("DUMP", "k")[1]
    target.run("DEL", "k")
    assert target.run("RESTORE", "k", "0", payload) == ("+", "OK")
    assert stream_content(target) == expected
    # The stream remains usable: ids, groups and pending entries continue.
    for wire in {source, target}:
        wire.run("XADD", "k", "18446744073709551615-1", "f", "v")
    reads = [
        ("XREADGROUP", "GROUP", "all", "anna", "COUNT", "3", "STREAMS", "k", "0"),
        ("XREADGROUP", "GROUP", "new", "carla", "STREAMS", "k", ">"), ("XAUTOCLAIM", "k", "all", "carla", "0", "0", "COUNT", "4", "JUSTID"),
    ]
    if source is not target:
        for command in reads:
            assert target.run(*command) == source.run(*command)
        assert target.run("XADD", "k", "5-1", "f", "v")[0] == "-"


def test_streams_without_entries(pair):
    for source, target in [(pair.redis, pair.tokaido), (pair.tokaido, pair.redis)]:
        for wire in (source, target):
            wire.run("DEL", "k")
        source.run_all([("XADD", "k", "5-5", "f", "v"), ("XDEL", "k", "5-5"), ("XGROUP", "CREATE", "k", "g", "0")])
        assert target.run("RESTORE", "k", "0", source.run("DUMP", "k")[1]) == ("+", "OK")
        pair.check_all([("XLEN", "k"), ("TYPE", "k"), ("XADD", "k", "5-5", "f", "v"), ("XADD", "k", "5-6", "f", "v")])
        pair.check_all([("XREADGROUP", "GROUP", "g", "c", "STREAMS", "k", ">")])


def crc64(data):
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x95AC9329AC4BC9B5 if crc & 1 else 0)
    return crc


def sealed(body, version=10):
    body += struct.pack("<H", version)
    return body + struct.pack("<Q", crc64(body))


def text(body):
    return struct.pack(">BI", 0x80, len(body)) + body


def ziplist(*entries):
    """A ziplist of texts shorter than 64 bytes and 16-bit integers."""
    body, before = b"", 0
    last = 0
    for entry in entries:
        last = len(body)
        coded = bytes([len(entry)]) + entry if isinstance(entry, bytes) else b"\xc0" + struct.pack("<h", entry)
        coded = bytes([before]) + coded
        body, before = body + coded, len(coded)
    return struct.pack("<IIH", 11 + len(body), 10 + last, len(entries)) + body + b"\xff"


OLD = {
    "list": b"\x01\x02\x01a\xc0\x07",
    "list of a ziplist": b"\x0a" + text(ziplist(b"a", 7, b"bc")),
    "quicklist": b"\x0e\x02" + text(ziplist(b"a", -300)) + text(ziplist(b"b")),
    "quicklist with a plain node": b"\x12\x02\x01\x01x\x02" + text(b"\x0a\0\0\0\x01\0\x81y\x02\xff"),
    "set": b"\x02\x02\x01a\xc1\x00\x01",
    "set of 32 bits": b"\x0b" + text(struct.pack("<IIii", 4, 2, -70000, 70000)),
    "set of 64 bits": b"\x0b" + text(struct.pack("<IIq", 8, 1, 2**40)),
    "sorted set with digits": b"\x03\x03\x01a\x031.5\x01b\xfe\x01c\xff",
    "sorted set": b"\x05\x01\x01a" + struct.pack("<d", -2.5),
    "sorted set of a ziplist": b"\x0c" + text(ziplist(b"a", 1, b"b", b"2.5")),
    "hash": b"\x04\x01\x01f\xc2\x00\x00\x01\x00",
    "hash of a zipmap": b"\x09" + text(b"\x02\x01a\x01\x00x\x02bb\x01\x02yzz\xff"),
    "hash of a ziplist": b"\x0d" + text(ziplist(b"f", b"v", b"g", 9)),
    "compressed string": b"\x00\xc3\x07\x0a\x01ab\xc0\x01\x00b",
    "compressed": b"\x00\xc3\x06\x08\x02abc\x60\x02",
    "empty list": b"\x01\x00",
    "empty hash": b"\x04\x00",
    "member twice": b"\x02\x02\x01a\x01a",
    "score without a number": b"\x03\x01\x01a\xfd",
    "rubbish": b"\x7fxyz",
    "nothing": b"",
    "string and more": b"\x00\x01ab",
    "cut": b"\x00\x3fab",
}


@pytest.mark.parametrize("name", OLD)
def test_forms_of_older_versions(pair, name):
    payload = sealed(OLD[name], version=6)
    # Redis reads a value and ignores what follows it.
    if name == "string and more":
        assert pair.tokaido.run("RESTORE", "k", "0", payload) == ("-", "ERR Bad data format")
        return
    pair.check("RESTORE", "k", "0", payload)
    if pair.redis.run("EXISTS", "k") == (":", "1"):
        assert content(pair.redis) == content(pair.tokaido)
    else:
        pair.check("EXISTS", "k")


def test_arguments(pair):
    pair.check_all([("SET", "k", "v"), ("RPUSH", "list", "a", "b"), ("DUMP", "missing"), ("DUMP",), ("DUMP", "a", "b")])
    payload = pair.tokaido.run("DUMP", "list")[1]
    bad = [payload[:-1], b"", b"x", payload[:-2] + b"xx", payload[:5], sealed(b"\x00\x01a", version=99)]
    pair.check_all([
        ("RESTORE", "k", "0", payload), ("RESTORE", "k"), ("RESTORE", "new", "x", payload), ("RESTORE", "new", "-1", payload),
        *[("RESTORE", "new", "0", wrong) for wrong in bad], *[("RESTORE", "k", "x", wrong) for wrong in bad],
        ("EXISTS", "new"), ("RESTORE", "new", "0", payload, "NOSUCH"), ("RESTORE", "new", "0", payload, "IDLETIME"),
        ("RESTORE", "new", "0", payload, "IDLETIME", "-1"), ("RESTORE", "new", "0", payload, "IDLETIME", "x"),
        ("RESTORE", "new", "0", payload, "FREQ", "256"), ("RESTORE", "new", "0", payload, "FREQ", "-1"),
        ("RESTORE", "new", "0", payload, "FREQ", "1", "IDLETIME", "1"), ("RESTORE", "new", "0", payload, "IDLETIME", "1", "FREQ", "1"),
        ("RESTORE", "new", "0", payload, "IDLETIME", "10"), ("LRANGE", "new", "0", "-1"),
        ("RESTORE", "new", "0", payload, "replace", "freq", "10"), ("LRANGE", "new", "0", "-1"),
        ("RESTORE", "k", "100000", payload, "REPLACE", "ABSTTL"), ("EXISTS", "k"), ("RESTORE", "k", "100000", payload, "ABSTTL"),
        ("RESTORE", "new", "100000", payload, "REPLACE"), ("LRANGE", "new", "0", "-1"), ("TTL", "new"),
        ("RESTORE", "new", "0", payload, "REPLACE"), ("TTL", "new"), ("DBSIZE",),
        ("RESTORE", "later", int(time.time() * 1000) + 500000, payload, "ABSTTL"), ("PERSIST", "later"), ("PERSIST", "later"),
        ("MULTI",), ("RESTORE", "in", "0", payload), ("DUMP", "nothing"), ("LRANGE", "in", "0", "-1"), ("EXEC",),
        ("EVAL", "return redis.call('restore', 'of', 0, redis.call('dump', 'in'))", "0"), ("LRANGE", "of", "0", "-1"),
    ])


def test_what_is_too_large_is_refused(own_server):
    with own_server(options=["--sync", "os", "--reply-bytes-max", "100000"]) as server:
        client = server.redis()
        # A small payload that decompresses to a megabyte.
        bomb = b"\x00\xc3" + text(b"")[:0] + struct.pack(">BIBI", 0x80, 11400, 0x80, 1000005) + b"\x00a" + b"\xe0\xff\x00" * 3799
        with pytest.raises(redis.ResponseError, match="too large"):
            client.restore("k", 0, sealed(bomb + b"\x00"))
        many = b"\x01" + struct.pack(">BI", 0x80, 20000) + b"\x01a" * 20000
        with pytest.raises(redis.ResponseError, match="too large"):
            client.restore("k", 0, sealed(many))
        client.rpush("list", *["x" * 1000] * 150)
        with pytest.raises(redis.ResponseError, match="reply_bytes_max"):
            client.dump("list")
        assert client.restore("k", 0, sealed(b"\x01\x02\x01a\x01b")) == b"OK"
        assert client.exists("k", "list") == 2
        client.restore("k", 0, client.dump("k"), replace=True)
        assert client.lrange("k", 0, -1) == [b"a", b"b"]


def test_events_tell_of_what_is_restored(wire, tokaido_server):
    client = redis.Redis(port=tokaido_server.port)
    client.set("k", "v")
    payload = client.dump("k")
    client.config_set("notify-keyspace-events", "KEA")
    try:
        with client.pubsub(ignore_subscribe_messages=True) as listener:
            listener.psubscribe("__keyevent@0__:*")
            listener.get_message(timeout=5)
            client.restore("copy", 0, payload)
            message = listener.get_message(timeout=5)
            assert (message["channel"], message["data"]) == (b"__keyevent@0__:restore", b"copy")
    finally:
        client.config_set("notify-keyspace-events", "")
