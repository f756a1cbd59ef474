"""Publish and subscribe: Redis's replies and messages, with several clients."""

import threading

import pytest
from support import PROCEDURES, wait_until

from .wire import NULL, Wire, encode


class Stage:
    """Clients of one server, and everything they received."""

    def __init__(self, port, protocol):
        self.port, self.protocol = port, protocol
        self.wires, self.came = {}, []

    def ask(self, name, *command, replies=1):
        """Sends a client's command, and reads that many replies and messages."""
        if name not in self.wires:
            self.wires[name] = Wire(self.port, self.protocol)
        self.wires[name].socket.sendall(encode(command))
        self.hear(name, replies)

    def hear(self, name, messages=1):
        self.came += [(name, self.wires[name].reply()) for _ in range(messages)]

    def hear_in_any_order(self, name, messages):
        self.came.append((name, sorted(self.wires[name].reply()[1] for _ in range(messages))))

    def close(self):
        for wire in self.wires.values():
            wire.close()
        wire = Wire(self.port, self.protocol)
        wait_until(lambda: wire.run("PUBSUB", "NUMPAT") == (":", "0"), "the end of all patterns")
        for names in ("CHANNELS", "SHARDCHANNELS"):
            wait_until(lambda names=names: wire.run("PUBSUB", names) == ("*", []), "the end of all channels")
        wire.close()


@pytest.fixture
def both(request, wire, redis_port, tokaido_server):
    """Plays a scene on both servers, where every client must receive the same."""
    protocol = request.node.callspec.params["wire"]

    def play(scene):
        came = []
        for port in (redis_port, tokaido_server.port):
            stage = Stage(port, protocol)
            try:
                scene(stage)
            finally:
                stage.close()
            came.append(stage.came)
        for step, (expected, ours) in enumerate(zip(*came, strict=True)):
            assert expected == ours, f"step {step}: Redis {expected}, Tokaido {ours}"

    return play


def test_channels_patterns_and_shards(both):
    def scene(stage):
        stage.ask("a", "SUBSCRIBE", "x", "y", "x", "", replies=4)
        stage.ask("b", "PSUBSCRIBE", "x*", "*", "[", replies=3)
        stage.ask("c", "SSUBSCRIBE", "x", "z", replies=2)
        stage.ask("c", "SUBSCRIBE", "x")
        for channel in ("x", "y", "z", "xy"):
            stage.ask("p", "PUBLISH", channel, f"to {channel}\r\n")
            stage.ask("p", "SPUBLISH", channel, f"to shard {channel}")
        stage.hear("a", 2)
        stage.hear_in_any_order("b", 6)
        stage.hear("c", 3)
        stage.ask("a", "UNSUBSCRIBE", "x", "nothing", replies=2)
        stage.ask("b", "PUNSUBSCRIBE", "x*")
        stage.ask("c", "SUNSUBSCRIBE", "x")
        stage.ask("p", "PUBLISH", "x", "again")
        stage.ask("p", "SPUBLISH", "x", "again")
        stage.hear("b", 1)
        stage.hear("c", 1)
        stage.ask("c", "SUNSUBSCRIBE")
        stage.ask("c", "UNSUBSCRIBE")
        stage.ask("a", "UNSUBSCRIBE", "y")
        stage.ask("a", "UNSUBSCRIBE")
        for verb in ("SUNSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE"):
            stage.ask("c", verb)
        stage.ask("c", "PING")

    both(scene)


def test_pubsub(both):
    def scene(stage):
        stage.ask("a", "SUBSCRIBE", "news")
        stage.ask("a", "PSUBSCRIBE", "n*", "m*", replies=2)
        stage.ask("b", "SSUBSCRIBE", "sharded")
        stage.ask("b", "PSUBSCRIBE", "n*")
        for command in (
            ["CHANNELS"], ["CHANNELS", "n*"], ["CHANNELS", "x*"], ["CHANNELS", "a", "b"], ["NUMPAT"], ["NUMPAT", "x"],
            ["NUMSUB"], ["NUMSUB", "news", "none"], ["SHARDCHANNELS"], ["SHARDCHANNELS", "s*"],
            ["SHARDNUMSUB"], ["SHARDNUMSUB", "sharded", "news"], [],
        ):
            stage.ask("p", "PUBSUB", *command)
        for command in (["PUBLISH", "x"], ["SUBSCRIBE"], ["PSUBSCRIBE"], ["SPUBLISH", "a", "b", "c"]):
            stage.ask("p", *command)

    both(scene)


