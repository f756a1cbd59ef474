"""Scripts of clients: the same replies as from Redis."""

import hashlib
import random
import threading
import time

import pytest

from .scripts import LIBRARIES, RUN
from .wire import Wire


def lines(text):
    return [line for line in text.strip().splitlines() if line]


def set_up(pair):
    pair.check_all([
        ("SET", "string", "v"), ("HSET", "hash", "f", "v"), ("SADD", "set", "m"), ("ZADD", "zset", "1.5", "m"),
        ("RPUSH", "list", "1", "2"),
    ])


def check_scripts(pair, scripts, keys=("a", "b"), arguments=("x", "7")):
    """Runs each script on both, with the same data, and reports all that differ."""
    differences = []
    for script in scripts:
        # In Redis, cjson settings apply to all scripts until then.
        pair.check_all([("SCRIPT", "FLUSH"), ("FLUSHALL",)])
        set_up(pair)
        command = ("EVAL", script, len(keys), *keys, *arguments)
        expected, came = pair.redis.run(*command), pair.tokaido.run(*command)
        if expected != came:
            differences.append(f"{script}\n  Redis   {expected}\n  Tokaido {came}")
        for name in ("a", "k"):
            assert pair.redis.run("GET", name) == pair.tokaido.run("GET", name), script
    assert not differences, f"{len(differences)} differ:\n" + "\n".join(differences)


def test_scripts(pair):
    check_scripts(pair, lines(RUN))


def test_libraries(pair):
    check_scripts(pair, lines(LIBRARIES))


def sha(script):
    return hashlib.sha1(script.encode()).hexdigest()


def test_commands_about_scripts(pair):
    one, two = "return 1", "return redis.call('set', KEYS[1], ARGV[1])"
    pair.check_all([
        ("SCRIPT", "EXISTS", sha(one), sha(two)), ("EVALSHA", sha(one), "0"), ("SCRIPT", "LOAD", one),
        ("SCRIPT", "EXISTS", sha(one), sha(two)), ("EVALSHA", sha(one), "0"), ("EVALSHA", sha(one).upper(), "0"),
        ("EVAL", two, "1", "k", "v"), ("EVALSHA", sha(two), "1", "k", "w"), ("GET", "k"),
        ("EVALSHA_RO", sha(two), "1", "k", "x"), ("EVAL_RO", two, "1", "k", "x"), ("EVALSHA_RO", sha(one), "0"),
        ("GET", "k"), ("SCRIPT", "FLUSH"), ("EVALSHA", sha(two), "1", "k", "w"), ("SCRIPT", "EXISTS", sha(one)),
        ("SCRIPT", "LOAD", "return +"), ("SCRIPT", "EXISTS", sha("return +")), ("SCRIPT", "LOAD", "x"),
        ("EVAL", "return +", "0"), ("EVALSHA", sha("return +"), "0"), ("SCRIPT", "LOAD", "#!lua\nreturn 1"),
        ("SCRIPT", "FLUSH", "ASYNC"), ("SCRIPT", "FLUSH", "sync"), ("SCRIPT", "FLUSH", "X"),
        ("SCRIPT", "FLUSH", "SYNC", "X"), ("SCRIPT", "KILL"), ("SCRIPT", "NOSUCH"), ("SCRIPT",), ("SCRIPT", "EXISTS"),
        ("EVAL_RO", "return redis.call('blpop', 'missing', 0)", "0"),
        ("EVAL_RO", "return redis.call('publish', 'channel', 'message')", "0"),
        ("SCRIPT", "LOAD"), ("SCRIPT", "KILL", "x"), ("EVALSHA", "", "0"), ("EVALSHA", "x" * 40, "0"),
    ])


