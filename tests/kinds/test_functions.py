"""Functions in libraries that clients load: the same replies as from Redis."""

import threading
import time

import pytest
import redis
from support import tokaido

from .scripts import LIBRARIES, RUN
from .wire import Wire

# Contents of a library while it is being loaded, one per line.
AT_LOAD = r"""
redis.register_function('f', function(keys, args) return {keys, args} end)
redis.register_function{function_name='f', callback=function(keys, args) return {keys, args} end}
redis.register_function{function_name='f', callback=function() return 1 end, description='what it does'}
redis.register_function{function_name='f', callback=function() return 1 end, flags={}}
redis.register_function{function_name='f', callback=function() return redis.call('set', 'k', 'v') end, flags={'no-writes'}}
redis.register_function{function_name='f', callback=function() return redis.call('get', 'k') end, flags={'no-writes', 'allow-stale'}}
redis.register_function{function_name='f', callback=function() end, flags={'allow-cross-slot-keys', 'no-cluster', 'allow-oom'}}
redis.register_function(1, function() return 'one' end)
redis.register_function{function_name=1, callback=function() end, description=2}
redis.register_function('f', function() return g() end)
local function g() return 7 end redis.register_function('f', function() return g() end)
local count = 0 redis.register_function('f', function() count = count + 1 return count end)
redis.register_function('f', function(keys) return redis.call('set', keys[1], 'v') end)
redis.register_function('f', function() return redis.call('incr', 'string') end)
redis.register_function('f', function() return redis.pcall('incr', 'string') end)
redis.register_function('f', function() local r = redis.call('incr', 'string') return r end)
redis.register_function('f', function() error('boom') end)
redis.register_function('f', function() error({err = 'MINE own'}) end)
redis.register_function('f', function() return redis.error_reply('MINE own') end)
redis.register_function('f', function() return nosuch end)
redis.register_function('f', function() nosuch = 1 end)
redis.register_function('f', function() return KEYS end)
redis.register_function('f', function() return tostring(redis.register_function) end)
redis.register_function('f', function() redis.setresp(3) return redis.call('hgetall', 'hash') end)
redis.register_function('f', function() return {math.floor(1.5), cjson.encode({1}), cmsgpack.pack(1), bit.bor(1, 2)} end)
redis.register_function('f', function() return redis.sha1hex('') end)
redis.register_function('f', function() return ('x'):rep(3) end)
local name = ('f'):rep(3) redis.register_function(name, function() return 1 end) redis.register_function('f', function() return 2 end)
local own = redis redis.register_function('f', function() return own.register_function('g', function() end) end)
local own = redis redis.register_function('f', function() return own.call('get', 'k') end)
redis.log(redis.LOG_WARNING, 'x') redis.register_function('f', function() return 1 end)
redis.register_function('f', function() return 1 end) return {1, {2}}
redis.register_function('f', function() return loadstring('return 1')() end)
redis.register_function('f', function() return tostring(print) end)
redis.register_function('f', function() return redis.call('fcall', 'f', 0) end)
redis.register_function('f', function() return redis.call('function', 'list') end)
redis.register_function('f', function() return redis.call('eval', 'return 1', 0) end)
redis.register_function('f', function() return redis.call('select', 1) end)
return 1
redis.call('get', 'x')
redis.pcall('get', 'x')
redis.setresp(3)
redis.sha1hex('x')
redis.breakpoint()
redis.nosuch()
redis.log()
redis.log(9, 'x')
return _G.redis.call
local x = KEYS
local x = ARGV
print(1)
math.random()
error('boom')
pcall(redis.call)
pairs({})
cjson.encode(1)
loadstring('return 1')()
x = 1
x()
redis = 1
redis.foo = 1
local a = nil; a.b()
return +
redis.register_function()
redis.register_function(1, 2)
redis.register_function(1, 2, 3)
redis.register_function({}, function() end)
redis.register_function(nil, function() end)
redis.register_function('f', 1)
redis.register_function('f')
redis.register_function(1)
redis.register_function('a b', function() end)
redis.register_function('', function() end)
redis.register_function('a-b', function() end)
redis.register_function{}
redis.register_function{1, 2}
redis.register_function{[true] = 1}
redis.register_function{function_name='f'}
redis.register_function{callback=function() end}
redis.register_function{function_name='f', callback=1}
redis.register_function{function_name={}, callback=function() end}
redis.register_function{function_name='f', callback=function() end, description={}}
redis.register_function{function_name='f', callback=function() end, flags=1}
redis.register_function{function_name='f', callback=function() end, flags={'bad'}}
redis.register_function{function_name='f', callback=function() end, flags={1}}
redis.register_function{function_name='f', callback=function() end, flags={'no-writes', 'no-writes'}}
redis.register_function{function_name='f', callback=function() end, nosuch=1}
redis.register_function('f', function() end) redis.register_function('f', function() end)
redis.register_function('f', function() end) nosuch()
"""


