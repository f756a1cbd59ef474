"""redis-cli and redis-benchmark, as the distribution packages them."""

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


def fill(cli):
    """A few records of each kind."""
    cli(stdin=b"set text " + b"x" * 1000 + b"\nset n 1\nrpush list a b c\nsadd set a b\nhset hash f v g w\nzadd zset 1 m 2 n\nxadd stream * f v\n")


@pytest.mark.parametrize("option", ["--bigkeys", "--memkeys"])
def test_it_finds_the_largest(cli, option):
    fill(cli)
    text = cli(option)
    assert "Sampled 7 keys in the keyspace!" in text
    for kind, key in [("string", "text"), ("list", "list"), ("set", "set"), ("hash", "hash"), ("zset", "zset"), ("stream", "stream")]:
        assert re.search(rf'Biggest {kind:>6} found .?"{key}"', text), text


def refused(server, *arguments):
    """What redis-cli prints when a command is refused."""
    command = ["redis-cli", "-p", str(server.port), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode != 0, done.stdout
    return done.stdout + done.stderr


def test_what_needs_a_policy_or_a_replica_is_refused(server, cli, tmp_path):
    fill(cli)
    assert "LFU maxmemory policy is not selected" in refused(server, "--hotkeys")
    for option in ("--rdb", "--functions-rdb"):
        assert "there are no replicas" in refused(server, option, tmp_path / "file")


def test_it_measures_latency(cli):
    least, most, average, count = cli("--latency", "--raw").split()
    assert 0 <= int(least) <= float(average) <= int(most) and int(count) > 0


def test_it_shows_statistics(server, cli):
    fill(cli)
    command = ["redis-cli", "-p", str(server.port), "-i", "0.01", "--stat"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        lines = [process.stdout.readline() for _ in range(4)]
        process.terminate()
    assert "keys" in lines[1] and lines[2].split()[0] == "7", lines


def test_redis_benchmark_runs_all_that_it_has(server):
    command = ["redis-benchmark", "-p", str(server.port), "-q", "-n", "200", "-c", "5"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    figures = re.findall(r"^([^:\n]+?)(?: \(.*\))?: [\d.]+ requests per second", done.stdout.replace("\r", "\n"), re.M)
    assert {"SADD", "HSET", "SPOP", "ZADD", "ZPOPMIN", "LPUSH", "RPOP", "LRANGE_600", "MSET"} <= set(figures), done.stdout
    assert "ERR" not in done.stdout + done.stderr


# The fields that Prometheus' exporter for Redis turns into metrics, if they apply here.
EXPORTED = """
aof_enabled aof_rewrite_in_progress blocked_clients connected_clients connected_slaves loading master_repl_offset maxmemory
process_id pubsub_channels pubsub_patterns rdb_bgsave_in_progress rdb_changes_since_last_save total_commands_processed
total_connections_received uptime_in_seconds used_cpu_sys used_cpu_sys_children used_cpu_user used_cpu_user_children used_memory used_memory_rss
"""
NAMED = "role redis_version redis_mode os maxmemory_policy tcp_port run_id".split()


def test_an_exporter_finds_its_fields(server, cli):
    """The requests of redis_exporter: INFO ALL, CONFIG GET *, SLOWLOG and LATENCY."""
    fill(cli)
    fields = dict(line.split(":", 1) for line in cli("info", "all").splitlines() if ":" in line)
    for name in EXPORTED.split():
        assert float(fields[name]) >= 0, name
    assert all(fields[name] for name in NAMED)
    assert re.fullmatch(r"keys=7,expires=\d+,avg_ttl=\d+", fields["db0"])
    assert re.fullmatch(r"calls=\d+,usec=\d+,usec_per_call=[\d.]+,rejected_calls=\d+,failed_calls=\d+", fields["cmdstat_set"])
    settings = cli("config", "get", "*").splitlines()
    assert dict(zip(settings[::2], settings[1::2], strict=True))["maxmemory"] == "0"
    assert int(cli("slowlog", "len")) >= 0 and "ERR" not in cli("slowlog", "get", "1") + cli("latency", "latest")
