"""A constant database, over the wire, and its replacement under load."""

import json
import shutil
import subprocess
import threading
import time

import pytest
import redis
from support import tokaido, wait_until

from .conftest import client_of, make_cdb


@pytest.fixture
def ports(engines):
    with client_of(engines, "ports") as client:
        yield client


def test_what_reads_works(engines, ports):
    assert ports.get("http") == b"80"
    assert ports.mget("ssh", "none") == [b"22", None]
    assert ports.exists("ssh") == 1 and ports.ttl("ssh") == -1 and ports.dbsize() == 3
    assert list(ports.scan_iter()) == [b"ssh", b"http", b"http"]
    assert ports.keys("h*") == [b"http"]
    assert ports.fcall("engines.port", 1, "http") == [b"80", b"8080"]
    status, headers, body = engines.http("GET", "/v1/db/ports/http")
    assert (status, body) == (200, b"80")
    assert engines.http("GET", "/v1/db/ports/http", headers={"if-none-match": headers["etag"]})[0] == 304
    listed = [json.loads(line) for line in engines.http("GET", "/v1/db/ports?prefix=http")[2].splitlines()]
    assert [entry["value"] for entry in listed] == ["80", "8080"]


def test_what_writes_is_refused(engines, ports):
    for refused in [("SET", "k", "v"), ("DEL", "ssh"), ("INCR", "n"), ("FLUSHDB",), ("EXPIRE", "ssh", 1)]:
        with pytest.raises(redis.ResponseError, match="tokaido cdb make"):
            ports.execute_command(*refused)
    assert engines.http("PUT", "/v1/db/ports/k", b"v")[0] == 405
    assert ports.flushall() and ports.dbsize() == 3


def test_a_damaged_file_is_refused_and_the_old_one_stays(engines, ports):
    broken = engines.cdb.with_name("broken.cdb")
    broken.write_bytes(engines.cdb.read_bytes()[:2100])
    broken.rename(engines.cdb)
    engines.wait_for_log("the old one still is")
    assert ports.get("ssh") == b"22"
    engines.cdb.unlink()
    engines.wait_for_log("cannot be looked at")
    assert ports.get("ssh") == b"22"
    make_cdb(engines.cdb, "ssh 2222\n")
    wait_until(lambda: ports.get("ssh") == b"2222", "the new file")


@pytest.mark.skipif(not shutil.which("cdb"), reason="no cdb; Debian has it in tinycdb")
def test_readers_see_the_old_file_or_the_new_one_as_a_whole(engines):
    """TinyCDB's own tool replaces the file; every view has the first and the last record of one file."""
    rounds = 25

    def replace(number):
        filler = "".join(f"filler:{i} {number}\n" for i in range(2000))
        text = f"first {number}\n{filler}last {number}\n" + "more x\n" * number
        subprocess.run(["cdb", "-c", "-m", str(engines.cdb)], input=text.encode(), check=True)

    replace(0)
    with client_of(engines, "ports") as client:
        wait_until(lambda: client.get("last") == b"0", "the first file")
    done, problems, views = threading.Event(), [], []

    def read():
        with client_of(engines, "ports") as client:
            while not done.is_set():
                first, last, count = client.fcall("engines.ends", 0)
                views.append(int(first))
                if first != last or count != 2002 + int(first):
                    problems.append((first, last, count))
                first, filler, last = client.mget("first", "filler:1000", "last")
                if not first == filler == last:
                    problems.append((first, filler, last))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(1, rounds + 1):
        replace(number)
        time.sleep(0.1)
    with client_of(engines, "ports") as client:
        wait_until(lambda: client.get("last") == str(rounds).encode(), "the last file")
    done.set()
    for reader in readers:
        reader.join()
    assert not problems and len(set(views)) > 3


def test_a_server_does_not_start_with_what_it_cannot_serve(engines, tmp_path):
    engines.redis().set("k", "v")
    assert engines.stop() == 0

    def refusal(text):
        configuration = tmp_path / "other.toml"
        configuration.write_text(text)
        serve = ["serve", "--config", configuration, "--dir", engines.directory, "--listen", "127.0.0.1:0"]
        ran = tokaido(*serve)
        assert ran.returncode != 0
        return ran.stderr

    assert "database main has 1 records" in refusal('[databases.main]\nengine = "cache"\nbytes = "1 MiB"')
    assert "cannot read" in refusal('[databases.x]\nengine = "cdb"\nfile = "nowhere.cdb"')
    assert "1 MB" in refusal('[databases.x]\nengine = "cache"\nbytes = "1 MB"')
    assert "too few" in refusal('[databases.x]\nengine = "cache"\nbytes = 1000')
    assert "expected one of" in refusal('[databases.x]\nengine = "hash"')
    engines.start()
