"""Kyoto Tycoon scripts in its own Lua: called through every protocol, and reloaded."""

import base64
import json
import struct
import urllib.error
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest
import redis
from kyototycoon import KT_PACKER_BYTES, KyotoTycoon, KyotoTycoonException
from support import wait_until

# The client is older than Python 3.9, which renamed this.
base64.decodestring = base64.decodebytes

LOOPS = Path(__file__).with_name("loops.lua")

SCRIPT = """
kt = __kyototycoon__
db = kt.db

if kt.thid == 0 then kt.log("system", "the script is there") end

function put(inmap, outmap)
  local key, value = inmap.key, inmap.value
  if not key or not value then return kt.RVEINVALID end
  if not db:add(key, value, inmap.xt) then
    if db:error():code() == kt.Error.DUPREC then return kt.RVELOGIC end
    return kt.RVEINTERNAL
  end
  kt.dbs.second:increment("puts", 1)
  return kt.RVSUCCESS
end

function list(inmap, outmap)
  for key, value in db:pairs() do outmap[key] = value end
end

function half(inmap, outmap)
  db:set("half", "done")
  return kt[inmap.code]
end

function fault() db:set("fault", 1) error("no more tea") end
"""


@pytest.fixture
def scripted(own_server, tmp_path):
    """A server with a script and the loops, named by flags."""
    script = tmp_path / "script.lua"
    script.write_text(SCRIPT)
    server = own_server()
    flags = [f"--kyototycoon={script}", f"--kyototycoon={LOOPS}", "--kyoto-databases=main,second"]
    server.options += [*flags, "--watch=true"]
    server.start()
    server.script = script
    return server


def client_of(server, binary=False):
    client = KyotoTycoon(binary=binary, pack_type=KT_PACKER_BYTES)
    client.open("127.0.0.1", server.port, timeout=30)
    return closing(client)


@pytest.mark.parametrize("binary", [False, True])
def test_play_script(scripted, binary):
    with client_of(scripted, binary) as client:
        assert client.play_script("put", {"key": b"a", "value": b"\x00\xff"}) == {}
        assert client.play_script("list") == {"a": b"\x00\xff"}
    for name, inputs in [
        ("put", {"key": b"a", "value": b"x"}),
        ("half", {"code": b"RVELOGIC"}),
        ("fault", {}),
        ("nothing", {}),
    ]:
        # The binary protocol closes the connection after an error.
        client = KyotoTycoon(binary=binary, pack_type=KT_PACKER_BYTES)
        client.open("127.0.0.1", scripted.port, timeout=30)
        with pytest.raises(KyotoTycoonException):
            client.play_script(name, inputs)
    assert scripted.redis().get("half") == b"done"
    assert scripted.redis().get("fault") is None
    assert scripted.redis().execute_command("GET", "a") == b"\x00\xff"
    second = scripted.redis()
    second.execute_command("SELECT", "second")
    assert second.get("puts") == struct.pack(">q", 1)


def post(server, path, body):
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}", body, method="POST")
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


@pytest.mark.parametrize(
    ("code", "status"),
    [("RVENOIMPL", 501), ("RVEINVALID", 400), ("RVELOGIC", 450), ("RVETIMEOUT", 503), ("RVEINTERNAL", 500)],
)
def test_a_code_is_a_status_and_what_was_written_stays(scripted, code, status):
    form = f"name=half&_code={code}".encode()
    assert post(scripted, "/rpc/play_script", form) == (status, f"ERROR\tthe procedure gave {code}\n".encode())
    assert scripted.redis().getdel("half") == b"done"
    answer = post(scripted, "/v1/call/half", json.dumps([{"code": code}]).encode())
    assert answer[0] == status
    assert json.loads(answer[1])["error"] == {"code": code, "message": f"the procedure gave {code}"}
    assert scripted.redis().getdel("half") == b"done"
    with pytest.raises(redis.ResponseError, match=f"^{code} the procedure gave {code}"):
        scripted.redis().execute_command("FCALL", "half", 0, "code", code)
    assert scripted.redis().getdel("half") == b"done"


def test_an_error_leaves_nothing(scripted):
    assert post(scripted, "/rpc/play_script", b"name=fault")[0] == 500
    assert post(scripted, "/v1/call/fault", b"")[0] == 422
    with pytest.raises(redis.ResponseError, match="no more tea"):
        scripted.redis().fcall("fault", 0)
    assert scripted.redis().get("fault") is None


def test_every_protocol_calls_the_same(scripted):
    assert scripted.redis().fcall("put", 0, "key", "a", "value", "1") == {}
    assert post(scripted, "/v1/call/put", b'["key", "b", "value", 2]') == (200, b'{"result":{}}\n')
    assert scripted.redis().fcall("list", 0) == {b"a": b"1", b"b": b"2"}
    with pytest.raises(redis.ResponseError, match="^RVEINVALID .*names and values in turn"):
        scripted.redis().fcall("put", 0, "key")


def test_a_script_is_reloaded(scripted):
    scripted.script.write_text("function list(_, outmap) outmap.changed = true end")

    def is_changed():
        with client_of(scripted) as client:
            return client.play_script("list") == {"changed": b"true"}

    wait_until(is_changed, "the reload")


@pytest.mark.parametrize("name", ["order", "random", "etc", "both"])
def test_loops_over_all_keys(scripted, name):
    with client_of(scripted) as client:
        outputs = client.play_script(name, {"count": b"2000"})
    assert outputs["left"] == b"0" or name in ("random", "both")
    assert (outputs["misses"] == b"0") == (name in ("order", "etc"))
    if name in ("etc", "both"):
        assert outputs["twice"] == b"true"


def test_the_wicked_loop(scripted):
    with client_of(scripted) as client:
        for times in (b"1", b"4"):
            outputs = client.play_script("wicked", {"count": b"1000", "times": times})
            assert outputs.pop("consistent") == b"true"
            assert set(outputs.values()) == {b"true"}, outputs
