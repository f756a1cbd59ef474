"""redis-cli and redis-benchmark, as they come from the distribution."""

import re
import subprocess

import pytest


@pytest.fixture
def cli(server):
    def run(*arguments, stdin=None):
        command = ["redis-cli", "-p", str(server.port), *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=60, check=True)
        return done.stdout.decode()

    return run


@pytest.mark.parametrize("version", ["-2", "-3"])
def test_it_sets_and_gets(cli, version):
    assert cli(version, "set", "station", "日本橋") == "OK\n"
    assert cli(version, "--raw", "get", "station") == "日本橋\n"
    assert cli(version, "get", "nothing").strip() == ""


def test_resp3_types_are_seen_as_such(cli):
    cli("set", "n", "1")
    assert cli("-3", "--no-raw", "get", "nothing") == "(nil)\n"
    assert cli("-3", "--no-raw", "incr", "n") == "(integer) 2\n"
    assert cli("-3", "--no-raw", "fcall", "values.kinds", "0").startswith('1) "text"\n2) (integer) 42\n')


def test_commands_come_from_standard_input_in_order(cli):
    commands = b"set a 1\nincr a\nnonsense\nget a\n"
    lines = cli(stdin=commands).split("\n")
    assert lines[:2] == ["OK", "2"]
    assert lines[2].startswith("ERR unknown command")
    assert lines[-2] == "2"


def test_a_file_of_commands_is_piped_in(cli):
    requests = b"".join(
        b"*3\r\n$3\r\nSET\r\n$7\r\nkey%04d\r\n$1\r\nx\r\n" % i for i in range(10_000)
    )
    assert "errors: 0, replies: 10000" in cli("--pipe", stdin=requests)
    assert cli("dbsize").strip() == "10000"


def test_it_scans(cli):
    for i in range(30):
        cli("set", f"key:{i}", "x")
    cli("set", "other", "x")
    assert len(cli("--scan", "--pattern", "key:*").split()) == 30


def test_inline_commands_are_taken(server):
    done = subprocess.run(
        ["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{server.port}; printf 'PING\\r\\nset k \"a b\"\\r\\nGET k\\r\\nQUIT\\r\\n' >&3; cat <&3"],
        capture_output=True, timeout=30, check=True,
    )
    assert done.stdout == b"+PONG\r\n+OK\r\n$3\r\na b\r\n+OK\r\n"


def test_redis_benchmark_runs(server):
    command = ["redis-benchmark", "-p", str(server.port), "-t", "ping,set,get,incr,mset", "-q"]
    options = ["-n", "2000", "-c", "20", "-P", "4", "-r", "100", "--precision", "3"]
    done = subprocess.run(command + options, capture_output=True, text=True, timeout=120, check=True)
    figures = re.findall(r"^(\S+).*: ([\d.]+) requests per second", done.stdout.replace("\r", "\n"), re.M)
    assert {name for name, _ in figures} >= {"PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "MSET"}
    assert "ERR" not in done.stdout + done.stderr
