"""Streams: the same replies as from Redis."""

import random

import pytest

from .differential import KEYS, generated

GROUPS = ["g1", "g2", ""]
CONSUMERS = ["c1", "c2", "a consumer"]
FIELDS = ["f", "a field of more bytes", ""]
MALFORMED = ["x", "1-x", "-", "+", "1-", "(", "18446744073709551616", "1-1-1", "-1"]


def an_id(rng):
    return rng.choice([f"{rng.randint(0, 12)}-{rng.randint(0, 2)}", str(rng.randint(0, 12)), "0", rng.choice(MALFORMED)])


def good_id(rng):
    return f"{rng.randint(0, 12)}-{rng.randint(0, 2)}"


def ids(rng, most=4):
    return [an_id(rng) if rng.random() < 0.05 else good_id(rng) for _ in range(rng.randint(1, most))]


def an_end(rng):
    return rng.choice(["-", "+", good_id(rng), good_id(rng), "(" + good_id(rng), "(0", "(" + rng.choice(MALFORMED), an_id(rng)])


def count(rng):
    return rng.choice([(), (), ("COUNT", rng.choice([1, 2, 3, 100, 0, -1]))])


def trim(rng):
    sign = rng.choice([(), ("=",), ("~",)])
    limit = ("LIMIT", rng.randint(-1, 3)) if rng.random() < 0.2 else ()
    what = rng.choice([("MAXLEN", *sign, rng.randint(0, 8)), ("MINID", *sign, good_id(rng)), ("MAXLEN", *sign, -1)])
    return (*what, *limit)


def xadd(rng, key):
    options = rng.choice([(), (), (), (), trim(rng), ("NOMKSTREAM",)])
    # Ids that mostly increase.
    new = rng.choice([f"{rng.randint(0, 12)}-*", f"{rng.randint(8, 12)}-*", good_id(rng), good_id(rng), an_id(rng)])
    fields = [text for _ in range(rng.randint(1, 3)) for text in (rng.choice(FIELDS), rng.randint(0, 9))]
    return ("XADD", key, *options, new, *fields[: len(fields) - (rng.random() < 0.05)])


def xread(rng):
    keys = [rng.choice([*KEYS, "missing"]) for _ in range(rng.randint(1, 3))]
    return ("XREAD", *count(rng), "STREAMS", *keys, *[rng.choice(["$", "0", good_id(rng), good_id(rng), ">"]) for _ in keys])


def xreadgroup(rng, group):
    keys = [rng.choice(KEYS) for _ in range(rng.choice([1, 1, 1, 2]))]
    noack = rng.choice([(), (), (), ("NOACK",)])
    starts = [rng.choice([">", ">", ">", ">", "0", good_id(rng), "$"]) for _ in keys]
    return ("XREADGROUP", "GROUP", group, rng.choice(CONSUMERS), *count(rng), *noack, "STREAMS", *keys, *starts)


def xclaim(rng, key, group):
    options = rng.sample(
        [("FORCE",), ("JUSTID",), ("IDLE", 100_000), ("TIME", 1), ("RETRYCOUNT", rng.randint(-1, 5)), ("LASTID", good_id(rng)), ("NOTHING",)],
        rng.choice([0, 0, 1, 2]),
    )
    idle = rng.choice([0, 0, 0, 50_000, -1, "x"])
    return ("XCLAIM", key, group, rng.choice(CONSUMERS), idle, *ids(rng), *[word for option in options for word in option])


def about_groups(rng, key, group):
    consumer, read = rng.choice(CONSUMERS), rng.choice([(), (), ("ENTRIESREAD", rng.randint(-2, 9))])
    start = rng.choice(["0", "$", good_id(rng)])
    return rng.choice([
        ("XGROUP", "CREATE", key, group, start, *read), ("XGROUP", "CREATE", key, group, start, "MKSTREAM", *read),
        ("XGROUP", "CREATE", key, group, "0"), ("XGROUP", "SETID", key, group, start, *read), ("XGROUP", "DESTROY", key, group),
        ("XGROUP", "CREATECONSUMER", key, group, consumer), ("XGROUP", "DELCONSUMER", key, group, consumer),
        ("XACK", key, group, *ids(rng)), ("XACK", key, group, *ids(rng, 9)), ("XACK", key, group, *ids(rng, 9)),
        xreadgroup(rng, group), xreadgroup(rng, group), xreadgroup(rng, group), xreadgroup(rng, group), xclaim(rng, key, group), xclaim(rng, key, group),
        ("XAUTOCLAIM", key, group, consumer, rng.choice([0, 0, 50_000]), rng.choice(["0", "-", good_id(rng), an_end(rng)]), *count(rng), *rng.choice([(), ("JUSTID",)])),
        ("XPENDING", key, group), ("XPENDING", key, group, "-", "+", 100), ("XPENDING", key, group, an_end(rng), an_end(rng), rng.randint(-1, 9)),
        ("XPENDING", key, group, *rng.choice([(), ("IDLE", 50_000)]), "-", "+", 10, consumer), ("XINFO", "CONSUMERS", key, group),
    ])


