"""Client scripts that do not end: all are stopped, the data stays unchanged, and others are answered
meanwhile. `TOKAIDO_RUNAWAYS` is the number of scripts."""

import itertools
import os
import threading

import pytest
import redis

COUNT = int(os.environ.get("TOKAIDO_RUNAWAYS", "200"))
SCRIPT_MS = 20

SHAPES = [
    "while true do end",
    "repeat until false",
    "::again:: goto again",
    "for i = 1, math.huge do end",
    "local function f() return f() end f()",
    "while true do pcall(function() while true do end end) end",
    "while true do pcall(error, 'x') end",
    "xpcall(function() while true do end end, function() while true do end end)",
    "coroutine.wrap(function() while true do end end)()",
    "local c = coroutine.wrap(function() while true do coroutine.yield() end end) while true do c() end",
    "while true do redis.call('set', KEYS[1], 'w') end",
    "while true do redis.pcall('incr', KEYS[1]) end",
    "while true do redis.pcall('nosuch') end",
    "local t = setmetatable({}, {__index = function() while true do end end}) return t.x",
    "table.sort({3, 2, 1}, function() while true do end end)",
    "string.gsub('a', 'a', function() while true do end end)",
    "while true do string.find(('a'):rep(5000), 'a*a*a*a*b') end",
    "while true do cjson.decode(cjson.encode({1, {2}, 'x'})) end",
    "while true do cmsgpack.unpack(cmsgpack.pack({1, {2}, 'x'})) end",
    "local t = {} for i = 1, math.huge do t[i] = {} end",
    "local s = 'x' while true do s = s .. s end",
    "while true do loadstring('return 1')() end",
]


def test_runaways_are_stopped_and_leave_nothing(own_server):
    limits = ["--script-ms", str(SCRIPT_MS), "--script-memory-bytes", str(32 << 20)]
    with own_server(options=["--sync", "os", "--workers", "2", *limits]) as server:
        client, done, answered = server.redis(), threading.Event(), []
        client.set("k", "v")

        def read():
            with server.redis() as own:
                for count in itertools.count():
                    if done.is_set():
                        answered.append(count)
                        return
                    assert own.get("k") == b"v"

        reader = threading.Thread(target=read)
        reader.start()
        for shape, _ in zip(itertools.cycle(SHAPES), range(COUNT)):
            with pytest.raises(redis.ResponseError):
                client.eval(f"redis.call('set', KEYS[1], 'w') {shape}", 1, "k")
        done.set()
        reader.join()
        assert client.get("k") == b"v"
        assert client.eval("return 1", 0) == 1
        # Others were answered more often than scripts ran.
        assert answered[0] > COUNT
