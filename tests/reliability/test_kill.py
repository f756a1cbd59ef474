"""Nothing that was answered is lost when the server is killed, and nothing half done remains.

Writers keep a ledger of the answers. After each kill the server starts again on the same directory,
and every entry of the ledger must be there. What was sent and not answered may have happened or not,
but only as a whole.
"""

import os
import pathlib
import random
import threading
import time

import pytest
import redis
from support import PROCEDURES, tokaido

# TOKAIDO_KILL_ROUNDS=5000 makes it a long run.
ROUNDS = int(os.environ.get("TOKAIDO_KILL_ROUNDS", "200"))
WRITERS = 6

# A round should hit many kinds of moments, and there are many rounds.
LIFE_SECONDS_MAX = 0.2
START_SECONDS_MAX = 0.06

# With a checkpoint every few rounds, so that most data is recovered from the log while the log does
# not grow with the rounds; and with a checkpoint for almost every group of writes, so that kills
# hit checkpoints, too.
STORES = pytest.mark.parametrize(
    "options",
    [["--memtable-bytes", str(2 << 20)], ["--memtable-bytes", "1"]],
    ids=["log", "checkpoints"],
)


def seeded():
    """Random numbers; TOKAIDO_SEED repeats an earlier run."""
    seed = int(os.environ.get("TOKAIDO_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"TOKAIDO_SEED={seed}")
    return random.Random(seed)


class Writer(threading.Thread):
    """Sends batches until the connection breaks. `counted` and `put` are the answered ones."""

    def __init__(self, server, number, seed):
        super().__init__(daemon=True)
        self.client = server.redis()
        self.number = number
        self.seed = seed
        self.counted = 0
        self.attempted = 0
        self.put = {}
        self.maybe_put = {}

    def run(self):
        random_ = random.Random(self.seed)
        try:
            while True:
                self.batch(random_.randint(1, 20))
        except (redis.ConnectionError, redis.TimeoutError, OSError):
            pass

    def batch(self, size):
        pipe = self.client.pipeline(transaction=False)
        sent = {}
        for _ in range(size):
            key = f"{self.number}:{self.attempted}"
            sent[key] = str(time.monotonic_ns())
            pipe.incr(f"counter:{self.number}").set(key, sent[key])
            self.attempted += 1
        self.maybe_put.update(sent)
        pipe.fcall("hits.count", 1, f"page:{self.number}")
        pipe.execute()
        self.counted += size
        self.put.update(sent)


def run_and_kill(server, random_):
    """One life of the server: all writers write to it, and it is killed in the middle."""
    writers = [Writer(server, number, random_.random()) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    time.sleep(random_.uniform(0.02, LIFE_SECONDS_MAX))
    server.kill()
    for writer in writers:
        writer.join(timeout=60)
        assert not writer.is_alive()
    return writers


def start_and_kill(server, random_):
    """A life that ends while the store is being opened, or soon after."""
    server.spawn()
    time.sleep(random_.uniform(0, START_SECONDS_MAX))
    server.kill()


def check_files(server):
    """What a kill leaves behind is sound, before anything opens it."""
    sound = tokaido("check", server.directory)
    assert sound.returncode == 0, sound.stdout + sound.stderr


def check(server, writers, counters, rounds):
    client = server.redis()
    for writer in writers:
        keys = list(writer.maybe_put)
        found = dict(zip(keys, client.mget(keys))) if keys else {}
        for key, value in writer.maybe_put.items():
            if key in writer.put:
                assert found[key] == value.encode(), f"round {rounds}: answered, and lost: {key}"
            else:
                assert found[key] in (None, value.encode()), f"round {rounds}: half a value: {key}"
        counter = int(client.get(f"counter:{writer.number}") or 0)
        before = counters.get(writer.number, 0)
        assert before + writer.counted <= counter <= before + writer.attempted
        counters[writer.number] = counter
    client.flushdb()
    for number, counter in counters.items():
        client.set(f"counter:{number}", counter)


@STORES
def test_no_answered_write_is_lost_when_the_server_is_killed(own_server, options):
    random_ = seeded()
    server = own_server(procedures=PROCEDURES, options=options)
    counters, answered, writers = {}, 0, []
    for rounds in range(ROUNDS):
        if random_.random() < 0.25:
            start_and_kill(server, random_)
        if rounds:
            check_files(server)
        server.start()
        check(server, writers, counters, rounds)
        writers = run_and_kill(server, random_)
        answered += sum(writer.counted for writer in writers)
    check_files(server)
    server.start()
    check(server, writers, counters, ROUNDS)
    print(f"{ROUNDS} kills, {answered} answered increments, none lost")
    assert answered > ROUNDS


@STORES
def test_a_transaction_is_there_as_a_whole_or_not_at_all(own_server, tmp_path, options):
    procedures = tmp_path / "procedures"
    procedures.mkdir()
    (procedures / "both.lua").write_text(
        'local tokaido = require "tokaido"\n'
        "local both = {}\n"
        "both.put = tokaido.write(function(tx, value)\n"
        "  for i = 1, 200 do tx.left:put(tostring(i), value) end\n"
        "  for i = 1, 200 do tx.right:put(tostring(i), value) end\n"
        "end)\n"
        "both.get = tokaido.read(function(tx)\n"
        "  local seen = {}\n"
        '  for i = 1, 200 do seen[tx.left:get(tostring(i)) or "none"] = true end\n'
        '  for i = 1, 200 do seen[tx.right:get(tostring(i)) or "none"] = true end\n'
        "  local values = {}\n"
        "  for value in pairs(seen) do values[#values + 1] = value end\n"
        "  return values\n"
        "end)\n"
        "return both\n"
    )
    server = own_server(procedures=procedures, options=options)
    random_ = seeded()
    for _ in range(max(ROUNDS // 4, 10)):
        server.start()
        client = server.redis()
        killer = threading.Timer(random_.uniform(0.01, 0.1), server.process.kill)
        killer.start()
        answered = None
        try:
            for i in range(100_000):
                client.fcall("both.put", 0, str(i))
                answered = i
        except (redis.ConnectionError, OSError):
            pass
        killer.join()
        server.kill()
        # If the first life was too short to lock the store, there is none. A locked store is sound,
        # even if its files were not made in time; and only a complete one has answered.
        directory = pathlib.Path(server.directory)
        if (directory / "tokaido.lock").exists():
            check_files(server)
        assert answered is None or (directory / "data.mdb").exists()
        server.start()
        values = server.redis().fcall("both.get", 0)
        assert len(values) == 1, f"parts of several transactions: {values}"
        if answered is not None:
            assert int(values[0]) in (answered, answered + 1)
        server.kill()
