"""Tokyo Tyrant scripts in its own Lua: called through every protocol, by the server itself, and reloaded."""

import json
import socket
import struct
import threading
import urllib.error
import urllib.request

import pytest
import redis
from support import free_port, tokaido, wait_until

from .conftest import CONFIGURATION, is_open

SCRIPT = """
function echo(key, value) return key .. "=" .. value end

function put(key, value)
  if not _putkeep(key, value) then return nil end
  return true
end

function quiet(key) _put(key, "quiet") end

function fault(key) _put(key, 1) error("no more tea") end

-- Reads and writes apart, which only lasts if calls do not overlap.
function increment(key)
  local old = tonumber(_get(key) or 0)
  _put(key, old + 1)
  return old + 1
end

function misc(key, value)
  local results = _misc(key, _split(value, "|"))
  if not results then return nil end
  return table.concat(results, "|")
end

function hold(key, value) return _stashput(key, value) end
function held(key) return _stashget(key) end

function enqueue(key, value)
  local id = _adddouble(key, 1)
  if not id then return nil end
  return _putkeep(("%s\\t%012d"):format(key, id), value)
end

function dequeue(key)
  local first = _fwmkeys(key .. "\\t", 1)[1]
  if not first then return nil end
  local value = _get(first)
  _out(first)
  return value
end

function tick() _put("ticks", (_get("ticks") or 0) + 1) end

function _begin() _put("begun", (_get("begun") or 0) + 1) end
function _end() _put("ended", (_get("ended") or 0) + 1) end
"""

RECORD_LOCK, GLOBAL_LOCK = 1, 2


@pytest.fixture
def scripted(own_server, tmp_path):
    """A server with a script, and an address for Tokyo Tyrant only. It is not started yet."""
    script = tmp_path / "script.lua"
    script.write_text(SCRIPT)
    server = own_server()
    server.listen, server.tyrant_port = [], free_port()
    server.config = tmp_path / "tyrant.toml"
    server.config.write_text(CONFIGURATION.format(port=server.port, tyrant_port=server.tyrant_port))
    server.options += [f"--config={server.config}", f"--tokyotyrant={script}", "--tyrant-periodic=tick:0.05"]
    server.script = script
    return server


def reload(server):
    tokaido("reload", "--connect", f"127.0.0.1:{server.port}")


class Client:
    """A connection that speaks the binary protocol."""

    def __init__(self, server):
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=30)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def read(self, count):
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            assert more, "the server has closed the connection"
            data += more
        return data

    def ext(self, name, key=b"", value=b"", options=0):
        """The result, or None for the code 1."""
        name, key, value = (part.encode() if isinstance(part, str) else part for part in (name, key, value))
        head = struct.pack(">HIIII", 0xC868, len(name), options, len(key), len(value))
        self.socket.sendall(head + name + key + value)
        code = self.read(1)
        if code != b"\0":
            assert code == b"\1"
            return None
        (length,) = struct.unpack(">I", self.read(4))
        return self.read(length)


def test_ext(scripted):
    scripted.start()
    with Client(scripted) as client:
        assert client.ext("echo", b"a\0b", b"\xff") == b"a\0b=\xff"
        assert client.ext("echo") == b"="
        assert client.ext("put", "a", "1") == b"true"
        assert client.ext("put", "a", "2") is None
        assert client.ext("quiet", "b") is None
        assert client.ext("fault", "c") is None
        assert client.ext("nothing", "c") is None
        for hook in ("_begin", "script._begin"):
            assert client.ext(hook) is None
        assert client.ext("echo", "still", "here") == b"still=here"
        for number in (1, 2):
            assert client.ext("enqueue", "q", f"v{number}") == b"true"
        assert [client.ext("dequeue", "q") for _ in range(3)] == [b"v1", b"v2", None]
    assert scripted.redis().mget("a", "b", "c") == [b"1", b"quiet", None]


