"""Backups of a running server under load. Each is a store of one moment, with everything that was
answered before it began; a failed backup leaves nothing under its name."""

import json
import subprocess
import threading
import time

import pytest
import redis
from support import PROCEDURES, binary, tokaido

WRITERS = 4
BACKUPS = 8
ACCOUNTS = 50
START_BALANCE = 1000

# With the defaults, and with a checkpoint for almost every group of writes.
STORES = pytest.mark.parametrize(
    "options", [[], ["--memtable-bytes", "1"]], ids=["default", "checkpoints"]
)


class Teller(threading.Thread):
    """Moves money between the accounts of two databases, one transaction per move, and counts its
    moves in each of them."""

    def __init__(self, server, number):
        super().__init__(daemon=True)
        self.client = server.redis()
        self.number = number
        self.answered = 0
        self.failure = None
        self.is_done = False

    def run(self):
        try:
            while not self.is_done:
                account = f"{(self.answered * 7 + self.number) % ACCOUNTS}"
                moved = self.client.fcall("bank.move", 0, account, "3", f"moves:{self.number}")
                assert moved == self.answered + 1
                self.answered = moved
        except Exception as failure:  # The main thread reports it.
            self.failure = failure


def tellers(server):
    for account in range(ACCOUNTS):
        server.redis().fcall("bank.open", 0, str(account), str(START_BALANCE))
    started = [Teller(server, number) for number in range(WRITERS)]
    for teller in started:
        teller.start()
    return started


def dump(directory, database):
    done = tokaido("dump", "--dir", directory, "--db", database, "--format", "jsonl")
    assert done.returncode == 0, done.stderr
    rows = map(json.loads, done.stdout.splitlines())
    return {row["key"]: int(row["value"]) for row in rows}


def check_backup(backup, answered):
    checked = tokaido("check", backup)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    left, right = dump(backup, "left"), dump(backup, "right")
    moves = {key: left.pop(key) for key in list(left) if key.startswith("moves:")}
    for number, count in answered.items():
        assert moves.get(f"moves:{number}", 0) >= count, "answered before, and not in the backup"
    assert sum(left.values()) + sum(right.values()) == 2 * ACCOUNTS * START_BALANCE
    assert sum(right.values()) == ACCOUNTS * START_BALANCE + 3 * sum(moves.values())


@STORES
def test_every_backup_under_load_is_of_one_moment(own_server, tmp_path, options):
    server = own_server(procedures=PROCEDURES, options=options).start()
    working = tellers(server)
    try:
        for number in range(BACKUPS):
            answered = {teller.number: teller.answered for teller in working}
            backup = tmp_path / f"backup {number}"
            done = tokaido("backup", server.directory, backup)
            assert done.returncode == 0, done.stderr
            check_backup(backup, answered)
    finally:
        for teller in working:
            teller.is_done = True
        for teller in working:
            teller.join(timeout=60)
    assert [teller.failure for teller in working] == [None] * WRITERS
    assert all(teller.answered > 0 for teller in working)

    # Serve from the last backup.
    server.stop()
    restored = tmp_path / "restored"
    assert tokaido("restore", backup, restored).returncode == 0
    again = own_server(restored, procedures=PROCEDURES).start()
    assert again.redis().fcall("bank.move", 0, "0", "1", "moves:0") > 0


def test_a_backup_that_is_killed_is_not_there_and_pins_no_pages(own_server, tmp_path):
    server = own_server(options=["--memtable-bytes", "100000"]).start()
    client = server.redis()

    def overwrite():
        for first in range(0, 500, 25):
            client.mset({f"key:{number}": "x" * 10_000 for number in range(first, first + 25)})
        return (server.directory / "data.mdb").stat().st_size

    overwrite()
    backup = tmp_path / "backup"
    for round_ in range(10):
        process = subprocess.Popen([binary(), "backup", str(server.directory), str(backup)])
        time.sleep(0.002 * round_)
        process.kill()
        process.wait()
        if backup.exists():  # The backup was faster.
            assert tokaido("check", backup).returncode == 0
            backup.rename(tmp_path / f"made {round_}")

    # If killed readers kept pages in use, the file would grow in every round.
    overwrite()
    first = max(overwrite() for _ in range(2))
    assert max(overwrite() for _ in range(5)) < 1.5 * first
    done = tokaido("backup", server.directory, backup)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def small_disk(disk_of):
    return disk_of(4 << 20)


@STORES
def test_a_backup_to_a_full_disk_leaves_nothing(own_server, small_disk, options):
    server = own_server(options=options).start()
    client = server.redis()
    for number in range(100):
        client.set(f"key:{number}", "x" * 100_000)
    done = tokaido("backup", server.directory, small_disk / "backup")
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert list(small_disk.iterdir()) == []
    try:
        assert client.set("later", "1"), "the server goes on"
    except redis.RedisError as error:
        raise AssertionError(f"the server does not go on: {error}") from error
