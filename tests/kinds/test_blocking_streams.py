"""Blocking XREAD and XREADGROUP: replies as in Redis, and who receives what in which order."""

import threading

import pytest
from support import wait_until

from .stage import blocked_clients, play
from .wire import Wire, encode


@pytest.fixture
def both(request, wire, redis_port, tokaido_server):
    protocol = request.node.callspec.params["wire"]
    return lambda scene: play(scene, protocol, redis_port, tokaido_server.port)


def group_read(consumer, *keys, group="g", block="0", options=()):
    return ("XREADGROUP", "GROUP", group, consumer, *options, "BLOCK", block, "STREAMS", *keys, *[">"] * len(keys))


def test_readers_wait(both):
    def scene(stage):
        stage.run("XREAD", "BLOCK", "1", "STREAMS", "s", "$")
        stage.block("a", "XREAD", "BLOCK", "0", "STREAMS", "s", "$")
        stage.run("XADD", "s", "1-1", "f", "1")
        stage.hear("a")
        stage.run("XREAD", "BLOCK", "0", "STREAMS", "s", "0")
        stage.block("a", "XREAD", "BLOCK", "0", "STREAMS", "t", "s", "0", "$")
        stage.block("b", "XREAD", "COUNT", "1", "BLOCK", "0", "STREAMS", "s", "t", "$", "$")
        stage.block("c", "XREAD", "BLOCK", "10000", "STREAMS", "s", "5-0")
        stage.block("d", "XREAD", "BLOCK", "50", "STREAMS", "s", "$")
        stage.hear("d")
        stage.run("XADD", "s", "2-1", "f", "2")
        stage.hear("a", "b")
        stage.run("XADD", "s", "5-0", "f", "3")
        stage.run("XADD", "s", "5-1", "f", "4")
        stage.hear("c")

    both(scene)


def test_a_reader_sees_what_came_since_it_began_to_wait(both):
    def scene(stage):
        stage.run("XADD", "s", "1-1", "f", "1")
        stage.block("a", "XREAD", "BLOCK", "0", "STREAMS", "s", "$")
        stage.block("b", "XREAD", "BLOCK", "0", "STREAMS", "s", "7")
        for command in [("MULTI",), ("XADD", "s", "2-1", "f", "2"), ("XADD", "s", "3-1", "f", "3"), ("XDEL", "s", "2-1"), ("EXEC",)]:
            stage.run(*command)
        stage.hear("a")
        # A new stream starts anew; waiting readers keep their ids.
        stage.run("DEL", "s")
        stage.run("SET", "s", "v")
        stage.run("DEL", "s")
        stage.run("XADD", "s", "6-1", "f", "3")
        stage.run("XADD", "s", "8-1", "f", "3")
        stage.hear("b")

    both(scene)


