"""The binary protocol: with third-party clients, and beside memcached."""

import random
import struct
import subprocess

import bmemcached
import pytest

from .conftest import Raw
from .peer import Memcached

HEADER = struct.Struct(">BBHBBHI4sQ")
COMMANDS = 4000
BATCH = 40
NOOP = 0x0A

KEYS = [b"a", b"b", b"c", b"counter", b"\x00 \r\n", b"k" * 250]
VALUES = [b"", b"0", b"9", b"10", b"18446744073709551615", b"hello", b"x" * 300, b"12 abc"]
NUMBERS = [0, 1, 2, 99, 2**64 - 1]
EXPTIMES = [0, 0, 0, 100, 1000, 2592000, 2592001, 4000000000]



@pytest.fixture(params=["memcached", "durable"])
def server(request, make_memcached):
    return make_memcached(request.param)


def test_python_binary_memcached(server):
    client = bmemcached.Client((f"127.0.0.1:{server.memcached_port}",))
    assert client.get("k") is None
    assert client.set("k", "value", time=100)
    assert client.get("k") == "value"
    assert client.add("k", "x") is False
    assert client.replace("k", {"a": 1})
    assert client.get("k") == {"a": 1}
    value, cas = client.gets("k")
    assert client.cas("k", "new", cas)
    assert not client.cas("k", "newer", cas)
    assert client.set_multi({"a": "1", "b": "2"}) == []
    assert client.get_multi(["a", "b", "c"]) == {"a": "1", "b": "2"}
    assert client.incr("n", 5, default=10) == 10
    assert client.incr("n", 5) == 15
    assert client.decr("n", 100) == 0
    assert client.delete("k")
    assert client.get("k") is None
    assert client.flush_all()
    assert client.get("a") is None
    (figures,) = client.stats().values()
    assert figures["curr_items"] == b"0"
    client.disconnect_all()


def test_a_password(make_memcached):
    server = make_memcached(options=["--password", "sesame"])
    address = f"127.0.0.1:{server.memcached_port}"
    client = bmemcached.Client((address,), username="me", password="sesame")
    assert client.set("k", "value")
    assert client.get("k") == "value"
    client.disconnect_all()
    with pytest.raises(bmemcached.exceptions.MemcachedException):
        bmemcached.Client((address,), username="me", password="sesama").get("k")
    with Raw(("127.0.0.1", server.memcached_port)) as raw:
        raw.send(packet(0x00, key=b"k"))
        assert b"Auth failure." in raw.read_until(b"never")


@pytest.mark.parametrize("mode", ["-a", "-b"])
def test_memcapable(memcached, mode):
    def capable(port):
        command = ["memccapable", "-h", "127.0.0.1", "-p", str(port), mode, "-t", "30"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        lines = (done.stdout + done.stderr).splitlines()
        return sorted(line for line in lines if "[FAIL]" in line or "[pass]" in line)

    with Memcached() as peer:
        expected = capable(peer.port)
        assert len(expected) > 10
        assert capable(memcached.memcached_port) == expected


def packet(opcode, extras=b"", key=b"", value=b"", cas=0, opaque=b"abcd"):
    length = len(extras) + len(key) + len(value)
    header = HEADER.pack(0x80, opcode, len(key), len(extras), 0, 0, length, opaque, cas)
    return header + extras + key + value


class Generator:
    """Packets, as functions of the cas that a server reports for each key."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, options):
        return self.random.choice(options)

    def command(self, number):
        opaque = number.to_bytes(4, "big")
        key, value = self.pick(KEYS), self.pick(VALUES)
        flags_and_expiry = struct.pack(">II", self.pick([0, 1, 2**32 - 1]), self.pick(EXPTIMES))
        counter = struct.pack(">QQI", self.pick(NUMBERS), self.pick(NUMBERS), self.pick([0, 100, 2**32 - 1]))
        expiry = struct.pack(">I", self.pick(EXPTIMES))
        opcode, extras, key, value = self.pick([
            (self.pick([0x01, 0x02, 0x03, 0x11, 0x12, 0x13]), flags_and_expiry, key, value),
            (self.pick([0x01, 0x11]), flags_and_expiry, b"counter", b"%d" % self.random.randint(0, 99)),
            (self.pick([0x0E, 0x0F, 0x19, 0x1A]), b"", key, value),
            (self.pick([0x00, 0x09, 0x0C, 0x0D]), b"", key, b""),
            (self.pick([0x00, 0x09, 0x0C, 0x0D]), b"", key, b""),
            (self.pick([0x04, 0x14]), b"", key, b""),
            (self.pick([0x05, 0x06, 0x15, 0x16]), counter, self.pick([key, b"counter"]), b""),
            (self.pick([0x1C, 0x1D, 0x1E, 0x23, 0x24]), expiry, key, b""),
            (NOOP, b"", b"", b""),
            (self.pick([0x20, 0x77, 0x99]), b"", b"", b""),
            (self.pick([0x08, 0x18]), self.pick([b"", b"\x00" * 4]), b"", b"")
            if self.random.random() < 0.1
            else (0x00, b"", b"a", b""),
        ])
        takes_cas = opcode in (0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x0E, 0x0F, 0x11, 0x13, 0x14)
        uses_cas = takes_cas and self.random.random() < 0.3
        wrong = self.random.random() < 0.4
        return lambda cas: packet(
            opcode, extras, key, value, (1 if wrong else cas.get(key, 1)) if uses_cas else 0, opaque
        )


class Subject:
    """A server under test, and what it has reported for each key."""

    def __init__(self, port):
        self.raw = Raw(("127.0.0.1", port))
        self.cas = {}
        self.numbers = {0: 0}

    def run(self, commands):
        requests = [command(self.cas) for command in commands]
        keys = {request[12:16]: self.key_of(request) for request in requests}
        end = packet(NOOP, opaque=b"last")
        self.raw.send(b"".join(requests) + end)
        data = self.raw.read_until(end[12:16] + b"\x00" * 8)
        replies = []
        while data:
            _, opcode, key_len, extras_len, _, status, length, opaque, cas = HEADER.unpack(data[:24])
            body, data = data[24 : 24 + length], data[24 + length :]
            if cas:
                self.cas[keys[opaque]] = cas
            number = self.numbers.setdefault(cas, len(self.numbers))
            replies.append((opcode, status, opaque, number, extras_len, key_len, body))
        return replies

    @staticmethod
    def key_of(request):
        _, _, key_len, extras_len, *_ = HEADER.unpack(request[:24])
        return request[24 + extras_len : 24 + extras_len + key_len]


@pytest.mark.parametrize("seed", range(2))
def test_replies_are_those_of_memcached(memcached, seed):
    with Memcached() as peer:
        ours, theirs = Subject(memcached.memcached_port), Subject(peer.port)
        generator = Generator(seed)
        for batch in range(COMMANDS // BATCH):
            commands = [generator.command(batch * BATCH + i) for i in range(BATCH)]
            expected = theirs.run(commands)
            got = ours.run(commands)
            first = next((pair for pair in zip(got, expected) if pair[0] != pair[1]), None)
            assert first is None, f"seed {seed}, batch {batch}: {first}"
            assert len(got) == len(expected)