@pytest.mark.parametrize("name", ["EVAL", "EVAL_RO"])
def test_wrong_arguments(pair, name):
    pair.check_all([(name,), (name, "return 1")])
    for count in ["0", "1", "2", "3", "-1", "x", "", "1.5", "99999999999999999999", " 1"]:
        pair.check_all([(name, "return {#KEYS, #ARGV}", count, "a", "b"), (name, "return {#KEYS, #ARGV}", count)])
        pair.check_all([(name + "SHA", sha("return 1"), count, "a")])


@pytest.mark.parametrize("head", [
    "#!lua", "#!lua flags=no-writes", "#!lua flags=no-writes,allow-stale", "#!lua flags=allow-oom,no-cluster",
    "#!lua flags=allow-cross-slot-keys", "#!lua flags=bad", "#!lua flags=", "#!lua name=x", "#!lua x", "#!luax", "#!",
    "#! lua", "#!LUA", "#!lua  flags=no-writes ", "--#!lua",
])
def test_what_a_script_says_of_itself(pair, head):
    for body in ["return 1", "local r = redis.call('set', 'k', 'v') return r", "\nlocal x = nosuch", "error('x')"]:
        script = f"{head}\n{body}"
        for name in ("EVAL", "EVAL_RO"):
            pair.check_all([(name, script, "0"), (name + "SHA", sha(script), "0"), ("GET", "k"), ("DEL", "k")])
    pair.check_all([("EVAL", head, "0"), ("SCRIPT", "LOAD", head + "\nreturn 1")])


def test_scripts_among_other_commands(pair):
    add = "return redis.call('incrby', KEYS[1], ARGV[1])"
    pair.check_all([
        ("MULTI",), ("SET", "k", "5"), ("EVAL", add, "1", "k", "2"), ("EVALSHA", sha(add), "1", "k", "3"),
        ("SCRIPT", "LOAD", add), ("GET", "k"), ("EXEC",), ("GET", "k"), ("SELECT", "1"), ("EVALSHA", sha(add), "1", "k", "1"),
        ("SELECT", "0"), ("EVAL", "redis.call('select', 1) return redis.call('get', 'k')", "0"), ("GET", "k"),
        ("COMMAND", "GETKEYS", "EVAL", "x", "2", "a", "b", "c"), ("COMMAND", "GETKEYS", "EVALSHA_RO", "x", "1", "a"),
    ])


def value(rng, depth=0):
    """A Lua expression."""
    kinds = ["1", "-7", "3.25", "'text'", "true", "1e15", "'\\0\\255/\"'", "100000"]
    if depth > 3 or rng.random() < 0.5:
        return rng.choice(kinds)
    items = [value(rng, depth + 1) for _ in range(rng.randint(0, 4))]
    if rng.random() < 0.3:
        # Each Lua has its own order of several fields.
        return f"{{a = {value(rng, depth + 1)}}}"
    return "{" + ", ".join(items) + "}"


@pytest.mark.parametrize("seed", range(2))
def test_generated_values(pair, seed):
    rng = random.Random(seed)
    for _ in range(300):
        text = value(rng)
        pair.check_all([
            ("EVAL", f"return {text}", "0"), ("EVAL", f"return cjson.encode({text})", "0"),
            ("EVAL", f"return cjson.decode(cjson.encode({text}))", "0"), ("EVAL", f"return cmsgpack.pack({text})", "0"),
            ("EVAL", f"return {{cmsgpack.unpack(cmsgpack.pack({text}))}}", "0"),
        ])


def test_a_failed_script_leaves_nothing(wire):
    """Redis would keep the earlier writes."""
    reply = wire.run("EVAL", "redis.call('set', 'k', 'v') redis.call('incr', 'k')", "0")
    assert reply[0] == "-" and reply[1].startswith("ERR value is not an integer or out of range script: ")
    assert wire.run("EXISTS", "k") == (":", "0")
    assert wire.run("EVAL", "redis.call('set', 'k', 'v') return {err = 'NO but'}", "0") == ("-", "NO but")
    assert wire.run("GET", "k") == ("$", b"v")