def test_what_a_subscriber_may_send(both):
    """In version 2 of the protocol, other replies would look like messages."""

    def scene(stage):
        stage.ask("a", "SUBSCRIBE", "x")
        for command in (
            ["GET", "k"], ["SET", "k"], ["nothing"], ["PING"], ["PING", "text"], ["PING", "a", "b"], ["client", "id"],
            ["MULTI"], ["PSUBSCRIBE", "y"], ["PUBLISH", "none", "x"],
        ):
            if command[0] not in ("client", "MULTI"):
                stage.ask("a", *command)
        stage.ask("a", "UNSUBSCRIBE")
        stage.ask("a", "PUNSUBSCRIBE")
        stage.ask("a", "GET", "k")
        stage.ask("a", "SUBSCRIBE", "x")
        stage.ask("a", "RESET")
        stage.ask("a", "PING")
        stage.ask("p", "PUBLISH", "x", "nobody hears it")
        stage.ask("a", "SUBSCRIBE", "x")
        stage.ask("a", "QUIT")

    both(scene)


def test_a_transaction_publishes_what_it_has_done(both):
    def scene(stage):
        stage.ask("a", "SUBSCRIBE", "x")
        for command in (["MULTI"], ["SET", "k", "v"], ["PUBLISH", "x", "1"], ["PUBLISH", "x", "2"], ["EXEC"]):
            stage.ask("p", *command)
        stage.hear("a", 2)

    both(scene)


def test_what_is_rolled_back_is_not_published(wire, tokaido_server):
    listener = Wire(tokaido_server.port, 3)
    listener.run("SUBSCRIBE", "x")
    wire.run_all([("SET", "k", "v"), ("MULTI",), ("PUBLISH", "x", "no"), ("INCR", "k")])
    assert wire.run("EXEC")[1].startswith("EXECABORT")
    assert wire.run("PUBLISH", "x", "yes") == (":", "1")
    assert listener.reply() == (">", [("$", b"message"), ("$", b"x"), ("$", b"yes")])


def test_whoever_hears_of_a_write_finds_it(wire, tokaido_server):
    """Even a write that is on its way to disk in the same pipeline."""
    listener = Wire(tokaido_server.port, 3)
    listener.run("SUBSCRIBE", "x")
    for i in range(200):
        wire.socket.sendall(b"".join(map(encode, [("SET", "k", i), ("PUBLISH", "x", i)])))
        assert listener.reply()[1][2] == ("$", str(i).encode())
        assert listener.run("GET", "k") == ("$", str(i).encode())
        assert [wire.reply(), wire.reply()] == [("+", "OK"), (":", "1")]


def test_everybody_hears_the_same_order(tokaido_server):
    listeners = [Wire(tokaido_server.port, 3) for _ in range(6)]
    for listener in listeners:
        listener.run("SUBSCRIBE", "x")

    def publish(name):
        publisher = Wire(tokaido_server.port, 3)
        publisher.run_all([("PUBLISH", "x", f"{name} {i}") for i in range(300)])

    publishers = [threading.Thread(target=publish, args=(name,)) for name in range(4)]
    for publisher in publishers:
        publisher.start()
    heard = [[listener.reply()[1][2] for _ in range(1200)] for listener in listeners]
    for publisher in publishers:
        publisher.join()
    assert all(messages == heard[0] for messages in heard)
    of_one = [text for _, text in heard[0] if text.startswith(b"0 ")]
    assert of_one == [b"0 %d" % i for i in range(300)]