def command(rng):
    key, group = rng.choice(KEYS), rng.choice(GROUPS)
    return rng.choice([
        *[xadd(rng, key) for _ in range(7)], *[about_groups(rng, key, group) for _ in range(9)],
        ("XDEL", key, *ids(rng)), ("XTRIM", key, *trim(rng)), ("XLEN", key), ("XRANGE", key, "-", "+"), ("XRANGE", key, an_end(rng), an_end(rng), *count(rng)),
        ("XREVRANGE", key, an_end(rng), an_end(rng), *count(rng)), xread(rng), ("XSETID", key, an_id(rng)),
        ("XSETID", key, good_id(rng), "ENTRIESADDED", rng.randint(-1, 40), "MAXDELETEDID", good_id(rng)), ("XINFO", "STREAM", key),
        ("XINFO", "STREAM", key, "FULL", *count(rng)), ("XINFO", "STREAM", key, "FULL"), ("XINFO", "GROUPS", key),
    ])


@pytest.mark.parametrize("seed", range(4))
def test_replies(pair, seed):
    pair.check_all(generated(seed, 1500, command))
    pair.check_state()


@pytest.mark.parametrize("seed", range(2))
def test_one_group_that_lives_long(pair, seed):
    """Its stream has no other groups and is not deleted, so that much is pending."""
    rng = random.Random(f"one group {seed}")
    key, group = "k1", "g1"
    commands = [("XGROUP", "CREATE", key, group, "0", "MKSTREAM")]
    last = 0
    for _ in range(1200):
        last += 1
        recent = [f"{rng.randint(max(1, last - 60), last)}-0" for _ in range(rng.randint(1, 8))]
        consumer = rng.choice(CONSUMERS)
        commands += [("XADD", key, f"{last}-0", "f", last), rng.choice([
            ("XREADGROUP", "GROUP", group, consumer, "COUNT", rng.randint(1, 9), "STREAMS", key, rng.choice([">", ">", ">", "0", recent[0]])),
            ("XACK", key, group, *recent), ("XACK", key, group, *recent), ("XDEL", key, *recent[:2]), ("XPENDING", key, group),
            ("XCLAIM", key, group, consumer, 0, *recent, *rng.choice([(), ("FORCE",), ("JUSTID",), ("IDLE", 100_000)])),
            ("XAUTOCLAIM", key, group, consumer, rng.choice([0, 50_000]), rng.choice(["0", recent[0]]), "COUNT", rng.randint(1, 30)),
            ("XTRIM", key, "MAXLEN", rng.randint(30, 60)), ("XPENDING", key, group, "-", "+", 50), ("XINFO", "GROUPS", key),
            ("XPENDING", key, group, "IDLE", 50_000, recent[0], "+", 5), ("XPENDING", key, group, "-", "+", 50, consumer),
            ("XINFO", "STREAM", key, "FULL", "COUNT", rng.randint(0, 20)), ("XINFO", "CONSUMERS", key, group), ("XINFO", "STREAM", key),
            ("XGROUP", "DELCONSUMER", key, group, consumer) if rng.random() < 0.2 else ("XLEN", key),
            ("XGROUP", "SETID", key, group, recent[0]) if rng.random() < 0.2 else ("XREVRANGE", key, "+", "-", "COUNT", 3),
        ])]
    pair.check_all(commands)


