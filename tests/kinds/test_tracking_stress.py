"""Caching readers never keep an old value, while others write in every possible way."""

import random
import threading
import urllib.request

import pytest
from support import Server, wait_until

from .test_tracking import Tracked
from .wire import encode

KEYS = [f"key:{number}" for number in range(8)]
ROUNDS, WRITES, READS = 12, 60, 120
PROCEDURES = """
local tokaido = require "tokaido"

return {
  set = tokaido.write(function(tx, key, value)
    tx.main:put(key, value)
  end),
}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    directory = tmp_path_factory.mktemp("stress")
    (directory / "procedures").mkdir()
    (directory / "procedures" / "keep.lua").write_text(PROCEDURES)
    options = ["--sync", "os", "--workers", "2"]
    with Server(directory / "data", directory / "log", procedures=directory / "procedures", options=options) as server:
        yield server


class Reader:
    """A client that caches values, and drops them when told to."""

    def __init__(self, port, *options):
        self.connection, self.kept = Tracked(port, 3), {}
        self.owns = "NOLOOP" in options
        assert self.connection.run("CLIENT", "TRACKING", "ON", *options) == ("+", "OK")

    def read_some(self, chance):
        key = chance.choice(KEYS)
        if key in self.kept and chance.random() < 0.5:
            return
        requests = chance.choice([
            [("GET", key)],
            [("GET", key), ("GET", chance.choice(KEYS)), ("GET", key)],
            # After a write, reads run on the writer.
            [("INCR", "n"), ("GET", key)],
            [("SET", key, f"own {chance.random()}"), ("GET", key)] if self.owns else [("INCR", "n"), ("GET", key), ("INCR", "n"), ("GET", key)],
            [("MULTI",), ("GET", key), ("EXEC",)],
            [("EVAL_RO", "return redis.call('GET', KEYS[1])", 1, key)],
            [("EVAL", "return redis.call('GET', KEYS[1])", 1, key)],
            [("MGET", key)],
        ])
        self.connection.wire.socket.sendall(b"".join(map(encode, requests)))
        for request in requests:
            self.take(request, key)

    def take(self, request, key):
        """Reads whatever arrives, in order, up to the reply."""
        while (reply := self.connection.wire.reply())[0] == ">":
            self.forget(reply)
        name = request[0]
        if name == "SET":
            self.kept.pop(key, None)
        elif name == "GET" and reply != ("+", "QUEUED"):
            self.kept[request[1]] = reply
        elif name in ("EVAL_RO", "EVAL"):
            self.kept[key] = reply
        elif name in ("EXEC", "MGET"):
            self.kept[key] = reply[1][0]

    def forget(self, push):
        _, (kind, keys) = push
        assert kind == ("$", b"invalidate")
        if keys == ("null",):
            self.kept.clear()
        else:
            for _, key in keys[1]:
                self.kept.pop(key.decode(), None)

    def listen(self):
        """Processes the pushes received so far."""
        for push in self.connection.told():
            self.forget(push)

    def old_values(self, truth):
        self.listen()
        return {key: (kept, truth[key]) for key, kept in self.kept.items() if kept != truth[key]}


def write_some(server, way, chance):
    connection = Tracked(server.port, 3)
    for number in range(WRITES):
        key, value = chance.choice(KEYS), f"{way} {number} {chance.random()}"
        if way == "set":
            connection.run("SET", key, value)
        elif way == "expiring":
            connection.run("SET", key, value, "PX", chance.choice([1, 5, 100]))
        elif way == "pipeline":
            requests = [("SET", chance.choice(KEYS), value) for _ in range(10)]
            connection.wire.socket.sendall(b"".join(map(encode, requests)))
            for _ in requests:
                connection.reply()
        elif way == "multi":
            for command in (("MULTI",), ("SET", key, value), ("DEL", chance.choice(KEYS)), ("EXEC",)):
                connection.run(*command)
        elif way == "script":
            connection.run("EVAL", "return redis.call('SET', KEYS[1], ARGV[1])", 1, key, value)
        elif way == "procedure":
            assert connection.run("FCALL", "keep.set", 1, key, value)[0] != "-"
        else:
            request = urllib.request.Request(f"http://{server.address}/v1/db/main/{key}", data=value.encode(), method="PUT")
            urllib.request.urlopen(request, timeout=30).close()
    connection.wire.close()


def test_nobody_keeps_an_old_value(server):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    modes = [(), (), ("NOLOOP",), ("OPTOUT",), ("BCAST",), ("BCAST", "PREFIX", "key:", "NOLOOP")]
    readers = [Reader(server.port, *mode) for mode in modes]
    asks = Tracked(server.port, 3)
    failures = []

    def guard(work, *arguments):
        try:
            work(*arguments)
        except Exception as error:
            failures.append(error)
            raise

    def read(reader, chance):
        for _ in range(READS):
            reader.read_some(chance)

    for round_number in range(ROUNDS):
        chances = (random.Random(f"{seed} {round_number} {number}") for number in range(100))
        threads = [threading.Thread(target=guard, args=(read, reader, next(chances))) for reader in readers]
        for way in ("set", "expiring", "pipeline", "multi", "script", "procedure", "http"):
            threads.append(threading.Thread(target=guard, args=(write_some, server, way, next(chances))))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures

        def is_current():
            truth = {key: asks.run("GET", key) for key in KEYS}
            return not any(reader.old_values(truth) for reader in readers)

        # Expired keys are reported when they are removed.
        wait_until(is_current, "the last invalidation")
    for reader in readers:
        reader.connection.wire.close()
    asks.wire.close()