def test_settings_hold_for_one_script(wire):
    assert wire.run("EVAL", "cjson.encode_number_precision(3) return cjson.encode(1/3)", "0") == ("$", b"0.333")
    assert wire.run("EVAL", "return cjson.encode(1/3)", "0") == ("$", b"0.33333333333333")
    own = "local c = cjson.new() c.encode_number_precision(3) return {c.encode(1/3), cjson.encode(1/3)}"
    assert wire.run("EVAL", own, "0") == ("*", [("$", b"0.333"), ("$", b"0.33333333333333")])


@pytest.mark.parametrize("name", ["EVAL", "EVAL_RO"])
def test_a_script_is_killed(wire, tokaido_server, name):
    other, replies = Wire(tokaido_server.port, 2), []
    write = "" if name == "EVAL_RO" else "redis.call('set', 'k', 'v') "
    # Catching errors does not save it.
    script = write + "while true do pcall(function() while true do end end) end"
    thread = threading.Thread(target=lambda: replies.append(other.run(name, script, "0")))
    thread.start()
    # It would be stopped after a second anyway.
    while (reply := wire.run("SCRIPT", "KILL"))[0] != "+" and thread.is_alive():
        assert reply == ("-", "NOTBUSY No scripts in execution right now.")
        time.sleep(0.005)
    thread.join()
    assert reply == ("+", "OK")
    assert replies == [("-", f"ERR Script killed by user with SCRIPT KILL. script: {sha(script)}")]
    assert wire.run("EXISTS", "k") == (":", "0")
    assert other.run(name, "return 1", "0") == (":", "1")
    other.close()


def test_a_script_is_stopped_at_its_limits(wire):
    reply = wire.run("EVAL", "redis.call('set', 'k', 'v') while true do end", "0")
    assert "was stopped after 1000 ms, its time limit; nothing of it remains" in reply[1]
    memory = "redis.call('set', 'k', 'v') local t = {} for i = 1, 1e9 do t[i] = {} end"
    reply = wire.run("EVAL", memory, "0")
    assert reply[0] == "-" and "limit; nothing of it remains" in reply[1]
    assert wire.run("EXISTS", "k") == (":", "0")
    assert wire.run("EVAL", "return 1", "0") == (":", "1")


def test_scripts_are_forgotten_when_there_are_too_many(wire):
    wire.run("SCRIPT", "FLUSH")
    names = [wire.run("SCRIPT", "LOAD", f"return {i}")[1] for i in range(1000)]
    wire.run("EVALSHA", names[0], "0")
    wire.run("EVAL", "return 'one more'", "0")
    exist = [int(text) for _, text in wire.run("SCRIPT", "EXISTS", *names)[1]]
    assert exist == [1, 0] + [1] * 998
    assert wire.run("EVAL", "-" * (1 << 20) + "- too long", "0")[1].startswith("ERR a script has at most 1048576 bytes")


def test_what_a_failed_script_wrote_can_be_kept(own_server):
    options = ["--keep-failed-scripts", "--script-ms", "50", "--sync", "os", "--workers", "1"]
    with own_server(options=options) as server:
        wire = Wire(server.port, 2)
        reply = wire.run("EVAL", "redis.call('set', 'k', 'v') redis.call('incr', 'k')", "0")
        assert reply[0] == "-" and reply[1].startswith("ERR value is not an integer or out of range script: ")
        assert wire.run("GET", "k") == ("$", b"v")
        assert wire.run("EVAL", "redis.call('set', 'k', 'w') while true do end", "0")[0] == "-"
        long_key = "redis.call('set', 'k', 'w') pcall(redis.call, 'mset', 'other', 'x', ('k'):rep(5000), 'x')"
        assert "nothing of it remains: a key has 1 to 4096 bytes" in wire.run("EVAL", long_key, "0")[1]
        assert wire.run("MGET", "k", "other") == ("*", [("$", b"v"), ("null",)])
        wire.close()