def test_the_list_of_clients_tells_of_subscribers(wire, tokaido_server):
    listener = Wire(tokaido_server.port, 2)
    listener.run("CLIENT", "SETNAME", "listener")
    for name in ("a", "b"):
        listener.run("SUBSCRIBE", name)
    listener.run("PSUBSCRIBE", "c*")
    (line,) = [line for line in text(wire.run("CLIENT", "LIST", "TYPE", "pubsub")) if "name=listener" in line]
    assert "flags=P " in line
    assert "sub=2 psub=1 ssub=0" in line
    assert not [line for line in text(wire.run("CLIENT", "LIST", "TYPE", "normal")) if "name=listener" in line]
    assert {"pubsub_channels:2", "pubsub_patterns:1"} <= set(text(wire.run("INFO", "stats")))
    listener.close()


def text(reply):
    return reply[1].decode().removeprefix("txt:").splitlines()


def test_one_who_does_not_listen_is_disconnected(own_server):
    """The buffer for such a client is bounded, and it does not block others."""
    options = ["--pushed-bytes-max", "65536", "--unsent-bytes-max", "65536"]
    with own_server(options=options) as server:
        deaf, other, publisher = (Wire(server.port, 3) for _ in range(3))
        deaf.run("SUBSCRIBE", "x")
        other.run("SUBSCRIBE", "x")
        payload = "x" * 10_000
        sent = 0
        while publisher.run("PUBLISH", "x", payload) == (":", "2"):
            assert other.reply()[0] == ">"
            sent += 1
            assert sent < 10_000, "he is still connected"
        assert other.reply()[0] == ">"
        assert "limits.pushed_bytes_max" in server.log()
        metrics = server.http("GET", "/metrics")[2].decode()
        assert "tokaido_connections_overrun_total 1" in metrics


def test_a_client_subscribes_to_no_more_than_the_limit(own_server):
    with own_server(options=["--subscriptions-max", "3", "--subscription-bytes-max", "8"]) as server:
        wire = Wire(server.port, 3)
        for command in (("SUBSCRIBE", "a", "b", "c", "d"), ("PSUBSCRIBE", "123456789")):
            assert "at most 3 names of 8 bytes together" in wire.run(*command)[1]
        assert wire.run("UNSUBSCRIBE") == (">", [("$", b"unsubscribe"), NULL, (":", "0")])
        wire.run("SUBSCRIBE", "a")
        wire.run("UNSUBSCRIBE", "a")
        for name in "bcd":
            assert wire.run("SUBSCRIBE", name)[0] == ">"
        assert wire.run("SUBSCRIBE", "e")[0] == "-"


def test_a_subscriber_is_not_idle(own_server):
    with own_server(options=["--idle-ms", "200"]) as server:
        listener = Wire(server.port, 3)
        listener.run("SUBSCRIBE", "x")
        silent = Wire(server.port, 3)
        assert silent.input.read() == b""
        assert Wire(server.port, 3).run("PUBLISH", "x", "hello") == (":", "1")
        assert listener.reply()[1][2] == ("$", b"hello")


def test_a_procedure_publishes_what_it_has_done(own_server):
    with own_server(procedures=PROCEDURES) as server:
        listener, caller = Wire(server.port, 3), Wire(server.port, 3)
        listener.run("SUBSCRIBE", "x")
        assert caller.run("news.tell", "x", "by name") == (":", "1")
        assert caller.run("news.tell_and_fail", "x", "never")[0] == "-"
        caller.run_all([("MULTI",), ("news.tell", "x", "queued"), ("EXEC",)])
        assert server.http("POST", "/v1/call/news.tell", b'["x", "over HTTP"]')[0] == 200
        assert server.http("POST", "/v1/call/news.tell_and_fail", b'["x", "never"]')[0] >= 400
        assert server.http("POST", "/v1/call/news.whisper", b'["x", "read"]')[0] == 200
        assert server.http("POST", "/news/x", b"routed")[0] == 200
        heard = [listener.reply()[1][2][1] for _ in range(5)]
        assert heard == [b"by name", b"queued", b"over HTTP", b"read", b"routed"]
        assert listener.run("GET", "x") == ("$", b"routed")
