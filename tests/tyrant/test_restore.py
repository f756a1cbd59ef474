"""`restore` replays update logs in Tokyo Tyrant's format (`tculog.c`), from a time on."""

import struct

import pytest
from pytyrant import TyrantError
from support import wait_until

from .conftest import is_open

DONE, FAILED = 0, 1


def entry(time_us, message, code=DONE):
    """A log entry: a message after its time, the numbers of two servers, and its length."""
    message += bytes([code])
    return struct.pack(">BQHHI", 0xC9, time_us, 1, 1, len(message)) + message


def message(command, *numbers, parts=()):
    head = b"".join(struct.pack(">i", number) for number in [*map(len, parts), *numbers])
    return bytes([0xC8, command]) + head + b"".join(parts)


def put(key, value, command=0x10):
    return message(command, parts=(key, value))


def misc(name, *items):
    listed = b"".join(struct.pack(">I", len(item)) + item for item in items)
    return bytes([0xC8, 0x90]) + struct.pack(">II", len(name), len(items)) + name + listed


ADD_DOUBLE = bytes([0xC8, 0x61]) + struct.pack(">Iqq", 4, 1, 500_000_000_000) + b"real"

# Every message that a log can have, with its outcome.
FIRST = [
    (put(b"old", b"1"), DONE),
    (put(b"kept", b"1", 0x11), DONE),
    (put(b"kept", b"2", 0x11), FAILED),
    (put(b"text", b"ab", 0x12), DONE),
    (put(b"text", b"cd", 0x12), DONE),
    (message(0x13, 3, parts=(b"text", b"ef")), DONE),
    (message(0x60, 7, parts=(b"int",)), DONE),
    (message(0x60, -2, parts=(b"int",)), DONE),
    (ADD_DOUBLE, DONE),
    (bytes([0xC8, 0x70]), DONE),
    (message(0x71, parts=(b"#bnum=1000",)), DONE),
]
SECOND = [
    (message(0x20, parts=(b"old",)), DONE),
    (message(0x20, parts=(b"old",)), FAILED),
    (misc(b"putlist", b"a", b"1", b"b", b"2"), DONE),
    (misc(b"out", b"a"), DONE),
    (misc(b"get", b"b"), DONE),
]


def write_log(directory, files):
    """Files of messages; each message is a second later than the previous one."""
    directory.mkdir()
    second = 0
    for number, messages in files:
        data = b""
        for body, code in messages:
            second += 1
            data += entry(second * 1_000_000, body, code)
        (directory / f"{number:08d}.ulog").write_bytes(data)


@pytest.fixture
def restoring(tyrant, tmp_path):
    """Makes clients of a server with a directory for backups, which holds a log."""
    backups = tmp_path / "backups"
    backups.mkdir()
    # Ordered by name, the second file would come first.
    write_log(backups / "ulog", [(9, FIRST), (100000000, SECOND)])
    (backups / "ulog" / "notes.txt").write_text("not of the log")
    tyrant.server.stop()
    tyrant.server.options += ["--backups", str(backups)]
    tyrant.server.start()
    wait_until(lambda: is_open(tyrant.server.tyrant_port), "the port")
    tyrant.backups = backups
    return tyrant


def test_all_that_a_log_has_is_done_again(restoring):
    client = restoring()
    client.restore(b"ulog", 0, 0)
    assert client.get(b"kept") == b"1"
    assert client.get(b"text") == b"def"
    assert client.get(b"int") == struct.pack("<i", 5)
    assert client.get(b"real") == struct.pack("<d", 1.5)
    assert client.get(b"b") == b"2"
    assert client.rnum() == 5
    assert restoring.server.redis().get("kept") == b"1"
    # What was answered is on disk.
    restoring.server.kill()
    restoring.server.start()
    wait_until(lambda: is_open(restoring.server.tyrant_port), "the port")
    assert restoring().rnum() == 5


def test_a_replay_begins_at_its_time(restoring):
    client = restoring()
    client.put(b"old", b"2")
    client.restore(b"ulog", (len(FIRST) + 3) * 1_000_000, 1)
    assert (client.get(b"old"), client.get(b"b"), client.rnum()) == (b"2", b"2", 2)
    client.restore(b"ulog", (len(FIRST) + len(SECOND) + 1) * 1_000_000, 1)


def test_a_strict_replay_ends_at_what_comes_out_otherwise(restoring):
    client = restoring()
    client.put(b"kept", b"there")
    with pytest.raises(TyrantError):
        client.restore(b"ulog", 0, 1)
    restoring.server.wait_for_log("an update came out otherwise than when it was logged")
    assert client.get(b"old") == b"1"
    with pytest.raises(TyrantError):
        client.get(b"text")
    client.restore(b"ulog", 0, 0)
    assert (client.get(b"kept"), client.get(b"text")) == (b"there", b"def")


def test_a_long_log_holds_up_nobody(restoring):
    count = 20_000
    messages = [(put(b"%d" % number, b"value"), DONE) for number in range(count)]
    write_log(restoring.backups / "long", [(1, messages)])
    client, other = restoring(), restoring()
    # Does not wait for the reply.
    client.sock.sendall(struct.pack(">BBIQI", 0xC8, 0x74, 4, 0, 1) + b"long")
    other.put(b"other", b"value")
    assert other.get(b"other") == b"value"
    assert client.sock.recv(1) == b"\x00"
    assert client.rnum() == count + 1


def test_what_is_no_log_is_refused(restoring):
    client, backups = restoring(), restoring.backups
    (backups / "empty").mkdir()
    (backups / "out").symlink_to(backups.parent)
    (backups.parent / "00000001.ulog").write_bytes(entry(1, put(b"outside", b"x")))
    write_log(backups / "reads", [(1, [(put(b"first", b"1"), DONE), (message(0x30, parts=(b"k",)), DONE)])])
    write_log(backups / "garbage", [(1, [(put(b"second", b"1"), DONE)])])
    with (backups / "garbage" / "00000001.ulog").open("ab") as file:
        file.write(b"what is no entry")
    for path in [b"empty", b"out", b"missing", b"..", b"", b"@true", b"reads", b"garbage"]:
        with pytest.raises(TyrantError):
            client.restore(path, 0, 0)
    assert sorted(client.mget([b"first", b"second", b"outside"])) == [(b"first", b"1"), (b"second", b"1")]
    for reason in ["has no update log", "is no request that changes records", "begins with 0x77"]:
        restoring.server.wait_for_log(reason)


def test_an_entry_that_was_cut_off_is_passed_over(restoring):
    log = restoring.backups / "cut"
    write_log(log, [(1, [(put(b"a", b"1"), DONE), (put(b"cut", b"1"), DONE)]), (2, [(put(b"b", b"1"), DONE)])])
    first = log / "00000001.ulog"
    first.write_bytes(first.read_bytes()[:-3])
    client = restoring()
    client.restore(b"cut", 0, 1)
    assert client.mget([b"a", b"cut", b"b"]) == [(b"a", b"1"), (b"b", b"1")]