def library(body, name="lib", head=None):
    return f"{head or f'#!lua name={name}'}\n{body}"


def sorted_list(reply):
    """FUNCTION LIST with libraries and functions sorted."""
    if isinstance(reply, (list, tuple)):
        parts = [sorted_list(part) for part in reply]
        if parts and all(isinstance(part, list) and part[0] in list("*%~+") for part in parts):
            return sorted(parts, key=repr)
        return parts
    return reply


def set_up(pair):
    pair.check_all([
        ("FLUSHALL",), ("FUNCTION", "FLUSH"), ("SET", "string", "v"), ("SET", "k", "v"), ("HSET", "hash", "f", "v"),
    ])


def check_list(pair, *arguments):
    command = ("FUNCTION", "LIST", *arguments)
    assert sorted_list(pair.redis.run(*command)) == sorted_list(pair.tokaido.run(*command))


def differing(pair, text, commands):
    differences = []
    for command in commands:
        expected, came = pair.redis.run(*command), pair.tokaido.run(*command)
        if expected != came:
            differences.append(f"{text}\n  {command}\n  Redis   {expected}\n  Tokaido {came}")
    return differences


def test_libraries(pair):
    differences = []
    for body in AT_LOAD.strip().splitlines():
        set_up(pair)
        differences += differing(pair, body, [
            ("FUNCTION", "LOAD", library(body)), ("FCALL", "f", "1", "a", "b"), ("FCALL_RO", "f", "1", "a", "b"),
            ("FUNCTION", "LOAD", library(body)), ("GET", "k"), ("FUNCTION", "STATS"),
        ])
        check_list(pair, "WITHCODE")
    assert not differences, f"{len(differences)} differ:\n" + "\n".join(differences)


def test_bodies_of_scripts(pair):
    """A function does what a script does by itself; in scripts that name the line, the line differs."""
    differences = []
    for body in RUN.strip().splitlines() + LIBRARIES.strip().splitlines():
        # In Redis, cjson settings apply to the whole server, and `local` functions are the test's own matter.
        if "cjson.encode_" in body or "cjson.decode_" in body:
            continue
        set_up(pair)
        body = body.replace("KEYS", "keys").replace("ARGV", "argv")
        code = library(f"redis.register_function('f', function(keys, argv) {body} end)")
        loaded = [wire.run("FUNCTION", "LOAD", code)[0] for wire in (pair.redis, pair.tokaido)]
        assert loaded[0] == loaded[1], body
        differences += differing(pair, body, [("FCALL", "f", "2", "a", "b", "x", "7"), ("GET", "a")])
    assert not differences, f"{len(differences)} differ:\n" + "\n".join(differences)


@pytest.mark.parametrize("head", [
    "#!lua name=a", "#!LUA name=a", "#!lua NAME=a", "#!lua name=a name=b", "#!lua name=", "#!lua name=a-b", "#!lua", "#!",
    "#! lua name=a", "#!lua name=a flags=no-writes", "#!lua x", "#!nosuch name=a", "#!lua name=a ", "", "--", "#!lua  name=a",
    "#!nosuch", "#!lua name=a b", "#!lua name=\tx", "!#lua name=a",
])
def test_the_first_line(pair, head):
    set_up(pair)
    body = "redis.register_function('f', function() return 1 end)"
    pair.check_all([
        ("FUNCTION", "LOAD", f"{head}\n{body}"), ("FCALL", "f", "0"), ("FUNCTION", "LOAD", head),
        ("FUNCTION", "LOAD", "REPLACE", f"{head}\n{body}"),
    ])


ONE = library("redis.register_function('one', function() return 1 end)", "one")
TWO = library("redis.register_function('two', function() return 2 end)\n"
              "redis.register_function{function_name='three', callback=function() return 3 end, flags={'no-writes'}}", "two")