WAYS = {
    "RENAME": [("XADD", "other", "1-1", "f", "v"), ("RENAME", "other", "s")],
    "COPY": [("XADD", "other", "1-1", "f", "v"), ("COPY", "other", "s")],
    "MOVE": [("SELECT", "1"), ("XADD", "s", "1-1", "f", "v"), ("MOVE", "s", "0"), ("SELECT", "0")],
    "script": [("EVAL", "return redis.call('xadd', 's', '1-1', 'f', 'v')", "0")],
    "another type first": [("SET", "s", "v"), ("DEL", "s"), ("RPUSH", "s", "a"), ("DEL", "s"), ("XADD", "s", "1-1", "f", "v")],
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_a_stream(both, way):
    def scene(stage):
        stage.block("a", "XREAD", "BLOCK", "0", "STREAMS", "s", "0")
        for command in WAYS[way]:
            stage.run(*command)
        stage.hear("a")

    both(scene)


def test_consumers_wait_in_order(both):
    def scene(stage):
        stage.run("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
        stage.run("XGROUP", "CREATE", "s", "h", "$")
        for name in "abc":
            stage.block(name, *group_read(name, "s", options=("COUNT", "1")))
        stage.block("x", *group_read("x", "s", group="h"))
        stage.block("r", "XREAD", "BLOCK", "0", "STREAMS", "s", "$")
        stage.run("XADD", "s", "1-1", "f", "1")
        stage.hear("a", "x", "r")
        for command in [("MULTI",), ("XADD", "s", "2-1", "f", "2"), ("XADD", "s", "3-1", "f", "3"), ("XADD", "s", "4-1", "f", "4"), ("EXEC",)]:
            stage.run(*command)
        stage.hear("b", "c")
        for group in "gh":
            stage.run("XREADGROUP", "GROUP", group, "a", "STREAMS", "s", ">")
        stage.block("a", *group_read("a", "s"))
        stage.block("b", *group_read("b", "s", options=("NOACK",)))
        stage.block("c", *group_read("c", "s", block="50"))
        stage.hear("c")
        stage.run("XADD", "s", "5-1", "f", "5")
        stage.hear("a")
        stage.run("XADD", "s", "6-1", "f", "6")
        stage.hear("b")
        for consumer in "abc":
            stage.run("XREADGROUP", "GROUP", "g", consumer, "STREAMS", "s", "0")
        stage.run("XREADGROUP", "GROUP", "g", "a", "BLOCK", "0", "STREAMS", "s", "0")

    both(scene)


ENDS = {
    "the group": [("XGROUP", "DESTROY", "s", "g")],
    "the group, made anew": [("MULTI",), ("XGROUP", "DESTROY", "s", "g"), ("XGROUP", "CREATE", "s", "other", "$"), ("EXEC",)],
    "the stream": [("DEL", "s")],
    "the stream, overwritten": [("SET", "s", "v")],
    "the stream, made anew": [("MULTI",), ("DEL", "s"), ("RPUSH", "s", "x"), ("EXEC",)],
    "the stream, renamed": [("RENAME", "s", "other")],
    "the database": [("FLUSHALL",)],
    "the stream, expired": [("PEXPIRE", "s", "1")],
}


@pytest.mark.parametrize("end", ENDS)
def test_what_is_waited_for_goes(both, end):
    def scene(stage):
        stage.run("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
        stage.run("XGROUP", "CREATE", "s2", "g", "$", "MKSTREAM")
        stage.block("a", *group_read("a", "s"))
        stage.block("b", *group_read("b", "s2", "s"))
        stage.block("r", "XREAD", "BLOCK", "0", "STREAMS", "s", "0")
        for command in ENDS[end]:
            stage.run(*command)
        stage.hear("a", "b")
        stage.run("DEL", "s")
        stage.run("XADD", "s", "9-9", "f", "v")
        stage.hear("r")

    both(scene)


def test_a_client_is_unblocked(both):
    def scene(stage):
        stage.run("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
        for how in ([], ["ERROR"]):
            for command in (("XREAD", "BLOCK", "0", "STREAMS", "s", "$"), group_read("a", "s")):
                name = f"{how} {command}"
                stage.wires[name] = Wire(stage.port, stage.protocol)
                session = stage.wires[name].run("CLIENT", "ID")[1]
                stage.block(name, *command)
                stage.came.append(stage.main.run("CLIENT", "UNBLOCK", session, *how))
                stage.hear(name)

    both(scene)


def test_a_pipeline_goes_on_behind_a_command_that_waits(both):
    def scene(stage):
        stage.block("a", "XREAD", "BLOCK", "0", "STREAMS", "s", "$")
        stage.wires["a"].socket.sendall(encode(("SET", "n", "1")) + encode(("XADD", "s", "2-1", "f", "2")))
        stage.run("XADD", "s", "1-1", "f", "1")
        stage.hear("a")
        stage.came += [stage.wires["a"].reply() for _ in range(2)]

    both(scene)


def test_a_database_that_is_not_there_can_be_waited_for(own_server):
    with own_server() as server:
        waiting, main = Wire(server.port, 2), Wire(server.port, 2)
        waiting.run("SELECT", "7")
        waiting.socket.sendall(encode(("XREAD", "BLOCK", "0", "STREAMS", "s", "$")))
        wait_until(lambda: blocked_clients(main) == 1, "the client to wait")
        assert "db7" not in main.run("INFO", "keyspace")[1].decode()
        main.run_all([("SELECT", "7"), ("XADD", "s", "1-1", "f", "v")])
        assert waiting.reply()[1][0][1][0] == ("$", b"s")


def test_each_of_many_consumers_gets_its_own(tokaido_server, wire):
    """Every entry reaches one consumer of a group, once, and every reader."""
    count, entries = 12, 240
    wire.run("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
    got, read, lock = [], [], threading.Lock()

    def consume(name):
        mine = Wire(tokaido_server.port, 3)
        while True:
            reply = mine.run(*group_read(name, "s", options=("COUNT", "2")))
            if reply[0] != "%":
                return
            ids = [entry[1][0][1] for entry in reply[1][0][1][1]]
            with lock:
                got.extend(ids)
            mine.run("XACK", "s", "g", *ids)

    def follow():
        mine, last, mine_read = Wire(tokaido_server.port, 3), "0", []
        while len(mine_read) < entries:
            mine_read += [entry[1][0][1] for entry in mine.run("XREAD", "BLOCK", "0", "STREAMS", "s", last)[1][0][1][1]]
            last = mine_read[-1]
        with lock:
            read.append(mine_read)

    workers = [threading.Thread(target=consume, args=(f"c{i}",)) for i in range(count)]
    followers = [threading.Thread(target=follow) for _ in range(3)]
    for worker in workers + followers:
        worker.start()
    expected = [b"%d-1" % (i + 1) for i in range(entries)]
    for start in range(0, entries, 5):
        wire.run_all([("XADD", "s", name, "f", "v") for name in expected[start : start + 5]])
    wait_until(lambda: len(got) >= entries, "all entries to be delivered")
    wait_until(lambda: wire.run("XPENDING", "s", "g")[1][0] == (":", "0"), "all to be acknowledged")
    wire.run("XGROUP", "DESTROY", "s", "g")
    for worker in workers + followers:
        worker.join(60)
        assert not worker.is_alive()
    assert sorted(got) == sorted(expected)
    assert read == [expected] * 3


def test_who_goes_away_leaves_entries_to_the_next(wire, tokaido_server):
    """The first clients in the queue leave just when the entry arrives."""
    wire.run("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
    for i in range(15):
        crowd = [Wire(tokaido_server.port, 2) for _ in range(6)]
        for place, one in enumerate(crowd):
            one.socket.sendall(encode(group_read(f"c{place}", "s")))
            wait_until(lambda place=place: blocked_clients(wire) == place + 1, "the client to wait")
        wire.socket.sendall(encode(("XADD", "s", f"{i + 1}-1", "f", "v")))
        for one in crowd[:-1]:
            one.close()
        assert wire.reply()[0] == "$"
        wait_until(lambda i=i: wire.run("XPENDING", "s", "g")[1][0] == (":", str(i + 1)), "somebody to take it")
        crowd[-1].close()
        wait_until(lambda: blocked_clients(wire) == 0, "all to go")


def test_what_was_acknowledged_stays_so_over_a_kill(own_server):
    """A ledger: every added entry exists, and each was delivered to one consumer. An unacknowledged entry is pending for its
    consumer, or was not delivered. Only what was on its way at the moment of the kill may be either."""
    with own_server(options=["--sync", "always"]) as server:
        lock, added, delivered, twice, acknowledged, maybe = threading.Lock(), [], {}, set(), set(), set()
        Wire(server.port, 3).run("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
        for life in range(3):

            def consume(name):
                try:
                    mine = Wire(server.port, 3)
                    while True:
                        (_, (_, entries)), = mine.run(*group_read(name, "s", options=("COUNT", "3")))[1]
                        ids = [entry[1][0][1].decode() for entry in entries]
                        with lock:
                            twice.update(set(ids) & set(delivered))
                            delivered.update(dict.fromkeys(ids, name))
                            maybe.update(ids[:2])
                        assert mine.run("XACK", "s", "g", *ids[:2]) == (":", str(len(ids[:2])))
                        with lock:
                            acknowledged.update(ids[:2])
                except (OSError, AssertionError):
                    return

            workers = [threading.Thread(target=consume, args=(f"c{i}",)) for i in range(4)]
            for worker in workers:
                worker.start()
            adder = Wire(server.port, 3)
            for i in range(150):
                added.append(adder.run("XADD", "s", f"{life * 1000 + i + 1}-1", "f", "v")[1].decode())
            server.kill()
            for worker in workers:
                worker.join(30)
            server.start()
        wire = Wire(server.port, 2)
        assert not twice, "an entry was given twice"
        assert [entry[1][0][1].decode() for entry in wire.run("XRANGE", "s", "-", "+")[1]] == added
        pending = {entry[1][0][1].decode(): entry[1][1][1].decode() for entry in wire.run("XPENDING", "s", "g", "-", "+", "10000")[1]}
        last = wire.run("XINFO", "GROUPS", "s")[1][0][1][7][1].decode()
        given = set(added[: added.index(last) + 1])
        assert set(delivered) <= given and set(pending) <= given
        assert not acknowledged & set(pending), "what was acknowledged is pending"
        assert given - set(pending) <= maybe, "what nobody has acknowledged is not pending"
        assert all(pending.get(entry, owner) == owner for entry, owner in delivered.items())
        assert wire.run("XPENDING", "s", "g")[1][0] == (":", str(len(pending)))
