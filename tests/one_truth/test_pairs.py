"""What one protocol writes, every other one reads: all ordered pairs, as in docs/protocols.md."""

import itertools
import time

import pytest
from support import Server, free_port, wait_until

from .protocols import PROCEDURES, PROTOCOLS, Connection, MemcachedText, Redis, Refused

CONFIGURATION = """
[[listen]]
address = "127.0.0.1:{all}"

[[listen]]
address = "127.0.0.1:{memcached}"
protocols = ["memcached"]

[[listen]]
address = "127.0.0.1:{kyoto}"
protocols = ["kyoto"]

[[listen]]
address = "127.0.0.1:{tyrant}"
protocols = ["tyrant"]

[memcached]
database = "main"

[kyoto]
databases = ["main"]
"""

KEY = b"key \x00\xff\n"
VALUE_BYTES_MAX = 1 << 20  # memcached's limit; the others accept more


@pytest.fixture(scope="module")
def clients(tmp_path_factory):
    """One client of each protocol, all using one database of one server."""
    directory = tmp_path_factory.mktemp("one-truth")
    ports = {name: free_port() for name in ("all", "memcached", "kyoto", "tyrant")}
    configuration = directory / "tokaido.toml"
    configuration.write_text(CONFIGURATION.format(**ports))
    procedures = directory / "procedures"
    procedures.mkdir()
    (procedures / "records.lua").write_text(PROCEDURES)
    server = Server(directory / "data", directory / "log", procedures=procedures, port=ports["all"])
    server.listen = []
    server.options = ["--config", str(configuration), "--sync", "os"]
    with server:
        for port in ports.values():
            wait_until(lambda port=port: can_connect(port), "the port")
        made = {name: protocol(ports) for name, protocol in PROTOCOLS.items()}
        yield made
        for client in made.values():
            client.close()
        assert server.is_alive(), server.log()


def can_connect(port):
    try:
        Connection(port).close()
    except OSError:
        return False
    return True


def pairs_of(can=lambda _: True):
    """All ordered pairs of protocols that have a capability."""
    names = [name for name, protocol in PROTOCOLS.items() if can(protocol)]
    return pytest.mark.parametrize(
        "pair", list(itertools.product(names, repeat=2)), ids="-".join, indirect=True
    )


@pytest.fixture
def pair(request, clients):
    """Two protocols, on an empty database."""
    clients["redis"].client.flushdb()
    one, other = request.param
    return clients[one], clients[other]


@pairs_of()
def test_a_value_is_the_same_bytes(pair):
    writer, reader = pair
    for value in (b"", b"\x00\r\n\xff", "値\t".encode(), bytes(range(256)) * 40):
        writer.set(KEY, value)
        assert reader.get(KEY) == value
    assert reader.get(b"another") is None


@pairs_of()
def test_the_longest_keys(pair):
    writer, reader = pair
    longest = min(writer.key_bytes_max, reader.key_bytes_max)
    for length in (1, longest):
        key = bytes([length % 256, 0]) * length
        writer.set(key[:length], b"v")
        assert reader.get(key[:length]) == b"v"


@pairs_of()
def test_what_one_deletes_is_gone_for_the_other(pair):
    one, other = pair
    one.set(KEY, b"v")
    assert other.delete(KEY)
    assert one.get(KEY) is None
    assert not one.delete(KEY)


@pairs_of(lambda protocol: hasattr(protocol, "add"))
def test_what_one_has_set_the_other_does_not_add(pair):
    one, other = pair
    one.set(KEY, b"v")
    assert not other.add(KEY, b"w")
    assert one.get(KEY) == b"v"
    one.delete(KEY)
    assert other.add(KEY, b"w")
    assert one.get(KEY) == b"w"


@pairs_of()
def test_a_new_value_takes_the_expiry_and_the_flags_of_the_old_one_away(pair, clients):
    one, other = pair
    if one.can_expire:
        one.set(KEY, b"v", seconds=100)
        assert 0 < clients["redis"].client.pttl(KEY) <= 101_000
        other.set(KEY, b"w")
        assert clients["redis"].client.pttl(KEY) == -1
    memcached = clients["memcached-text"]
    assert memcached.store(KEY, b"v", [b"F7"]) == b"HD"
    assert (one.get(KEY), memcached.flags(KEY)) == (b"v", 7)
    other.set(KEY, b"w")
    assert memcached.flags(KEY) == 0
    one.set(KEY, b"x")
    assert other.get(KEY) == b"x"


@pairs_of(lambda protocol: protocol.numbers)
def test_counters(pair):
    """Counters of the same kind are shared; one of another kind is refused and stays unchanged."""
    one, other = pair
    assert one.increment(KEY, 5) == 5
    if one.numbers == other.numbers:
        assert other.increment(KEY, 3) == 8
    else:
        with pytest.raises(Refused):
            other.increment(KEY, 3)
    assert one.increment(KEY, 1) == (9 if one.numbers == other.numbers else 6)


def test_the_largest_value(clients):
    for writer, client in clients.items():
        value = writer[:1].encode() * VALUE_BYTES_MAX
        client.set(KEY, value)
        for reader, other in clients.items():
            assert other.get(KEY) == value, (writer, reader)


def test_a_larger_value_than_memcached_takes_is_read_by_all(clients):
    value = b"v" * (VALUE_BYTES_MAX + 1)
    for client in clients.values():
        if client.numbers != "decimal" or isinstance(client, Redis):
            client.set(KEY, value)
        assert client.get(KEY) == value


def test_what_one_lets_expire_is_gone_for_all(clients):
    """Each key is read as long as it must exist, and then until it no longer does."""
    setters = {name: client for name, client in clients.items() if client.can_expire}
    due = {}
    for name, client in setters.items():
        due[name] = time.monotonic() + 1
        client.set(name.encode(), b"v", seconds=1)
    for name, reader in itertools.product(setters, clients):
        value = clients[reader].get(name.encode())
        assert value == b"v" or time.monotonic() >= due[name], (name, reader)
    # REST's times are whole seconds, so its record may live for almost two.
    wait_until(lambda: not clients["redis"].client.exists(*setters), "the expiry")
    for name, reader in itertools.product(setters, clients):
        assert clients[reader].get(name.encode()) is None, (name, reader)


def test_a_collection_is_no_value(clients):
    for name, client in clients.items():
        clients["redis"].client.delete(KEY)
        clients["redis"].client.rpush(KEY, "item")
        if isinstance(client, MemcachedText):
            assert client.get(KEY) is None
        assert client.delete(KEY), name
        assert not clients["redis"].client.exists(KEY)


def test_counting_keeps_the_expiry_and_the_flags(clients):
    memcached = clients["memcached-text"]
    for name, client in clients.items():
        if client.numbers == "decimal":
            assert memcached.store(KEY, b"5", [b"F7", b"T100"]) == b"HD"
            assert client.increment(KEY, 3) == 8, name
            assert memcached.flags(KEY) == 7, name
            assert 0 < clients["redis"].client.pttl(KEY) <= 100_000, name