OTHER_ONE = library("redis.register_function('one', function() return 'other' end)", "other")
NEW_ONE = library("redis.register_function('uno', function() return 'uno' end)", "one")


def test_commands_about_libraries(pair):
    set_up(pair)
    pair.check_all([
        ("FUNCTION", "LIST"), ("FUNCTION", "STATS"), ("FCALL", "one", "0"), ("FUNCTION", "LOAD", ONE), ("FUNCTION", "LOAD", ONE),
        ("FUNCTION", "LOAD", "REPLACE", ONE), ("FUNCTION", "LOAD", "replace", ONE), ("FUNCTION", "LOAD", "NOSUCH", ONE),
        ("FUNCTION", "LOAD", "REPLACE", "REPLACE", ONE), ("FUNCTION", "LOAD"), ("FUNCTION", "LOAD", "REPLACE"),
        ("FUNCTION", "LOAD", OTHER_ONE), ("FUNCTION", "LOAD", "REPLACE", OTHER_ONE), ("FCALL", "one", "0"),
        ("FUNCTION", "LIST"), ("FUNCTION", "LIST", "WITHCODE"), ("FUNCTION", "LIST", "LIBRARYNAME", "o*"),
        ("FUNCTION", "LIST", "LIBRARYNAME", "x*"), ("FUNCTION", "LIST", "LIBRARYNAME"), ("FUNCTION", "LIST", "x"),
        ("FUNCTION", "LIST", "withcode", "withcode"), ("FUNCTION", "LIST", "libraryname", "one", "withcode"),
        ("FUNCTION", "LIST", "libraryname", "one", "libraryname", "one"), ("FUNCTION", "STATS"),
        ("FUNCTION", "LOAD", TWO), ("FUNCTION", "STATS"), ("FCALL", "two", "0"), ("FCALL", "three", "0"),
        ("FCALL_RO", "two", "0"), ("FCALL_RO", "three", "0"), ("FUNCTION", "LOAD", "REPLACE", NEW_ONE), ("FCALL", "one", "0"),
        ("FCALL", "uno", "0"), ("FUNCTION", "LOAD", OTHER_ONE), ("FCALL", "one", "0"), ("FUNCTION", "DELETE", "nosuch"),
        ("FUNCTION", "DELETE", "one"), ("FCALL", "uno", "0"), ("FUNCTION", "DELETE"), ("FUNCTION", "DELETE", "a", "b"),
        ("FLUSHALL",), ("FUNCTION", "STATS"), ("FLUSHDB",), ("DBSIZE",), ("KEYS", "*"), ("FCALL", "one", "0"),
        ("FUNCTION", "FLUSH", "x"), ("FUNCTION", "FLUSH", "SYNC", "x"), ("FUNCTION", "FLUSH", "sync"), ("FUNCTION", "LIST"),
        ("FUNCTION", "FLUSH", "ASYNC"), ("FUNCTION", "KILL"), ("FUNCTION", "KILL", "x"), ("FUNCTION", "NOSUCH"), ("FUNCTION",),
        ("FUNCTION", "STATS", "x"), ("FUNCTION", "DUMP", "x"),
    ])


@pytest.mark.parametrize("name", ["FCALL", "FCALL_RO"])
def test_wrong_arguments(pair, name):
    set_up(pair)
    body = "redis.register_function{function_name='f', callback=function(k, a) return {#k, #a} end, flags={'no-writes'}}"
    pair.check_all([("FUNCTION", "LOAD", library(body)), (name,), (name, "f"), (name, "nosuch", "0"), (name, "nosuch", "x")])
    for count in ["0", "1", "2", "3", "-1", "x", "", "1.5", "99999999999999999999", " 1"]:
        pair.check_all([(name, "f", count, "a", "b"), (name, "f", count)])
    pair.check_all([("COMMAND", "GETKEYS", name, "f", "2", "a", "b", "c")])


def test_libraries_in_a_transaction(pair):
    set_up(pair)
    pair.check_all([
        ("MULTI",), ("FUNCTION", "LOAD", ONE), ("FCALL", "one", "0"), ("FUNCTION", "STATS"), ("EXEC",), ("FCALL", "one", "0"),
        ("MULTI",), ("FUNCTION", "DELETE", "one"), ("DISCARD",), ("FCALL", "one", "0"), ("SELECT", "3"), ("FCALL", "one", "0"),
        ("SELECT", "0"), ("EVAL", "return redis.call('fcall', 'one', 0)", "0"),
        ("EVAL", "return redis.call('function', 'load', 'x')", "0"), ("EVAL", "return redis.call('function', 'flush')", "0"),
    ])


