"""Blocking commands: replies as in Redis, the order in which clients are served, and that nothing is lost."""

import itertools
import threading
import time

import pytest
from support import PROCEDURES, wait_until

from .stage import blocked_clients, play
from .wire import NULL, Wire, encode


@pytest.fixture
def both(request, wire, redis_port, tokaido_server):
    protocol = request.node.callspec.params["wire"]
    return lambda scene: play(scene, protocol, redis_port, tokaido_server.port)


PUSHES = {
    "BLPOP": ("RPUSH", "k", "1", "2"), "BRPOP": ("RPUSH", "k", "1", "2"), "BZPOPMIN": ("ZADD", "k", "1.5", "a", "2", "b"),
    "BZPOPMAX": ("ZADD", "k", "1.5", "a", "2", "b"),
}


@pytest.mark.parametrize("name", PUSHES)
def test_each_of_them_waits(both, name):
    def scene(stage):
        stage.block("a", name, "other", "k", "0")
        stage.run(*PUSHES[name])
        stage.hear("a")
        stage.block("a", name, "other", "j", "0.05")
        stage.hear("a")
        stage.run(name, "other", "k", "0")
        stage.run("EXISTS", "k")
        stage.run(name, "k", "0.01")
        stage.run("EXISTS", "k")

    both(scene)


def test_moves_wait(both):
    def scene(stage):
        stage.block("a", "BLMOVE", "k", "j", "LEFT", "RIGHT", "0")
        stage.run("RPUSH", "k", "1", "2", "3")
        stage.hear("a")
        stage.run("BLMOVE", "k", "j", "right", "left", "0")
        stage.run("BRPOPLPUSH", "k", "j", "0")
        stage.block("a", "BRPOPLPUSH", "k", "j", "0")
        stage.block("b", "BLPOP", "l", "0")
        stage.block("c", "BLMOVE", "j2", "l", "LEFT", "RIGHT", "0")
        stage.run("LPUSH", "k", "4")
        stage.hear("a")
        stage.run("LPUSH", "j2", "5")
        stage.hear("c", "b")
        stage.run("LRANGE", "j", 0, -1)
        stage.block("a", "BLMOVE", "k", "j", "LEFT", "RIGHT", "0.05")
        stage.hear("a")
        stage.block("a", "BLMOVE", "k", "text", "LEFT", "RIGHT", "0")
        stage.run("SET", "text", "v")
        stage.run("RPUSH", "k", "6")
        stage.hear("a")
        stage.run("LRANGE", "k", 0, -1)

    both(scene)


def test_several_at_once(both):
    def scene(stage):
        stage.block("a", "BLMPOP", "0", "2", "other", "k", "RIGHT", "COUNT", "3")
        stage.run("RPUSH", "k", "1", "2", "3", "4")
        stage.hear("a")
        stage.run("BLMPOP", "0", "1", "k", "LEFT", "COUNT", "10")
        stage.block("a", "BZMPOP", "0", "2", "other", "k", "MAX", "COUNT", "2")
        stage.run("ZADD", "k", "1", "a", "2", "b", "3", "c")
        stage.hear("a")
        stage.run("BZMPOP", "0.01", "1", "k", "MIN")
        stage.run("BZMPOP", "0.01", "1", "k", "MIN")
        stage.run("BLMPOP", "0.01", "1", "k", "LEFT")

    both(scene)


def test_whoever_has_waited_longest_is_served_first(both):
    def scene(stage):
        for name in "abcdef":
            stage.block(name, *(("BLPOP", "j", "k", "0") if name in "bd" else ("BLPOP", "k", "0")))
        stage.run("RPUSH", "k", "1", "2")
        stage.hear_in_any_order("a", "b")
        stage.run("RPUSH", "j", "3")
        stage.hear("d")
        stage.run("RPUSH", "k", "4", "5", "6", "7")
        stage.hear_in_any_order("c", "e", "f")
        stage.run("LRANGE", "k", 0, -1)

    both(scene)


