"""Kyoto Tycoon with a third-party client: procedures and records over HTTP, and the binary protocol."""

import base64
import socket
from contextlib import closing

import pytest
from kyototycoon import KT_PACKER_BYTES, KyotoTycoon, KyotoTycoonException
from support import free_port, wait_until

# The client is older than Python 3.9, which renamed this.
base64.decodestring = base64.decodebytes

CONFIGURATION = """
[[listen]]
address = "127.0.0.1:{port}"

[[listen]]
address = "127.0.0.1:{kyoto_port}"
protocols = ["kyoto"]

[kyoto]
databases = ["main", "second"]
"""

PROCEDURES = """
local tokaido = require("tokaido")

return {
  copy = tokaido.write(function(tx, inputs)
    local value = tx.main:get(inputs.from)
    tx.main:put(inputs.to, value)
    return { length = #value }
  end),
}
"""


def is_open(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def kyoto(own_server, tmp_path):
    """Makes clients of a server that has a port for them only, besides the one for all protocols."""
    files = tmp_path / "procedures"
    files.mkdir()
    (files / "record.lua").write_text(PROCEDURES)
    server = own_server(procedures=files)
    server.listen, server.kyoto_port = [], free_port()
    path = tmp_path / "tokaido.toml"
    path.write_text(CONFIGURATION.format(port=server.port, kyoto_port=server.kyoto_port))
    server.options += ["--config", str(path)]
    server.start()
    wait_until(lambda: is_open(server.kyoto_port), "the port")
    opened = []

    def connect(binary=False):
        client = KyotoTycoon(binary=binary, pack_type=KT_PACKER_BYTES)
        client.open("127.0.0.1", server.kyoto_port, timeout=30)
        opened.append(closing(client))
        return client

    connect.server = server
    yield connect
    for client in opened:
        client.__exit__(None, None, None)


def test_records(kyoto):
    client = kyoto()
    assert client.get("k") is None
    assert client.set("k", b"v\x00\xff")
    assert client.get("k") == b"v\x00\xff"
    assert client.check("k") >= 0
    with pytest.raises(KyotoTycoonException, match="450"):
        client.add("k", b"x")
    assert client.replace("k", b"x")
    assert client.append("k", b"y")
    assert client.get("k") == b"xy"
    assert client.cas("k", old_val=b"xy", new_val=b"z")
    with pytest.raises(KyotoTycoonException, match="450"):
        client.cas("k", old_val=b"xy", new_val=b"w")
    assert client.seize("k") == b"z"
    assert not client.remove("k")
    assert client.set("日本", b"1", db=1)
    assert client.get("日本", db="second") == b"1"
    assert client.count() == 0
    assert client.count(db=1) == 1
    assert client.clear(db=1)
    assert client.size(db=1) == 0


def test_counters_and_expiry(kyoto):
    client = kyoto()
    assert client.increment("n", 5) == 5
    assert client.increment("n", -7) == -2
    assert client.get_int("n") == -2
    assert client.increment_double("d", 1.25) == 1.25
    assert client.set("k", b"v", expire=1000)
    assert 0 < kyoto.server.redis().ttl("k") <= 1000


@pytest.mark.parametrize("binary", [False, True])
def test_many_records(kyoto, binary):
    client = kyoto(binary)
    records = {f"key-{n:03}": bytes([n]) * n for n in range(1, 200)}
    assert client.set_bulk(records) == len(records)
    assert client.get_bulk([*records, "missing"]) == records
    assert client.remove_bulk(["key-001", "missing"]) == 1
    assert kyoto.server.redis().get("key-002") == b"\x02\x02"


@pytest.mark.parametrize("binary", [False, True])
def test_procedures(kyoto, binary):
    client = kyoto(binary)
    kyoto.server.redis().set("a", "12345")
    assert client.play_script("record.copy", {"from": b"a", "to": b"b"}) == {"length": b"5"}
    assert kyoto.server.redis().get("b") == b"12345"


def test_keys(kyoto):
    client = kyoto()
    client.set_bulk({key: b"" for key in ["app", "apple", "apply", "banana"]})
    assert client.match_prefix("app") == ["app", "apple", "apply"]
    assert client.match_prefix("app", limit=2) == ["app", "apple"]
    assert client.match_regex("^b") == ["banana"]
    assert sorted(client.match_similar("appla", distance=1)) == ["apple", "apply"]
    assert client.vacuum()
    assert client.report()["db_0"].startswith("count=4 ")


def test_cursors(kyoto):
    client = kyoto()
    client.set_bulk({f"k{n}": str(n).encode() for n in range(5)})
    with client.cursor() as cursor:
        assert cursor.jump()
        seen = [cursor.get(step=True) for _ in range(5)]
        with pytest.raises(KyotoTycoonException, match="450"):
            cursor.get()
        assert seen == [(f"k{n}", str(n).encode()) for n in range(5)]
        assert cursor.jump("k2")
        assert cursor.set_value(b"two")
        assert cursor.remove()
        assert cursor.get_key() == "k3"
        assert cursor.jump_back()
        assert cursor.seize() == {"key": "k4", "value": b"4"}
    assert client.count() == 3