def test_payloads(pair):
    set_up(pair)
    for one, other in [(pair.redis, pair.tokaido), (pair.tokaido, pair.redis)]:
        pair.check_all([("FUNCTION", "FLUSH"), ("FUNCTION", "LOAD", ONE), ("FUNCTION", "LOAD", TWO)])
        payload = one.run("FUNCTION", "DUMP")[1]
        for wire in (one, other):
            assert wire.run("FUNCTION", "RESTORE", payload)[1].endswith("already exists")
            assert wire.run("FUNCTION", "RESTORE", payload, "replace") == ("+", "OK")
        pair.check_all([
            ("FUNCTION", "FLUSH"), ("FUNCTION", "RESTORE", payload), ("FCALL", "three", "0"), ("FUNCTION", "FLUSH"),
            ("FUNCTION", "LOAD", NEW_ONE), ("FUNCTION", "RESTORE", payload, "APPEND"), ("FCALL", "uno", "0"),
            ("FUNCTION", "RESTORE", payload, "FLUSH"), ("FCALL", "uno", "0"), ("FCALL", "one", "0"), ("FUNCTION", "FLUSH"),
            ("FUNCTION", "LOAD", OTHER_ONE), ("FUNCTION", "RESTORE", payload, "REPLACE"), ("FCALL", "two", "0"),
            ("FCALL", "one", "0"), ("FUNCTION", "STATS"),
        ])
        pair.check_all([
            ("FUNCTION", "RESTORE", payload[:-1]), ("FUNCTION", "RESTORE", b"x" + payload), ("FUNCTION", "RESTORE", ""),
            ("FUNCTION", "RESTORE", payload, "NOSUCH"), ("FUNCTION", "RESTORE", payload, "FLUSH", "x"), ("FUNCTION", "RESTORE"),
            ("FUNCTION", "RESTORE", "x", "NOSUCH"),
        ])
    # Redis compresses long values.
    long_one = library("-- " + "again and " * 1000 + "\nredis.register_function('f', function() return 'long' end)")
    pair.check_all([("FUNCTION", "FLUSH"), ("FUNCTION", "LOAD", long_one)])
    pair.check_all([("FUNCTION", "RESTORE", pair.redis.run("FUNCTION", "DUMP")[1], "REPLACE"), ("FCALL", "f", "0")])


def test_every_connection_finds_what_is_loaded(wire, tokaido_server):
    """The server has two workers, each with its own virtual machine."""
    others = [Wire(tokaido_server.port, 2) for _ in range(4)]
    for turn in range(10):
        code = library(f"redis.register_function{{function_name='f', callback=function() return {turn} end, flags={{'no-writes'}}}}")
        assert wire.run("FUNCTION", "LOAD", "REPLACE", code) == ("$", b"lib")
        for other in others * 3:
            assert other.run("FCALL_RO", "f", "0") == (":", str(turn))
    for other in others:
        other.close()


def test_a_failed_function_leaves_nothing(wire):
    """Redis would keep the earlier writes."""
    code = library("redis.register_function('f', function() redis.call('set', 'k', 'v') redis.call('incr', 'k') end)")
    assert wire.run("FUNCTION", "LOAD", "REPLACE", code) == ("$", b"lib")
    reply = wire.run("FCALL", "f", "0")
    assert reply[0] == "-" and reply[1].startswith("ERR value is not an integer or out of range script: f, on @user_function:2")
    assert wire.run("EXISTS", "k") == (":", "0")
    # A library loaded in a failed transaction does not exist.
    wire.run_all([("MULTI",), ("FUNCTION", "LOAD", "REPLACE", library("redis.register_function('g', function() end)"))])
    assert wire.run_all([("FCALL", "g", "0"), ("FCALL", "f", "0"), ("EXEC",)])[-1][0] == "-"
    assert wire.run("FCALL", "g", "0") == ("-", "ERR Function not found")
    assert wire.run("FCALL", "f", "0") == reply


