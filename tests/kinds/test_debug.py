"""DEBUG: refused as in Redis, and where it is allowed, what test suites use."""

import shutil
import subprocess

import pytest
from support import Server, free_port, wait_until

from .conftest import is_listening
from .test_tracking import Both
from .wire import Wire, encode


@pytest.fixture(scope="module")
def ports(tmp_path_factory):
    """A Redis and a Tokaido that allow it."""
    directory, port = tmp_path_factory.mktemp("debug"), free_port()
    program = shutil.which("redis-server")
    if not program:
        pytest.skip("redis-server is not installed")
    process = subprocess.Popen([program, "--port", str(port), "--save", "", "--dir", directory, "--enable-debug-command", "yes"], stdout=subprocess.DEVNULL)
    (directory / "t.toml").write_text('[redis]\ndebug_command = "local"\n')
    wait_until(lambda: is_listening(port), "redis-server")
    with Server(directory / "data", directory / "log", options=["--config", str(directory / "t.toml"), "--sync", "os", "--workers", "1"]) as server:
        yield port, server.port
    process.kill()
    process.wait()


def test_it_is_refused_unless_it_is_allowed(redis_port, tokaido_server):
    both = Both((redis_port, tokaido_server.port), 2)
    for command in (("DEBUG",), ("DEBUG", "SLEEP", 0), ("DEBUG", "OBJECT", "k"), ("DEBUG", "NOSUCH"), ("DEBUG", "HELP"), ("CONFIG", "GET", "enable-debug-command")):
        both.run("main", *command)
    both.close()


@pytest.mark.parametrize("protocol", [2, 3])
def test_it_does_what_it_does_in_redis(ports, protocol):
    both = Both(ports, protocol)
    both.run("main", "DEBUG", "OBJECT", "missing")
    for kind in ("string", "integer", "double", "null", "array", "set", "map", "verbatim", "true", "false", "bignum"):
        both.run("main", "DEBUG", "PROTOCOL", kind)
    for command in (
        ("DEBUG", "ERROR", "WRONG of all"), ("DEBUG", "SET-ACTIVE-EXPIRE", 0), ("DEBUG", "SET-ACTIVE-EXPIRE", 1), ("DEBUG", "POPULATE", 5), ("GET", "key:4"), ("DBSIZE",),
        ("DEBUG", "POPULATE", 3, "p"), ("GET", "p:2"), ("DEBUG", "POPULATE", 7, "p", 9), ("GET", "p:2"), ("GET", "p:6"), ("DBSIZE",), ("DEBUG", "RELOAD"), ("DBSIZE",), ("DEBUG", "SLEEP", "0.01"),
        ("CONFIG", "GET", "enable-debug-command-x"),
    ):
        both.run("main", *command)
    for command in (("SET", "s", "text"), ("SET", "n", 12), ("RPUSH", "l", "a", "b"), ("HSET", "h", "f", "v")):
        both.run("main", *command)
        for client in both.clients("main"):
            told = client.run("DEBUG", "OBJECT", command[1])[1]
            assert told.startswith("Value at:0x") and " refcount:" in told and " encoding:" in told and " serializedlength:" in told
    redis, tokaido = (client.run("DEBUG", "OBJECT", "s")[1].split(" ")[2:5] for client in both.clients("main"))
    assert redis == tokaido
    both.close()


def test_sleep_holds_up_its_own_connection_alone(ports):
    _, port = ports
    sleeper, other = Wire(port, 2), Wire(port, 2)
    # After a write it is run by the writer, which must not sleep either.
    sleeper.socket.sendall(encode(("SET", "k", 1)) + encode(("DEBUG", "SLEEP", "1.5")) + encode(("PING",)))
    assert sleeper.reply() == ("+", "OK")
    for _ in range(20):
        assert other.run("INCR", "n")[0] == ":"
    sleeper.socket.setblocking(False)
    with pytest.raises(BlockingIOError):
        sleeper.socket.recv(1)
    sleeper.socket.settimeout(30)
    assert [sleeper.reply(), sleeper.reply()] == [("+", "OK"), ("+", "PONG")]
    for wrong in ("x", -1, 1e9):
        assert other.run("DEBUG", "SLEEP", wrong)[0] == "-"
    other.run("MULTI")
    assert other.run("DEBUG", "SLEEP", 0)[0] == "-"


def test_expired_records_can_be_left(ports):
    _, port = ports
    wire = Wire(port, 2)
    wire.run("FLUSHALL")
    wire.run("DEBUG", "SET-ACTIVE-EXPIRE", 0)
    wire.run_all([("SET", f"k{number}", 1, "PX", 1) for number in range(10)])
    wait_until(lambda: wire.run("EXISTS", "k9") == (":", "0"), "the expiry")
    # Longer than the server's interval.
    wire.run("DEBUG", "SLEEP", 1.2)
    assert wire.run("DBSIZE") == (":", "10")
    wire.run("DEBUG", "SET-ACTIVE-EXPIRE", 1)
    wait_until(lambda: wire.run("DBSIZE") == (":", "0"), "the removal")
