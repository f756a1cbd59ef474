"""An operator's tools to watch a server: SLOWLOG, LATENCY, MONITOR and CONFIG, with Redis's answers."""

import re

import pytest

from .wire import Wire

SETTINGS = {"slowlog-log-slower-than": "10000", "slowlog-max-len": "128", "latency-monitor-threshold": "0", "notify-keyspace-events": ""}


@pytest.fixture(autouse=True)
def settings_of_their_own(pair):
    """A test's settings are undone after it, and no data is left for tests that use only one server."""
    yield
    for wire in (pair.redis, pair.tokaido):
        wire.run("FLUSHALL")
        wire.run("CONFIG", "SET", *(text for setting in SETTINGS.items() for text in setting))


def slow_commands(wire):
    """The arguments of the slow log's entries, newest first, without ids, times and addresses."""
    _, entries = wire.run("SLOWLOG", "GET", -1)
    return [entry[1][3] for entry in entries]


def test_what_is_slow_is_noted(pair):
    pair.check_all([("CONFIG", "SET", "slowlog-log-slower-than", 0), ("SLOWLOG", "RESET")])
    pair.check_all([
        ("SET", "k", "v"), ("SET", "k", "x" * 300), ("RPUSH", "list", *range(40)), ("GET", "list"), ("AUTH", "password"), ("AUTH", "user", "password"),
        ("LPUSH", "list", *range(30)), ("LPUSH", "list", *range(31)), ("NOSUCH", "a"), ("GET",),
    ])
    assert slow_commands(pair.redis) == slow_commands(pair.tokaido)
    pair.check_all([("CONFIG", "SET", "slowlog-max-len", 3), ("SLOWLOG", "LEN")])
    assert slow_commands(pair.redis) == slow_commands(pair.tokaido)
    pair.check_all([("CONFIG", "SET", "slowlog-log-slower-than", -1), ("SLOWLOG", "RESET"), ("SET", "k", "v"), ("SLOWLOG", "LEN")])
    for words in ["GET x", "GET -2", "GET 1 2", "LEN x", "RESET x", "", "WHAT"]:
        pair.check("SLOWLOG", *words.split())


def test_settings_are_changed_or_none_is(pair):
    names = list(SETTINGS)
    pair.check_all([("CONFIG", "GET", name) for name in names])
    pair.check_all([
        ("CONFIG", "SET", names[0], 5, names[1], 6, names[2], 7, names[3], "KEA"), *[("CONFIG", "GET", name) for name in names],
        ("CONFIG", "SET", names[0], 8, names[1], "x"), ("CONFIG", "SET", names[0], 8, names[3], "Kq"),
        ("CONFIG", "SET", names[0], 8, names[0], 9), ("CONFIG", "SET", "nosuch", 1), ("CONFIG", "SET", names[0]), ("CONFIG", "SET", names[0], 1, names[1]),
        ("CONFIG", "SET", names[2].upper(), 70), *[("CONFIG", "GET", name) for name in names],
        ("CONFIG", "RESETSTAT"),
    ])


def test_latency_of_what_was_never_slow(pair):
    pair.check_all([("LATENCY", "RESET"), ("LATENCY", "LATEST"), ("LATENCY", "HISTORY", "command"), ("LATENCY", "RESET", "command"), ("LATENCY", "GRAPH", "x")])
    pair.check_all([("LATENCY", *words.split()) for words in ("", "HISTORY", "LATEST x", "WHAT", "DOCTOR x")])


def test_latency_of_what_is_slow(pair):
    wire = pair.tokaido
    wire.run_all([("LATENCY", "RESET"), ("CONFIG", "SET", "latency-monitor-threshold", 1)])
    # Some of these take a millisecond on any machine.
    for size in (10, 200_000):
        wire.run("EVAL", "for i = 1, tonumber(ARGV[1]) do redis.call('SET', 'k', i) end", 0, size)
    _, events = wire.run("LATENCY", "LATEST")
    (name, at_s, last, longest), = [event[1] for event in events if event[1][0][1] == b"command"]
    assert 1 <= int(last[1]) <= int(longest[1])
    _, history = wire.run("LATENCY", "HISTORY", "command")
    assert history[-1][1] == [at_s, last]
    assert b"#" in wire.run("LATENCY", "GRAPH", "command")[1]
    assert b"on average" in wire.run("LATENCY", "DOCTOR")[1]
    _, rows = wire.run("LATENCY", "HISTOGRAM", "eval")
    assert b"eval" in str(rows).encode()
    assert wire.run("LATENCY", "RESET", "command", "other") == (":", "1")


def shown(monitor, count):
    """The next `count` lines of MONITOR, without times and ports."""
    lines = [monitor.reply() for _ in range(count)]
    return [(kind, re.sub(r"^[0-9.]+ ", "", re.sub(r"127.0.0.1:\d+", "client", line))) for kind, line in lines]


def test_a_monitor_sees_what_others_run(pair, redis_port, tokaido_server):
    monitors = [Wire(redis_port, 2), Wire(tokaido_server.port, 2)]
    for monitor in monitors:
        assert monitor.run("MONITOR") == ("+", "OK")
    pair.check_all([
        ("SET", "k", 'a "quoted" \\ text\n'), ("GET", b"\x00\xff\x07\t"), ("SELECT", 3), ("GET", "k"), ("AUTH", "secret"), ("NOSUCH",), ("GET",),
        ("CONFIG", "GET", "save"), ("INCR", "k"), ("MULTI",), ("SET", "a", 1), ("GET", "a"), ("EXEC",), ("LPUSH", "a", 1), ("SELECT", 0),
        ("EVAL", "redis.call('select', 4) return redis.call('get', KEYS[1])", 1, "k"), ("PING",),
    ])
    found = [shown(monitor, 15) for monitor in monitors]
    assert sorted(found[0]) == sorted(found[1])
    assert [line for line in found[1] if "lua" not in line[1] and "EVAL" not in line[1]] == [
        line for line in found[0] if "lua" not in line[1] and "EVAL" not in line[1]
    ]
    for monitor in monitors:
        monitor.close()


def test_a_monitor_ends(pair, tokaido_server):
    wire = Wire(tokaido_server.port, 2)
    assert wire.run("MONITOR") == ("+", "OK")
    assert b"flags=O" in pair.tokaido.run("CLIENT", "LIST")[1]
    wire.run("RESET")
    pair.tokaido.run("SET", "k", "v")
    assert wire.run("PING") == ("+", "PONG")
    assert b"flags=O" not in pair.tokaido.run("CLIENT", "LIST")[1]
    wire.close()


def test_commands_are_counted(pair):
    for wire in (pair.redis, pair.tokaido):
        wire.run("CONFIG", "RESETSTAT")
    pair.check_all([("SET", "k", "v"), ("GET", "k"), ("GET", "k"), ("GET",), ("LPUSH", "k", 1), ("CLIENT", "GETNAME")])
    texts = [wire.run("INFO", "commandstats")[1].decode() for wire in (pair.redis, pair.tokaido)]
    counted = [sorted(re.sub(r",usec=[0-9]+,usec_per_call=[0-9.]+", "", line) for line in text.splitlines() if "resetstat" not in line) for text in texts]
    assert counted[0] == counted[1]