WAYS = {
    "RENAME": [("RPUSH", "other", "1", "2"), ("RENAME", "other", "k")],
    "COPY": [("RPUSH", "other", "1", "2"), ("COPY", "other", "k")],
    "LMOVE": [("RPUSH", "other", "1", "2"), ("LMOVE", "other", "k", "LEFT", "LEFT")],
    "MULTI": [("MULTI",), ("RPUSH", "k", "1"), ("LPUSH", "k", "2"), ("EXEC",)],
    "MULTI and more": [("MULTI",), ("RPUSH", "k", "1", "3"), ("DEL", "k"), ("LPUSH", "k", "2", "4"), ("EXEC",)],
    "MOVE": [("SELECT", "1"), ("RPUSH", "k", "1"), ("MOVE", "k", "0"), ("SELECT", "0")],
    "another type first": [("SET", "k", "v"), ("DEL", "k"), ("ZADD", "k", "1", "a"), ("DEL", "k"), ("LPUSH", "k", "1")],
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_a_list(both, way):
    def scene(stage):
        stage.block("a", "BLPOP", "k", "0")
        for command in WAYS[way]:
            stage.run(*command)
        stage.hear("a")
        stage.run("LRANGE", "k", 0, -1)

    both(scene)


def test_what_is_gone_by_the_end_of_a_transaction_was_never_there(both):
    def scene(stage):
        stage.block("a", "BLPOP", "k", "0")
        for command in [("MULTI",), ("RPUSH", "k", "1"), ("DEL", "k"), ("EXEC",), ("RPUSH", "k", "2")]:
            stage.run(*command)
        stage.hear("a")

    both(scene)


def test_nothing_waits_inside_a_transaction(both):
    def scene(stage):
        for commands in (
            [("BLPOP", "k", "0"), ("BRPOP", "k", "0"), ("BLMOVE", "k", "j", "LEFT", "LEFT", "0"), ("BZPOPMIN", "k", "0")],
            [("BLMPOP", "0", "1", "k", "LEFT"), ("BZMPOP", "0", "1", "k", "MIN"), ("BRPOPLPUSH", "k", "j", "0")],
            [("RPUSH", "k", "1"), ("BLPOP", "k", "0")],
        ):
            stage.run("MULTI")
            for command in commands:
                stage.run(*command)
            stage.run("EXEC")

    both(scene)


@pytest.mark.parametrize("name", ["BLPOP", "BRPOP", "BZPOPMIN", "BZPOPMAX", "BRPOPLPUSH", "BLMOVE", "BLMPOP", "BZMPOP"])
def test_wrong_arguments(both, name):
    numbers = ["0.001", "1e-3", "-1", "x", "", "-inf", "nan", "0x.01", " 1"]
    words = ["text", "list", "zset", "LEFT", "MIN", "1", "0"]
    tails = [(), *[(word,) for word in words], *itertools.product(words, words)]

    def scene(stage):
        stage.run("SET", "text", "v")
        for tail in tails:
            for number in numbers if len(tail) < 2 else ["0.001", "x"]:
                stage.run("DEL", "list", "zset", "LEFT", "1", "2", "0")
                stage.run("RPUSH", "list", "a")
                stage.run("ZADD", "zset", "1", "a")
                if name in ("BLMPOP", "BZMPOP"):
                    stage.run(name, number, *tail)
                elif name == "BLMOVE":
                    stage.run(name, *tail[:2], "LEFT", *tail[2:], number)
                    stage.run(name, "list", *tail, "RIGHT", number)
                else:
                    stage.run(name, *tail, number)
        stage.run(name, "list", "list", "LEFT", "RIGHT", "x")

    both(scene)


def test_a_client_is_unblocked(both):
    def scene(stage):
        for how in ([], ["TIMEOUT"], ["ERROR"], ["error"]):
            for command in (["BLPOP", "k", "0"], ["BLMOVE", "k", "j", "LEFT", "LEFT", "0"], ["BZPOPMIN", "k", "10"]):
                name = f"{how} {command}"
                stage.wires[name] = Wire(stage.port, stage.protocol)
                session = stage.wires[name].run("CLIENT", "ID")[1]
                stage.block(name, *command)
                stage.came.append(stage.main.run("CLIENT", "UNBLOCK", session, *how))
                stage.hear(name)
                stage.came.append(stage.main.run("CLIENT", "UNBLOCK", session))
        stage.run("CLIENT", "UNBLOCK", "123456")
        stage.run("CLIENT", "UNBLOCK", "x")
        stage.run("CLIENT", "UNBLOCK", "1", "MAYBE")

    both(scene)


def test_a_pipeline_goes_on_behind_a_command_that_waits(both):
    def scene(stage):
        stage.block("a", "BLPOP", "k", "0")
        stage.wires["a"].socket.sendall(encode(("SET", "n", "1")) + encode(("INCR", "n")))
        stage.run("GET", "n")
        stage.run("RPUSH", "k", "v")
        stage.hear("a")
        stage.came += [stage.wires["a"].reply() for _ in range(2)]

    both(scene)


def test_a_database_that_is_not_there_can_be_waited_for(own_server):
    with own_server() as server:
        waiting, main = Wire(server.port, 2), Wire(server.port, 2)
        for _ in range(2):
            waiting.run("SELECT", "7")
            waiting.socket.sendall(encode(("BLPOP", "k", "0")))
            wait_until(lambda: blocked_clients(main) == 1, "the client to wait")
            assert "db7" not in main.run("INFO", "keyspace")[1].decode()
            main.run_all([("SET", "k", "v"), ("SELECT", "7"), ("SET", "j", "v"), ("RPUSH", "k", "v"), ("SELECT", "0")])
            assert waiting.reply() == ("*", [("$", b"k"), ("$", b"v")])
            waiting.socket.sendall(encode(("BLPOP", "l", "0")))
            wait_until(lambda: blocked_clients(main) == 1, "the client to wait")
            main.run_all([("TOKAIDO", "DROP", "7"), ("SELECT", "7"), ("RPUSH", "l", "v"), ("SELECT", "0")])
            assert waiting.reply() == ("*", [("$", b"l"), ("$", b"v")])
            main.run("FLUSHALL")


def test_procedures_and_http_serve_those_who_wait(own_server):
    with own_server(procedures=PROCEDURES) as server:
        waiting, main = Wire(server.port, 2), Wire(server.port, 2)
        for push in (
            lambda: main.run("queue.push", "k", "v"),
            lambda: server.http("POST", "/v1/call/queue.push", b'["k", "v"]'),
        ):
            waiting.socket.sendall(encode(("BLPOP", "k", "0")))
            wait_until(lambda: blocked_clients(main) == 1, "the client to wait")
            push()
            assert waiting.reply() == ("*", [("$", b"k"), ("$", b"v")])
        assert main.run("queue.pop", "k") == NULL
        main.run("RPUSH", "k", "w")
        assert main.run("queue.pop", "k") == ("*", [("$", b"k"), ("$", b"w")])


def test_clients_that_wait_are_told_of(wire, tokaido_server):
    waiting = Wire(tokaido_server.port, 2)
    waiting.run("CLIENT", "SETNAME", "waits")
    waiting.socket.sendall(encode(("BLPOP", "k", "0")))
    wait_until(lambda: blocked_clients(wire) == 1, "the client to wait")
    lines = wire.run("CLIENT", "LIST")[1].decode().splitlines()
    (line,) = [line for line in lines if "name=waits" in line]
    assert "flags=b " in line and "cmd=blpop" in line
    waiting.close()
    wait_until(lambda: blocked_clients(wire) == 0, "the client to go")
    wire.run("RPUSH", "k", "v")
    assert wire.run("LLEN", "k") == (":", "1")


def test_who_goes_away_leaves_his_place_to_the_next(wire, tokaido_server):
    """The first in the queue leave just as the element arrives: it must not lie there while others wait."""
    for _ in range(20):
        crowd = [Wire(tokaido_server.port, 2) for _ in range(8)]
        for i, one in enumerate(crowd):
            one.socket.sendall(encode(("BLPOP", "k", "0")))
            wait_until(lambda i=i: blocked_clients(wire) == i + 1, "the client to wait")
        wire.socket.sendall(encode(("RPUSH", "k", "v")))
        for one in crowd[:-1]:
            one.close()
        assert wire.reply()[0] == ":"
        wait_until(lambda: wire.run("LLEN", "k") == (":", "0"), "somebody to take it")
        crowd[-1].close()
        wait_until(lambda: blocked_clients(wire) == 0, "all to go")


def test_wait_and_waitaof_have_nothing_to_wait_for(wire):
    assert wire.run("WAIT", "1", "1000") == (":", "0")
    assert wire.run("WAITAOF", "1", "0", "0") == ("*", [(":", "1"), (":", "0")])
    for wrong in (("2", "0", "0"), ("x", "0", "0"), ("1", "-1", "0"), ("1", "0", "-1"), ("1", "0", "x")):
        assert wire.run("WAITAOF", *wrong)[0] == "-"


def test_each_of_many_waiters_gets_its_own(tokaido_server, wire):
    """As many elements as there are waiters arrive, in bursts: each waiter gets exactly one."""
    count, rounds = 40, 5
    got, lock = [], threading.Lock()

    def work():
        mine = Wire(tokaido_server.port, 3)
        for _ in range(rounds):
            item = mine.run("BLPOP", "k", "0")[1][1][1]
            with lock:
                got.append(item)

    workers = [threading.Thread(target=work) for _ in range(count)]
    for worker in workers:
        worker.start()
    items = [b"%d" % i for i in range(count * rounds)]
    for start in range(0, len(items), 7):
        wire.run("RPUSH", "k", *items[start : start + 7])
    for worker in workers:
        worker.join(60)
        assert not worker.is_alive(), f"a worker still waits; {len(got)} of {len(items)} were given"
    assert sorted(got) == sorted(items)
    assert wire.run("EXISTS", "k") == (":", "0")


def test_what_was_popped_stays_popped_over_a_kill(own_server):
    """A ledger: an element given to a worker never comes back, and an acknowledged push reaches somebody.
    Only elements on their way to a worker at the moment of the kill may be popped without having arrived."""
    with own_server(options=["--sync", "always"]) as server:
        pushed, popped, lock, workers_count = 0, [], threading.Lock(), 6
        for _ in range(3):
            begun = time.monotonic()

            def work():
                try:
                    mine = Wire(server.port, 3)
                    while True:
                        item = int(mine.run("BLPOP", "k", "0")[1][1][1])
                        with lock:
                            popped.append(item)
                except (OSError, AssertionError):
                    return

            workers = [threading.Thread(target=work) for _ in range(workers_count)]
            for worker in workers:
                worker.start()
            pusher = Wire(server.port, 3)
            while time.monotonic() - begun < 1:
                assert pusher.run("RPUSH", "k", pushed)[0] == ":"
                pushed += 1
            server.kill()
            for worker in workers:
                worker.join(30)
            server.start()
        left = [int(item) for _, item in Wire(server.port, 3).run("LRANGE", "k", 0, -1)[1]]
        assert len(set(popped)) == len(popped), "an element was given twice"
        assert not set(popped) & set(left), "what was given came back"
        lost = set(range(pushed)) - set(popped) - set(left)
        assert len(lost) <= 3 * workers_count, f"{len(lost)} elements are lost: {sorted(lost)[:20]}"