def test_arguments(pair):
    """What is refused, and in which order arguments are checked."""
    pair.check_all([
        ("SET", "text", "v"), ("XADD", "s", "1-1", "a", "1"), ("XGROUP", "CREATE", "s", "g", "0"), ("XADD", "s", "*"), ("XADD", "s", "*", "a"),
        ("XADD", "s", "NOMKSTREAM"), ("XADD", "s", "MAXLEN", "5"), ("XADD", "s", "MAXLEN", "~", "5", "a", "b"), ("XADD", "s", "0-0", "a", "b"),
        ("XADD", "none", "0-0", "a", "b"), ("EXISTS", "none"), ("XADD", "none", "0-*", "a", "b"), ("XADD", "none", "0-*", "a", "b"), ("XADD", "s", "1-*", "a", "b"),
        ("XADD", "full", "5-18446744073709551615", "a", "b"), ("XADD", "full", "5-*", "a", "b"), ("XADD", "full", "4-*", "a", "b"),
        ("XADD", "s", "1-18446744073709551615", "a", "b"), ("XADD", "s", "MAXLEN", "1", "MINID", "1", "*", "a", "b"),
        ("XADD", "s", "LIMIT", "5", "*", "a", "b"), ("XADD", "s", "LIMIT", "0", "5-1", "a", "b"), ("XADD", "s", "MAXLEN", "=", "5", "LIMIT", "5", "*", "a", "b"), ("XADD", "s", "MAXLEN", "~", "5", "LIMIT", "x", "*", "a", "b"),
        ("XADD", "text", "1-1", "a", "b"), ("XADD", "text", "NOMKSTREAM", "1-1", "a", "b"), ("XADD", "new", "NOMKSTREAM", "1-1", "a", "b"), ("XADD", "top", "18446744073709551615-18446744073709551615", "a", "b"),
        ("XADD", "top", "*", "a", "b"), ("XADD", "top", "5", "a", "b"), ("XRANGE", "top", "(18446744073709551615-18446744073709551615", "+"), ("XRANGE", "top", "-", "(0-0"), ("XRANGE", "top", "-", "(-"),
        ("XREVRANGE", "top", "+", "-", "COUNT"), ("XREVRANGE", "top", "+", "-", "COUNT", "x"), ("XREVRANGE", "top", "+", "-", "COUNT", "0"), ("XRANGE", "none2", "-", "+", "COUNT", "0"), ("XRANGE", "none2", "x", "+"), ("XRANGE", "text", "-", "+"),
        ("XTRIM", "s", "MAXLEN", "1", "LIMIT", "1"), ("XTRIM", "s", "foo", "1"), ("XTRIM", "s", "LIMIT", "1"), ("XTRIM", "none2", "MAXLEN", "x"), ("XTRIM", "text", "MAXLEN", "1"), ("XTRIM", "s", "MINID", "-"), ("XTRIM", "s", "MINID", "0"),
        ("XDEL", "none2", "x"), ("XDEL", "s", "x"), ("XDEL", "text", "1"), ("XLEN", "text"), ("XLEN", "none2"), ("XSETID", "none2", "1-1"), ("XSETID", "s", "x"), ("XSETID", "s", "1-0"), ("XSETID", "s", "9", "foo"), ("XSETID", "s", "9", "ENTRIESADDED", "x"),
        ("XREAD", "STREAMS", "s"), ("XREAD", "STREAMS", "s", "s", "0"), ("XREAD", "COUNT", "x", "STREAMS", "s", "0"), ("XREAD", "BLOCK", "x", "STREAMS", "s", "0"), ("XREAD", "BLOCK", "-1", "STREAMS", "s", "0"), ("XREAD", "BLOCK", "9223372036854775807", "STREAMS", "s", "0"),
        ("XREAD", "GROUP", "g", "c", "STREAMS", "s", "0"), ("XREAD", "NOACK", "STREAMS", "s", "0"), ("XREAD", "FOO", "STREAMS", "s", "0"), ("XREAD", "STREAMS", "text", "0"), ("XREAD", "STREAMS", "s", "x"), ("XREAD", "COUNT", "1", "COUNT", "2"), ("XREAD", "STREAMS", "s", "+"),
        ("XREADGROUP", "GROUP", "g", "c", "COUNT", "1", "NOACK"), ("XREADGROUP", "COUNT", "1", "BLOCK", "1", "STREAMS", "s", ">"), ("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", "$"), ("XREADGROUP", "GROUP", "none", "c", "STREAMS", "s", ">"),
        ("XREADGROUP", "GROUP", "g", "c", "STREAMS", "none2", ">"), ("XREADGROUP", "GROUP", "g", "c", "STREAMS", "text", ">"), ("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", "none2", ">", "x"), ("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", "18446744073709551615-18446744073709551615"),
        ("XGROUP", "CREATE", "none2", "g", "0"), ("XGROUP", "CREATE", "none2", "g", "x", "MKSTREAM"), ("EXISTS", "none2"), ("XGROUP", "CREATE", "s", "g", "0"), ("XGROUP", "CREATE", "s", "g", "0", "foo"), ("XGROUP", "CREATE", "text", "g", "0"), ("XGROUP", "SETID", "s", "none", "x"), ("XGROUP", "SETID", "s", "g", "x"),
        ("XGROUP", "SETID", "s", "g", "0", "MKSTREAM"), ("XGROUP", "DESTROY", "none2", "g"), ("XGROUP", "DESTROY", "s", "none"), ("XGROUP", "CREATECONSUMER", "s", "none", "c"), ("XGROUP", "DELCONSUMER", "none2", "g", "c"), ("XGROUP", "CREATE", "s", "g2", "0", "ENTRIESREAD", "-2"), ("XGROUP", "FOO"), ("XGROUP",),
        ("XACK", "none2", "g", "x"), ("XACK", "s", "none", "x"), ("XACK", "s", "g", "x"), ("XACK", "text", "g", "1"), ("XPENDING", "s", "none"), ("XPENDING", "none2", "g"), ("XPENDING", "text", "g"), ("XPENDING", "s", "g", "-"), ("XPENDING", "s", "g", "-", "+"), ("XPENDING", "s", "g", "IDLE", "1", "-", "+"), ("XPENDING", "s", "g", "IDLE", "x", "-", "+", "1"),
        ("XPENDING", "s", "g", "x", "+", "1"), ("XPENDING", "s", "g", "-", "+", "x"), ("XPENDING", "s", "g", "-", "+", "1", "none"), ("XCLAIM", "none2", "g", "c", "0", "1"), ("XCLAIM", "s", "none", "c", "0", "1"), ("XCLAIM", "s", "g", "c", "x", "1"), ("XCLAIM", "s", "g", "c", "0", "x"), ("XCLAIM", "s", "g", "c", "0", "1", "IDLE"), ("XCLAIM", "s", "g", "c", "0", "1", "IDLE", "x"),
        ("XCLAIM", "s", "g", "c", "0", "1", "TIME", "x"), ("XCLAIM", "s", "g", "c", "0", "1", "RETRYCOUNT", "x"), ("XCLAIM", "s", "g", "c", "0", "1", "LASTID", "x"), ("XCLAIM", "text", "g", "c", "0", "1"), ("XAUTOCLAIM", "s", "g", "c", "x", "0"), ("XAUTOCLAIM", "s", "g", "c", "0", "x"), ("XAUTOCLAIM", "s", "g", "c", "0", "0", "COUNT", "0"), ("XAUTOCLAIM", "s", "g", "c", "0", "0", "COUNT", "x"),
        ("XAUTOCLAIM", "s", "g", "c", "0", "0", "foo"), ("XAUTOCLAIM", "none2", "g", "c", "0", "0"), ("XINFO", "STREAM", "none2"), ("XINFO", "STREAM", "s", "foo"), ("XINFO", "STREAM", "s", "FULL", "COUNT"), ("XINFO", "STREAM", "s", "FULL", "COUNT", "x"), ("XINFO", "STREAM", "s", "FULL", "COUNT", "-1"), ("XINFO", "STREAM", "text"), ("XINFO", "GROUPS", "none2"), ("XINFO", "CONSUMERS", "s", "none"), ("XINFO", "CONSUMERS", "none2", "g"), ("XINFO", "FOO"),
        ("XINFO", "STREAM", "s", "FULL"), ("XINFO", "CONSUMERS", "s", "g"), ("OBJECT", "ENCODING", "s"), ("TYPE", "s"),
    ])