@pytest.mark.parametrize("flags", ["", "'no-writes'"], ids=["writes", "reads"])
def test_a_function_is_killed_and_told_of(wire, tokaido_server, flags):
    other, replies = Wire(tokaido_server.port, 2), []
    code = library(f"redis.register_function{{function_name='f', callback=function(keys) while true do end end, flags={{{flags}}}}}")
    wire.run("FUNCTION", "LOAD", "REPLACE", code)
    thread = threading.Thread(target=lambda: replies.append(other.run("FCALL", "f", "1", "k", "a")))
    thread.start()
    # It would be stopped after a second anyway.
    while (told := wire.run("FUNCTION", "STATS")[1])[:2] and b"duration_ms" not in repr(told).encode() and thread.is_alive():
        time.sleep(0.005)
    told = repr(told)
    assert all(part in told for part in ("b'f'", "b'FCALL'", "b'k'", "b'a'", "b'duration_ms'"))
    assert wire.run("SCRIPT", "KILL") == ("-", "NOTBUSY No scripts in execution right now.")
    assert wire.run("FUNCTION", "KILL") == ("+", "OK")
    thread.join()
    assert replies == [("-", "ERR Script killed by user with FUNCTION KILL. script: f")]
    other.close()


def test_what_is_loaded_is_limited(own_server):
    sizes = ["--redis-script-bytes-max", "20000", "--redis-functions-bytes-max", "100000"]
    limits = ["--script-ms", "200", "--script-memory-bytes", str(32 << 20), "--sync", "os"]
    with own_server(options=[*sizes, *limits]) as server:
        wire = Wire(server.port, 2)
        reply = wire.run("FUNCTION", "LOAD", library("while true do end"))
        assert reply == ("-", "ERR Error registering functions: ERR FUNCTION LOAD timeout")
        reply = wire.run("FUNCTION", "LOAD", library("local t = {} for i = 1, 1e9 do t[i] = {} end"))
        assert reply[0] == "-" and reply[1].startswith("ERR Error registering functions: ERR")
        reply = wire.run("FUNCTION", "LOAD", library("--" + "x" * 20000))
        assert reply == ("-", "ERR a library has at most 20000 bytes (redis_script_bytes_max)")
        many = "local i = 0 while i < 20000 do i = i + 1 redis.register_function('f' .. ('x'):rep(100) .. i, function() end) end"
        assert "at most 1048576 bytes" in wire.run("FUNCTION", "LOAD", library(many))[1]
        body = "redis.register_function('f', function() while true do end end)"
        assert wire.run("FUNCTION", "LOAD", "REPLACE", library(body)) == ("$", b"lib")
        assert "was stopped after 200 ms, its time limit; nothing of it remains" in wire.run("FCALL", "f", "0")[1]
        padded = [library(f"-- {'x' * 19000}\nredis.register_function('f{i}', function() end)", f"lib{i}") for i in range(6)]
        replies = [wire.run("FUNCTION", "LOAD", "REPLACE", code) for code in padded]
        assert replies[:5] == [("$", f"lib{i}".encode()) for i in range(5)]
        assert replies[5] == ("-", "ERR all libraries together have at most 100000 bytes (redis_functions_bytes_max)")
        assert wire.run("FCALL", "f4", "0") == ("null",) and wire.run("FCALL", "f5", "0")[0] == "-"
        wire.close()


def test_functions_outlive_the_server(own_server, tmp_path):
    with own_server(options=["--sync", "os"]) as server:
        client = server.redis()
        assert client.function_load(ONE) == b"one"
        client.flushall()
        assert client.fcall("one", 0) == 1
        assert client.execute_command("DBSIZE") == 0 and client.execute_command("KEYS", "*") == []
        with pytest.raises(redis.ResponseError):
            client.execute_command("SELECT", ".internal")
        server.stop()
        assert tokaido("check", server.directory, "--salvage", tmp_path / "salvaged").returncode == 0
        server.start()
        client = server.redis()
        assert client.fcall("one", 0) == 1
        assert tokaido("backup", server.directory, tmp_path / "backup").returncode == 0
        assert tokaido("check", tmp_path / "backup").returncode == 0
        [listed] = client.function_list(library="one", withcode=True)
        assert ONE.encode() in listed
        client.function_delete("one")
        server.stop()
        server.start()
        assert server.redis().function_list() == []
    for copy in ("backup", "salvaged"):
        with own_server(copy) as server:
            assert server.redis().fcall("one", 0) == 1
            assert [database for database in server.redis().info("keyspace")] == []
