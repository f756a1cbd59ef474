"""Tokyo Tyrant, with a third-party client, and with memcached and HTTP clients on its own address."""

import http.client
import urllib.parse

import pytest
from pymemcache.client.base import Client as Memcache
from pytyrant import TyrantError
from support import tokaido, wait_until

from .conftest import is_open


def test_records(tyrant):
    client = tyrant()
    with pytest.raises(TyrantError):
        client.get(b"k")
    client.put(b"k", b"v\x00\xff")
    assert client.get(b"k") == b"v\x00\xff"
    assert client.vsiz(b"k") == 3
    with pytest.raises(TyrantError):
        client.putkeep(b"k", b"x")
    client.putkeep(b"new", b"x")
    client.putcat(b"new", b"yz")
    client.putshl(b"new", b"1", 2)
    assert client.get(b"new") == b"z1"
    client.putnr(b"quiet", b"value")
    client.sync()
    assert client.mget([b"quiet", b"missing", b"new"]) == [(b"quiet", b"value"), (b"new", b"z1")]
    client.out(b"k")
    with pytest.raises(TyrantError):
        client.out(b"k")
    assert client.rnum() == 2
    assert client.size() == len(b"quietvaluenewz1")


def test_keys(tyrant):
    client = tyrant()
    keys = sorted(b"key-%d" % n for n in range(200))
    client.misc(b"putlist", 0, [part for key in keys for part in (key, b"v" + key)])
    assert client.fwmkeys(b"key-1", 3) == [b"key-1", b"key-10", b"key-100"]
    assert client.fwmkeys(b"", 1000) == keys
    client.iterinit()
    assert [client.iternext() for _ in keys] == keys
    with pytest.raises(TyrantError):
        client.iternext()
    assert client.misc(b"getlist", 0, [b"key-7", b"missing"]) == [b"key-7", b"vkey-7"]
    assert client.misc(b"range", 0, [b"key-5", b"0", b"key-51"]) == [b"key-5", b"vkey-5", b"key-50", b"vkey-50"]
    assert client.misc(b"regex", 0, [b"^key-19[89]$"]) == [b"key-198", b"vkey-198", b"key-199", b"vkey-199"]
    client.misc(b"outlist", 0, keys[1:])
    assert client.fwmkeys(b"", 1000) == keys[:1]


def test_every_port_speaks_it(tyrant):
    client = tyrant(tyrant.server.port)
    tyrant.server.redis().set("k", "from Redis")
    assert client.get(b"k") == b"from Redis"
    client.put(b"k", b"back")
    assert tyrant.server.redis().get("k") == b"back"


def test_a_procedure_is_a_transaction(tyrant):
    client = tyrant()
    client.put(b"from", b"12345")
    assert client.ext(b"record.copy", 0, b"from", b"to") == b"5"
    assert client.get(b"to") == b"12345"
    with pytest.raises(TyrantError):
        client.ext(b"record.copy", 0, b"missing", b"to")
    assert client.get(b"to") == b"12345"


def test_stat_tells_of_the_server(tyrant):
    client = tyrant()
    client.put(b"k", b"v")
    told = dict(line.split("\t", 1) for line in client.stat().decode().splitlines())
    assert (told["rnum"], told["type"], told["cnt_put"]) == ("1", "B+ tree", "1")
    assert told["version"].startswith("1.1.41 ")
    assert float(told["time"]) > 0 and int(told["pid"]) > 0


def test_what_is_put_is_there_after_a_crash(tyrant):
    client = tyrant()
    client.put(b"k", b"v")
    tyrant.server.kill()
    tyrant.server.start()
    wait_until(lambda: is_open(tyrant.server.tyrant_port), "the port")
    assert tyrant().get(b"k") == b"v"


def test_a_copy_is_a_store(tyrant, tmp_path):
    client = tyrant()
    with pytest.raises(TyrantError):
        client.copy(b"monday")
    tyrant.server.wait_for_log("set backups in tokaido.toml")
    tyrant.server.stop()
    backups = tmp_path / "backups"
    backups.mkdir()
    tyrant.server.options += ["--backups", str(backups)]
    tyrant.server.start()
    wait_until(lambda: is_open(tyrant.server.tyrant_port), "the port")
    client = tyrant()
    client.put(b"k", b"before")
    client.copy(b"monday")
    client.put(b"k", b"after")
    for path in [b"monday", b"@true", b"../tuesday", str(tmp_path / "tuesday").encode()]:
        with pytest.raises(TyrantError):
            client.copy(path)
    assert [path.name for path in backups.iterdir()] == ["monday"]
    assert "sound" in tokaido("check", backups / "monday").stdout
    assert tokaido("restore", backups / "monday", tmp_path / "restored").returncode == 0
    assert tokaido("get", "--dir", tmp_path / "restored", "main", "k").stdout == "before\n"


def test_memcached_on_its_port(tyrant):
    client = Memcache(("127.0.0.1", tyrant.server.tyrant_port), timeout=30, default_noreply=False)
    assert client.set("k", b"1", expire=1)
    assert client.add("k", b"2") is False
    assert client.append("k", b"2")
    assert client.incr("k", 5) == 17
    assert client.get_many(["k", "missing"]) == {"k": b"17"}
    assert tyrant.server.redis().ttl("k") == -1
    assert client.delete("k")
    assert client.get("k") is None
    assert client.stats()[b"version"] == b"1.1.41"
    client.close()


def test_http_on_its_port(tyrant):
    client = http.client.HTTPConnection("127.0.0.1", tyrant.server.tyrant_port, timeout=30)

    def ask(method, path, body=None, headers=None):
        client.request(method, path, body, headers or {})
        response = client.getresponse()
        return response.status, response.read()

    key = "/" + urllib.parse.quote("日本 & \n")
    assert ask("PUT", key, b"\x00\xff") == (201, b"Created\n")
    assert ask("GET", key) == (200, b"\x00\xff")
    assert ask("PUT", key, b"x", {"X-TT-PDMODE": "1"}) == (409, b"Conflict\n")
    form = urllib.parse.urlencode({"key": "日本 & \n"})
    status, body = ask("POST", "/", form, {"X-TT-MNAME": "getlist"})
    pairs = urllib.parse.parse_qsl(body.decode(), encoding="latin-1")
    assert (status, pairs) == (200, [("res1", "日本 & \n".encode().decode("latin-1")), ("res2", "\x00\xff")])
    assert ask("POST", "/" + key[1:], b"copy", {"X-TT-XNAME": "record.copy"}) == (200, b"2")
    assert ask("GET", "/copy") == (200, b"\x00\xff")
    assert ask("DELETE", key) == (200, b"OK\n")
    assert ask("GET", key) == (404, b"Not Found\n")
    client.close()