def test_what_the_clock_says(pair):
    for wire in (pair.redis, pair.tokaido):
        first, second = (wire.run("XADD", "s", "*", "f", "v")[1].decode() for _ in range(2))
        now_ms = int(wire.run("TIME")[1][0][1]) * 1000
        assert abs(int(first.split("-")[0]) - now_ms) < 60_000
        assert tuple(map(int, second.split("-"))) > tuple(map(int, first.split("-")))
        wire.run("XGROUP", "CREATE", "s", "g", "0")
        wire.run("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">")
        pending = wire.run("XPENDING", "s", "g", "-", "+", "10")[1]
        assert all(0 <= int(entry[1][2][1]) < 60_000 for entry in pending)
        wire.run("XCLAIM", "s", "g", "c", "0", first, "IDLE", "100000", "JUSTID")
        assert 100_000 <= int(wire.run("XPENDING", "s", "g", "-", "+", "1")[1][0][1][2][1]) < 160_000
        assert [entry[1][0][1].decode() for entry in wire.run("XPENDING", "s", "g", "IDLE", "90000", "-", "+", "10")[1]] == [first]
        assert wire.run("XADD", "s", str(now_ms + 10**9), "f", "v")[0] == "$"
        assert wire.run("XADD", "s", "*", "f", "v") == ("$", f"{now_ms + 10**9}-1".encode())


def test_transactions_and_scripts(pair):
    pair.check_all([
        ("XADD", "s", "1-1", "a", "1"), ("XGROUP", "CREATE", "s", "g", "0"), ("MULTI",), ("XREAD", "BLOCK", "0", "STREAMS", "s", "$"), ("XREAD", "BLOCK", "0", "STREAMS", "s", "0"),
        ("XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", ">"), ("XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", ">"), ("XACK", "s", "g", "1-1"), ("XADD", "s", "2-1", "a", "2"), ("EXEC",),
    ])
    scripts = [
        "return redis.call('xread', 'streams', 's', '0')", "return redis.call('xreadgroup', 'group', 'g', 'c', 'streams', 's', '>')", "return redis.call('xread', 'streams', 's', '$')",
        "return redis.pcall('xread', 'block', '1', 'streams', 's', '$').err", "return redis.pcall('XREADGROUP', 'GROUP', 'block', 'c', 'count', '1', 'BLOCK', '0', 'STREAMS', 's', '>').err",
        "return redis.call('xadd', 's', '3-1', 'a', 'b')", "return redis.call('xrange', 's', '-', '+')", "return redis.call('xpending', 's', 'g')",
        "redis.setresp(3); return redis.call('xread', 'streams', 's', '0')", "return redis.call('xlen', 's')",
    ]
    pair.check_all([("EVAL", script, "0") for script in scripts])
    assert pair.tokaido.run("EVAL_RO", scripts[0], "0") == pair.redis.run("EVAL_RO", scripts[0], "0")
    for wire in (pair.redis, pair.tokaido):
        kind, message = wire.run("EVAL_RO", scripts[1], "0")
        assert kind == "-" and "Write commands are not allowed from read-only scripts" in message


def test_where_the_keys_are(pair):
    for command in [
        ("XREAD", "STREAMS", "a", "b", "0", "0"), ("XREAD", "COUNT", "5", "BLOCK", "1", "streams", "a", "0"), ("XREADGROUP", "GROUP", "g", "c", "STREAMS", "a", "b", ">", ">"),
        ("XADD", "k", "*", "a", "b"), ("XGROUP", "CREATE", "k", "g", "0"), ("XINFO", "STREAM", "k"), ("XREADGROUP", "GROUP", "streams", "c", "STREAMS", "a", ">"), ("XPENDING", "k", "g"),
    ]:
        pair.check("COMMAND", "GETKEYS", *command)
    names = ["xadd", "xlen", "xrange", "xrevrange", "xread", "xdel", "xtrim", "xsetid", "xreadgroup", "xack", "xpending", "xclaim", "xautoclaim"]
    for name in names:
        expected, ours = (wire.run("COMMAND", "INFO", name)[1][0][1] for wire in (pair.redis, pair.tokaido))
        assert (expected[:2], expected[3:6]) == (ours[:2], ours[3:6]), name
        assert sorted(expected[2][1]) == sorted(ours[2][1]) and sorted(expected[6][1]) == sorted(ours[6][1]), name


def test_a_stream_of_many_entries(pair):
    count = 5000
    pair.check_all([("XADD", "s", f"{i}-1", "f", i) for i in range(1, count)])
    pair.check_all([("XGROUP", "CREATE", "s", "g", "0"), ("XREADGROUP", "GROUP", "g", "c1", "COUNT", 4000, "STREAMS", "s", ">"), ("XPENDING", "s", "g"), ("XINFO", "GROUPS", "s")])
    pair.check_all([("XACK", "s", "g", *[f"{i}-1" for i in range(start, start + 250)]) for start in range(500, 3500, 250)])
    pair.check_all([
        ("XPENDING", "s", "g"), ("XPENDING", "s", "g", "-", "+", 2000), ("XPENDING", "s", "g", "500", "3600", 2000, "c1"), ("XREADGROUP", "GROUP", "g", "c1", "STREAMS", "s", "0"),
        ("XTRIM", "s", "MAXLEN", "3000"), ("XREADGROUP", "GROUP", "g", "c1", "STREAMS", "s", "0"), ("XAUTOCLAIM", "s", "g", "c2", "0", "0", "COUNT", "1500"), ("XPENDING", "s", "g"),
        ("XRANGE", "s", "-", "+"), ("XREVRANGE", "s", "3000", "2500"), ("XINFO", "STREAM", "s", "FULL", "COUNT", "0"), ("XGROUP", "DELCONSUMER", "s", "g", "c2"), ("XINFO", "STREAM", "s", "FULL"),
        ("COPY", "s", "s2"), ("XINFO", "STREAM", "s2", "FULL", "COUNT", "5"), ("XGROUP", "DESTROY", "s", "g"), ("XINFO", "STREAM", "s", "FULL", "COUNT", "5"), ("XTRIM", "s", "MINID", "~", "4000", "LIMIT", "0"), ("XINFO", "STREAM", "s"), ("DEL", "s"), ("XLEN", "s"),
        ("XINFO", "STREAM", "s2", "FULL", "COUNT", "5"), ("XTRIM", "s2", "MAXLEN", "0"), ("XINFO", "STREAM", "s2"), ("XADD", "s2", "1", "a", "b"), ("XADD", "s2", "5000-0", "a", "b"), ("XINFO", "STREAM", "s2"),
    ])


def test_about_trims_so_much_at_once(wire):
    """Debian's Redis trims whole nodes; here it is exact, up to the limit."""
    for start in range(0, 12_000, 500):
        wire.run_all([("XADD", "s", f"{i + 1}", "f", "v") for i in range(start, start + 500)])
    assert wire.run("XTRIM", "s", "MAXLEN", "~", "1000") == (":", "10000")
    assert wire.run("XTRIM", "s", "MAXLEN", "~", "1000", "LIMIT", "7") == (":", "7")
    assert wire.run("XTRIM", "s", "MAXLEN", "~", "1000", "LIMIT", "0") == (":", "993")


def test_a_stream_survives_a_restart(own_server):
    with own_server() as server:
        redis = server.redis()
        for i in range(0, 3000, 500):
            redis.xadd("s", {"n": i}, id=f"{i + 1}-0")
        redis.xgroup_create("s", "g", 0)
        redis.xreadgroup("g", "c", {"s": ">"}, count=4)
        redis.xack("s", "g", "1-0")
        server.kill()
        server.start()
        redis = server.redis()
        assert redis.xlen("s") == 6
        assert redis.xpending("s", "g") == {"pending": 3, "min": b"501-0", "max": b"1501-0", "consumers": [{"name": b"c", "pending": 3}]}
        assert redis.xreadgroup("g", "c", {"s": ">"}) == [[b"s", [(b"2001-0", {b"n": b"2000"}), (b"2501-0", {b"n": b"2500"})]]]


def test_names_that_are_too_long(wire):
    name = "x" * 4097
    wire.run("XADD", "s", "1-1", "a", "b")
    assert wire.run("XGROUP", "CREATE", "s", name, "0")[0] == "-"
    wire.run("XGROUP", "CREATE", "s", "g", "0")
    assert wire.run("XREADGROUP", "GROUP", "g", name, "STREAMS", "s", ">")[0] == "-"
    assert wire.run("XREADGROUP", "GROUP", name, "c", "STREAMS", "s", ">")[1].startswith("NOGROUP")
    assert wire.run("XPENDING", "s", "g", "-", "+", "1", name) == ("*", [])