def test_calls_do_not_overlap(scripted):
    """Whichever lock they request."""
    scripted.start()

    def count(options):
        with Client(scripted) as client:
            for _ in range(100):
                assert client.ext("increment", "n", b"", options)

    locks = [0, RECORD_LOCK, GLOBAL_LOCK, RECORD_LOCK | GLOBAL_LOCK]
    threads = [threading.Thread(target=count, args=[options]) for options in locks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert scripted.redis().get("n") == b"400"


def post(url, body, headers=None):
    request = urllib.request.Request(url, body, headers or {}, method="POST")
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def test_every_protocol_calls_the_same(scripted):
    scripted.start()
    wait_until(lambda: is_open(scripted.tyrant_port), "the port")
    own = f"http://127.0.0.1:{scripted.tyrant_port}"
    ext = {"X-TT-XNAME": "echo", "X-TT-XOPTS": "1"}
    assert post(f"{own}/a%20b", b"\xff", ext) == (200, b"a b=\xff")
    for name in ("quiet", "fault", "nothing"):
        assert post(f"{own}/{name}", b"", {"X-TT-XNAME": name})[0] == 500
    assert scripted.redis().mget("quiet", "fault") == [b"quiet", None]
    call = f"http://127.0.0.1:{scripted.port}/v1/call"
    assert post(f"{call}/echo", b'["a", 2]') == (200, b'{"result":"a=2"}\n')
    assert post(f"{call}/quiet", b'["d"]') == (200, b'{"result":null}\n')
    status, body = post(f"{call}/echo", b'["a", {}]')
    assert status == 400 and json.loads(body)["error"]["code"] == "INVALID"
    client = scripted.redis()
    assert client.fcall("echo", 0, "a", "b") == b"a=b"
    assert client.fcall("put", 0, "d", "b") is None
    with pytest.raises(redis.ResponseError, match="no more tea"):
        client.fcall("fault", 0, "e")
    assert client.mget("d", "e") == [b"quiet", None]
    with pytest.raises(redis.ResponseError):
        client.fcall("script._begin", 0)


def test_misc(scripted):
    scripted.start()
    with Client(scripted) as client:
        assert client.ext("misc", "putlist", "a|1|b|2|c|3") == b""
        assert client.ext("misc", "$getlist", "a|x|c") == b"a|1|c|3"
        assert client.ext("misc", "range", "b||z") is not None
        assert client.ext("misc", "regex", "^[ab]$") == b"a|1|b|2"
        assert client.ext("misc", "iterinit", "b") == b""
        assert [client.ext("misc", "iternext", "") for _ in range(2)] == [b"b|2", b"begun|1"]
        assert client.ext("misc", "error", "") == b"0: success"
        for name in ("nothing", "putdup", "get", "search"):
            assert client.ext("misc", name, "none") is None
        assert client.ext("misc", "outlist", "a|b|c") == b"" and client.ext("misc", "get", "a") is None


def test_misc_of_a_table(scripted):
    config = scripted.config.read_text()
    scripted.config.write_text(config + '[databases.rows]\nengine = "table"\n[tyrant]\ndatabase = "rows"\n')
    scripted.script.write_text(
        """
        function f()
          assert(_misc("put", "1", { "name", "Shinagawa", "no", "1" }))
          assert(_putcat("1", "name\\0other\\0river\\0Meguro"))
          assert(_get("1") == "name\\0Shinagawa\\0no\\0001\\0river\\0Meguro")
          assert(_misc("search", "addcond\\0no\\0NUMEQ\\0001")[1] == "1")
          assert(not _misc("putkeep", "1", "a", "b"))
          local ok, why = pcall(_addint, "1", 1)
          return tostring(why)
        end
        function index() return tostring(_misc("setindex", "no", "DECIMAL") ~= nil) end
        """
    )
    scripted.options = [option for option in scripted.options if "periodic" not in option]
    scripted.start()
    with Client(scripted) as client:
        result = client.ext("f")
        assert result is not None, scripted.log()
        assert b"_addint is not offered: the database is a table" in result
        assert client.ext("index") == b"true"
    # With an index it remains a table, even if it is not configured as one.
    scripted.stop()
    scripted.config.write_text(config + '[tyrant]\ndatabase = "rows"\n')
    scripted.start()
    with Client(scripted) as client:
        result = client.ext("f")
        assert result is not None and b"the database is a table" in result, scripted.log()


# Writes that are not synced at once may run on a worker instead of the writer, in another virtual machine.
@pytest.mark.parametrize("sync", ["always", "interval:1s"])
def test_the_stash_is_shared_and_survives_a_reload(scripted, sync):
    scripted.options += ["--workers=2", f"--sync={sync}"]
    scripted.start()
    with Client(scripted) as client:
        assert client.ext("hold", "a", "1") == b"true"
        for _ in range(20):
            assert scripted.redis().fcall("held", 0, "a") == b"1"
        scripted.script.write_text(SCRIPT.replace("function echo", "function echo2"))
        reload(scripted)
        assert client.ext("echo2", "a", "b") == b"a=b"
        assert client.ext("held", "a") == b"1"


def test_hooks_and_periodic_functions(scripted):
    scripted.start()
    client = scripted.redis()
    assert (client.get("begun"), client.get("ended")) == (b"1", None)
    wait_until(lambda: int(client.get("ticks") or 0) >= 3, "periodic calls")
    reload(scripted)
    wait_until(lambda: client.get("begun") == b"2", "the hook after the reload")
    assert client.get("ended") == b"1"
    scripted.stop()
    scripted.start()
    client = scripted.redis()
    assert (client.get("begun"), client.get("ended")) == (b"3", b"2")


def test_a_hook_that_fails_stops_nothing(scripted):
    scripted.script.write_text(SCRIPT.replace('_put("begun",', '_put("half", 1) error("no more tea") _put("begun",'))
    scripted.start()
    with Client(scripted) as client:
        assert client.ext("echo", "a", "b") == b"a=b"
    assert scripted.redis().get("half") is None
    logged = [line for line in scripted.log().splitlines() if " ERROR " in line]
    assert len(logged) == 1 and "no more tea" in logged[0]


def test_a_periodic_function_that_fails_is_logged_once_for_as_long_as_it_fails_so(scripted):
    failing = 'function tick(key, value) _stashput("n", (tonumber(_stashget("n")) or 0) + 1) error("no more " .. (_get("what") or "tea")) end\n'
    scripted.script.write_text(SCRIPT + failing + 'function ticked() return _stashget("n") or "0" end\n')
    scripted.start()
    logged = lambda: [line for line in scripted.log().splitlines() if " ERROR " in line]
    with Client(scripted) as client:
        wait_until(lambda: int(client.ext("ticked")) >= 4, "calls that fail")
        assert len(logged()) == 1 and "no more tea" in logged()[0]
        scripted.redis().set("what", "rice")
        called = int(client.ext("ticked"))
        wait_until(lambda: int(client.ext("ticked")) >= called + 4, "calls that fail otherwise")
    assert len(logged()) == 2 and "no more rice" in logged()[1]


def test_a_periodic_function_that_is_missing_is_told_of_before_its_time(scripted):
    scripted.options[-1] = "--tyrant-periodic=absent:3600"
    scripted.start()
    logged = lambda: [line for line in scripted.log().splitlines() if "a periodic function is not there" in line]
    wait_until(lambda: len(logged()) == 1 and "absent" in logged()[0], "the warning")
    scripted.script.write_text(SCRIPT + "function absent() end\n")
    assert tokaido("reload", f"--connect={scripted.address}").returncode == 0
    scripted.script.write_text(SCRIPT)
    assert tokaido("reload", f"--connect={scripted.address}").returncode == 0
    wait_until(lambda: len(logged()) == 2, "the warning after a reload")


@pytest.mark.parametrize("text", ["tick", "_begin:1", "tick:0"])
def test_what_cannot_be_periodic_is_refused(tmp_path, text):
    refused = tokaido("serve", f"--dir={tmp_path}", f"--tyrant-periodic={text}")
    assert refused.returncode == 2
    assert "is no function with its period" in refused.stderr
