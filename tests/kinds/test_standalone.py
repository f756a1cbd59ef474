"""The answers of a Redis without cluster, replicas and modules, and with one user: Tokaido gives the same."""

import pytest

from .wire import Wire

REFUSED = ["INFO", "NODES", "SLOTS", "SHARDS", "MYID", "KEYSLOT k", "COUNTKEYSINSLOT 1", "GETKEYSINSLOT 1 2", "RESET", "MEET h 1", "HELP", "SAVECONFIG"]


def test_there_is_no_cluster(pair):
    pair.check_all([("CLUSTER", *words.split()) for words in [*REFUSED, "", "NOSUCH", "KEYSLOT", "INFO x"]])
    pair.check_all([("ASKING",), ("READONLY",), ("READWRITE",), ("READONLY", "x")])


def test_there_are_no_replicas_and_no_modules(pair):
    pair.check_all([("REPLICAOF", "NO", "ONE"), ("SLAVEOF", "no", "one"), ("REPLICAOF", "x"), ("ROLE",), ("FAILOVER",), ("FAILOVER", "ABORT")])
    pair.check_all([("MODULE", "LIST"), ("MODULE",), ("MODULE", "NOSUCH"), ("BGSAVE", "x"), ("BGSAVE", "SCHEDULE", "x"), ("LASTSAVE", "x"), ("SAVE", "x")])
    pair.check_all([("SHUTDOWN", "x"), ("SHUTDOWN", "SAVE", "NOSAVE"), ("SHUTDOWN", "ABORT"), ("SHUTDOWN", "ABORT", "NOW"), ("MULTI",), ("SHUTDOWN",), ("DISCARD",)])
    wire = pair.tokaido
    before = int(wire.run("LASTSAVE")[1])
    assert wire.run("SAVE") == ("+", "OK") and wire.run("BGSAVE") == ("+", "Background saving started")
    assert int(wire.run("LASTSAVE")[1]) >= before


def test_there_is_one_user_unless_others_are_made(pair):
    pair.check_all([
        ("ACL", "WHOAMI"), ("ACL", "USERS"), ("ACL", "LIST"), ("ACL", "GETUSER", "default"), ("ACL", "GETUSER", "nosuch"),
        ("ACL", "CAT", "nosuch"), ("ACL", "GENPASS", "x"), ("ACL", "GENPASS", 0), ("ACL", "GENPASS", 4097), ("ACL", "DRYRUN", "default", "get", "k"),
        ("ACL", "DRYRUN", "nosuch", "get", "k"), ("ACL", "DRYRUN", "default", "nosuch"), ("ACL", "CAT", "geo", "x"), ("ACL",), ("ACL", "NOSUCH"),
    ])
    for bits, digits in [((), 64), ((5,), 2), ((1,), 1), ((4096,), 1024)]:
        for wire in (pair.redis, pair.tokaido):
            _, password = wire.run("ACL", "GENPASS", *bits)
            assert len(password) == digits and int(password, 16) >= 0
    assert pair.tokaido.run("ACL", "GENPASS") != pair.tokaido.run("ACL", "GENPASS")
    for category in ("geo", "hash"):
        redis, tokaido = (wire.run("ACL", "CAT", category)[1] for wire in (pair.redis, pair.tokaido))
        assert sorted(redis) == sorted(tokaido), category


def test_keys_are_not_tracked_unless_that_is_asked_for(pair):
    pair.check_all([("CLIENT", *words.split()) for words in (
        "GETREDIR", "TRACKINGINFO", "CACHING YES", "CACHING NO", "CACHING what", "TRACKING OFF", "TRACKING what", "GETREDIR x", "TRACKINGINFO",
    )])


def test_keys_are_given_with_what_is_done_to_them(pair):
    pair.check_all([("COMMAND", "GETKEYSANDFLAGS", *words.split()) for words in (
        "GET a", "MGET a b", "NOSUCH a", "PING", "GET", "ZINTER 2 a b", "EXPIRE k 1",
    )])


def test_what_memory_is_told_of(pair):
    pair.check_all([("MEMORY", "PURGE"), ("MEMORY", "NOSUCH"), ("MEMORY", "USAGE", "missing"), ("MEMORY", "STATS", "x")])
    wire = pair.tokaido
    wire.run_all([("SET", "k", "v" * 100), ("SELECT", 1), ("SET", "k", "v")])
    _, stats = wire.run("MEMORY", "STATS")
    flat = [part for pair in stats for part in pair] if stats[0][0] != "$" else stats
    numbers = dict(zip((name for _, name in flat[::2]), (int(number) for _, number in flat[1::2]), strict=True))
    assert numbers[b"keys.count"] == 2 and numbers[b"dataset.bytes"] == 103 and numbers[b"total.allocated"] > 0
    assert b"checkpoint" in wire.run("MEMORY", "DOCTOR")[1]


@pytest.fixture
def others(redis_port, tokaido_server):
    """Further connections to the two, with names."""
    wires = [Wire(redis_port, 2), Wire(tokaido_server.port, 2)]
    yield wires
    for wire in wires:
        wire.close()


def is_closed(wire):
    try:
        return wire.socket.recv(1) == b""
    except ConnectionError:
        return True


def test_connections_are_killed(pair, others):
    pair.check_all([("CLIENT", "KILL", *words.split()) for words in (
        "1.2.3.4:5", "ID 0", "ID x", "ID 987654321", "TYPE what", "TYPE master", "USER nosuch", "ADDR 1.2.3.4:5", "SKIPME what", "WHAT 1", "ID 1 TYPE",
    )])
    for wire, other in zip((pair.redis, pair.tokaido), others, strict=True):
        _, number = other.run("CLIENT", "ID")
        assert wire.run("CLIENT", "KILL", "ID", number, "TYPE", "pubsub") == (":", "0")
        assert wire.run("CLIENT", "KILL", "ID", number, "USER", "default") == (":", "1")
        assert is_closed(other)
        assert wire.run("CLIENT", "KILL", "ID", number) == (":", "0")


def test_a_connection_kills_itself_and_is_answered(others):
    for other in others:
        _, number = other.run("CLIENT", "ID")
        assert other.run("CLIENT", "KILL", "ID", number) == (":", "0")
        assert other.run("CLIENT", "KILL", "ID", number, "SKIPME", "no") == (":", "1")
        assert is_closed(other)


def test_one_that_waits_is_killed(pair, others):
    for wire, other in zip((pair.redis, pair.tokaido), others, strict=True):
        _, number = other.run("CLIENT", "ID")
        other.socket.sendall(b"BLPOP nothing 0\r\n")
        while b"blocked_clients:0" in wire.run("INFO", "clients")[1]:
            pass
        assert wire.run("CLIENT", "KILL", "ID", number) == (":", "1")
        assert is_closed(other)


def test_a_client_stops_the_server(own_server):
    server = own_server().start()
    wire = Wire(server.port, 2)
    assert wire.run("SET", "k", "v") == ("+", "OK")
    wire.socket.sendall(b"SHUTDOWN NOSAVE\r\n")
    assert is_closed(wire)
    assert server.process.wait(30) == 0
    server.start()
    again = Wire(server.port, 2)
    assert again.run("GET", "k") == ("$", b"v")
    again.close()
