"""Records move from memcached to the server and back, by the dumps of memcached's own tool."""

import pathlib
import subprocess

import pytest
from support import tokaido

from .conftest import Raw
from .peer import Memcached

TOOL = pathlib.Path("/usr/share/memcached/scripts/memcached-tool")

VALUES = {
    b"plain": (0, 0, b"value"),
    b"flags": (4294967295, 0, b""),
    b"soon": (7, 1000, b"gone in a while"),
    b"lines": (1, 0, b"add x 0 0 1\r\n\r\nEND\r\n\n"),
    b"bytes": (2, 0, bytes(range(256)) * 2000),
    b"100%41:/&": (0, 0, b"a key that the tool has to decode"),
    "東京".encode(): (0, 0, "品川".encode()),
}


def ask(port, command, end=b"\r\n"):
    with Raw(("127.0.0.1", port)) as raw:
        return raw.ask(command, end)


def store_all(port):
    for key, (flags, exptime, value) in VALUES.items():
        head = b"set %s %d %d %d\r\n" % (key, flags, exptime, len(value))
        assert ask(port, head + value + b"\r\n") == b"STORED\r\n"


def check_all(port):
    for key, (flags, exptime, value) in VALUES.items():
        got = ask(port, b"get %s\r\n" % key, b"END\r\n" if key != b"lines" else b"\n\r\nEND\r\n")
        assert got == b"VALUE %s %d %d\r\n%s\r\nEND\r\n" % (key, flags, len(value), value)
        left = int(ask(port, b"mg %s t\r\n" % key).split()[1][1:])
        assert exptime - 100 < left <= exptime + 1 if exptime else left == -1


def dump(port):
    if not TOOL.exists():
        pytest.skip("needs memcached-tool of the Debian package memcached")
    ran = subprocess.run(
        [TOOL, f"127.0.0.1:{port}", "dump"], capture_output=True, check=True, timeout=60
    )
    return ran.stdout


def test_a_dump_of_memcached_is_loaded_and_written(make_memcached, tmp_path):
    with Memcached() as peer:
        store_all(peer.port)
        dumped = tmp_path / "memcached.dump"
        dumped.write_bytes(dump(peer.port))
    server = make_memcached("durable")
    assert server.stop() == 0
    arguments = ["--dir", server.directory, "--db", "durable", "--format", "memcached-dump"]
    loaded = tokaido("load", *arguments, "--strict", dumped)
    assert loaded.returncode == 0, loaded.stderr
    server.start()
    check_all(server.memcached_port)
    # And back.
    assert server.stop() == 0
    back = tmp_path / "back.dump"
    assert tokaido("dump", *arguments, "--output", back).returncode == 0
    with Memcached() as peer:
        assert ask(peer.port, back.read_bytes() + b"mn\r\n", b"MN\r\n").count(b"STORED") == len(VALUES)
        check_all(peer.port)


def test_a_dump_is_sent_to_a_cache_as_it_is(make_memcached):
    with Memcached() as peer:
        store_all(peer.port)
        dumped = dump(peer.port)
    server = make_memcached()
    assert ask(server.memcached_port, dumped + b"mn\r\n", b"MN\r\n").count(b"STORED") == len(VALUES)
    check_all(server.memcached_port)
