"""Ruby procedures, over the protocols that call procedures."""

import json
import pathlib
import shutil
import socket
import struct
import subprocess
import threading

import pytest
import redis
from support import tokaido

HERE = pathlib.Path(__file__).parent
LIMITS = ["--script-ms", "200", "--script-memory-bytes", "33554432"]


@pytest.fixture
def procedures(tmp_path):
    """A directory with one Ruby file and one Lua file."""
    made = tmp_path / "procedures"
    made.mkdir()
    shutil.copy(HERE / "hits.rb", made)
    (made / "tea.lua").write_text(
        'local tokaido = require "tokaido" return { cup = tokaido.read(function() return "green" end) }'
    )
    return made


@pytest.fixture
def server(own_server, procedures):
    return own_server(procedures=procedures, options=LIMITS).start()


def call(server, procedure, *arguments):
    status, _, body = server.http("POST", f"/v1/call/{procedure}", json.dumps(arguments).encode())
    return status, json.loads(body)


def ext(server, name, key, value):
    """Tokyo Tyrant's ext, in its binary protocol."""
    lengths = struct.pack(">IIII", len(name), 0, len(key), len(value))
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(b"\xc8\x68" + lengths + name + key + value)
        reply = connection.makefile("rb")
        assert reply.read(1) == b"\0"
        return reply.read(struct.unpack(">I", reply.read(4))[0])


def test_every_protocol_calls_them_beside_those_of_lua(server):
    client = server.redis()
    assert client.execute_command("hits.count", "tea") == 1
    assert client.execute_command("FCALL", "hits.count", 1, "tea") == 2
    assert call(server, "hits.count", "cake") == (200, {"result": 1})
    told = tokaido("call", "--connect", server.address, "hits.count", "tea")
    assert told.stdout == "3\n", told.stderr
    status, _, body = server.http("POST", "/rpc/play_script", b"name=hits.shout&_page=tea")
    assert (status, body) == (200, b"_page\tTEA\n")
    assert ext(server, b"hits.join", b"sencha", b"green") == b"sencha:green"
    assert client.execute_command("tea.cup") == b"green"


def test_values_survive_the_way_there_and_back(server):
    values = [None, True, 1, -(2**63), 2**63 - 1, 1.5, -0.1, "日本", [[]], {"a": {"b": [1, None]}}, {}]
    assert call(server, "hits.echo", *values) == (200, {"result": values})
    client = server.redis()
    every_byte = bytes(range(256))
    assert client.execute_command("hits.echo", every_byte, b"") == [every_byte, b""]
    assert client.execute_command("hits.nothing") is None


def test_errors_have_their_codes_and_leave_nothing(server):
    client = server.redis()
    assert call(server, "hits.spend", "anna", 5) == (402, {"error": {"code": "POOR", "message": "anna has not so much"}})
    with pytest.raises(redis.ResponseError, match="has not so much"):
        client.execute_command("hits.spend", "anna", 5)
    with pytest.raises(redis.ResponseError, match=r"hits\.rb:\d+: undefined method 'upcase'"):
        client.execute_command("hits.fail")
    with pytest.raises(redis.ResponseError, match="hits.writes is a read procedure"):
        client.execute_command("hits.writes")
    assert client.exists("failed") == 0
    server.wait_for_log("a procedure failed", "hits.fail", "hits.rb")


def test_what_runs_away_is_stopped_and_leaves_nothing(server):
    client = server.redis()
    for _ in range(3):
        with pytest.raises(redis.ResponseError, match="200 ms, its time limit"):
            client.execute_command("hits.spin")
        with pytest.raises(redis.ResponseError, match="33554432 bytes, its memory limit"):
            client.execute_command("hits.hoard")
        assert client.execute_command("hits.count", "after") > 0
    assert client.exists("spinning", "hoarding") == 0


def test_commands_of_redis_run_in_the_transaction(server):
    assert server.redis().execute_command("hits.hash", "h") == [b"a", b"1", b"b", b"2"]
    assert server.redis().hgetall("h") == {b"a": b"1", b"b": b"2"}


def test_routes_are_answered(server):
    status, headers, body = server.http("POST", "/ruby/tea", b'{"by": 3}')
    assert (status, body) == (201, b"3")
    assert headers["content-type"] == "text/plain; charset=utf-8"
    status, headers, body = server.http("GET", "/ruby/tea?a=1&b=%20")
    assert (status, headers["x-page"], headers["content-type"]) == (200, "tea", "application/json")
    assert json.loads(body) == {"page": "tea", "query": {"a": "1", "b": " "}, "hits": 3}
    assert server.http("POST", "/ruby/tea", b"{")[0] == 400


def test_counts_are_exact_with_many_clients(server):
    def count():
        client = server.redis()
        for _ in range(200):
            client.execute_command("hits.count", "all")

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert call(server, "hits.top", 1) == (200, {"result": [["all", "1600"]]})


def test_reload_swaps_files_of_both_languages_and_a_broken_one_keeps_them(server, procedures):
    client = server.redis()
    (procedures / "hits.rb").write_text("class H < Tokaido::Procedures\n read def version(tx) = 2\nend")
    assert tokaido("reload", "--connect", server.address).returncode == 0
    assert client.execute_command("hits.version") == 2
    (procedures / "hits.rb").write_text("class H\n  def")
    told = tokaido("reload", "--connect", server.address)
    assert told.returncode == 1 and "hits.rb:2" in told.stderr, told.stderr
    assert client.execute_command("hits.version") == 2
    (procedures / "tea.rb").write_text("")
    told = tokaido("reload", "--connect", server.address)
    assert told.returncode == 1 and "has the same name as" in told.stderr, told.stderr


def test_a_file_that_does_not_load_is_told_and_the_others_serve(own_server, procedures):
    (procedures / "bad.rb").write_text("x = 1\nraise 'no'")
    server = own_server(procedures=procedures).start()
    server.wait_for_log("bad.rb:2")
    assert server.redis().execute_command("hits.count", "a") == 1
    with pytest.raises(redis.ResponseError, match="bad.rb, which did not load"):
        server.redis().execute_command("FCALL", "bad.x", 0)


def test_caches_are_databases(own_server, procedures, tmp_path):
    config = tmp_path / "tokaido.toml"
    config.write_text('[databases.sessions]\nengine = "cache"\nbytes = 16777216\n')
    server = own_server(procedures=procedures, options=["--config", str(config)]).start()
    assert server.redis().execute_command("hits.cached", "a", "1") == b"1"


def test_a_command_line_calls_them_without_a_server(procedures, tmp_path):
    told = tokaido("call", "--dir", tmp_path / "store", "--procedures", procedures, "hits.count", "a")
    assert told.stdout == "1\n", told.stderr


COLLECTIONS = """
class Kinds < Tokaido::Procedures
  write def fill(tx, n)
    main = tx[:main]
    n.to_i.times do |i|
      main.hash_at("h")["f#{i}"] = i
      main.list_at("l").push(i)
      main.set_at("s") << i
      main.sorted_set_at("z").add("m#{i}", i / 4.0)
    end
    tx.command(:hlen, "h")
  end

  read def all(tx)
    main = tx[:main]
    [main.hash_at("h").to_h, main.list_at("l").to_a, main.set_at("s").sort, main.sorted_set_at("z").to_h]
  end
end
"""


@pytest.mark.parametrize("count", [3, 700])
def test_collections_are_those_of_redis(own_server, tmp_path, count):
    made = tmp_path / "procedures"
    made.mkdir()
    (made / "kinds.rb").write_text(COLLECTIONS)
    server = own_server(procedures=made).start()
    client = server.redis(decode_responses=True)
    assert client.execute_command("kinds.fill", count) == count
    texts = [str(i) for i in range(count)]
    assert client.hgetall("h") == {f"f{i}": i for i in texts}
    assert client.lrange("l", 0, -1) == texts
    assert client.smembers("s") == set(texts)
    assert client.zrange("z", 0, -1, withscores=True) == [(f"m{i}", int(i) / 4) for i in texts]

    # And handles read what commands write.
    client.hset("h", "f0", "x")
    client.lpush("l", "y")
    client.sadd("s", "z")
    client.zadd("z", {"m0": 9e9})
    fields, items, members, scores = call(server, "kinds.all")[1]["result"]
    assert (fields["f0"], len(fields)) == ("x", count)
    assert items == ["y", *texts]
    assert members == sorted([*texts, "z"])
    assert (scores["m0"], scores["m2"], len(scores)) == (9e9, 0.5, count)


CHECK_STUBS = """
require "rbs"
require "tmpdir"
# What a block has for self is said in words that Debian's RBS knows or not, by its version; the rest is looked at by all of them.
SELF = / \\[self: instance\\]/
knows_self =
  begin
    RBS::Parser.parse_method_type("() { () [self: instance] -> void } -> void")
    true
  rescue RBS::ParsingError
    false
  end
unless knows_self
  copies = Dir.mktmpdir
  at_exit { FileUtils.remove_entry(copies) }
  ARGV.map! do |path|
    copy = File.join(copies, File.basename(path))
    File.write(copy, File.read(path).gsub(SELF, ""))
    copy
  end
end
loader = RBS::EnvironmentLoader.new
ARGV.each { |path| loader.add(path: Pathname(path)) }
environment = RBS::Environment.from_loader(loader).resolve_type_names
builder = RBS::DefinitionBuilder.new(env: environment)
own = environment.class_decls.keys.select { |name| name.to_s =~ /\\A::(Tokaido|Apache|Userdata)/ }
own.each do |name|
  builder.build_instance(name)
  builder.build_singleton(name)
end
puts own.size
"""


def test_the_stubs_for_editors_are_rbs():
    stubs = HERE.parents[1] / "crates" / "tokaido-ruby" / "sig"
    checked = subprocess.run(["ruby", "-e", CHECK_STUBS, *stubs.glob("*.rbs")], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    assert int(checked.stdout) > 25


FAILING = """
class Mixed < Tokaido::Procedures
  write def count(tx) = tx[:main].increment("n")
  write def fail(tx)
    tx[:main].increment("n")
    [nil.missing, raise("no"), refuse("no")].first
  end
  write def run_away(tx) = (tx[:main].increment("n"); loop { })
end
"""


def test_a_failing_procedure_among_many_good_ones(own_server, tmp_path):
    made = tmp_path / "procedures"
    made.mkdir()
    (made / "mixed.rb").write_text(FAILING)
    # Enough time for a call that is delayed on a busy machine.
    server = own_server(procedures=made, options=["--script-ms", "3000"]).start()
    client = server.redis()
    good = 100_000
    for begin in range(0, good, 1000):
        pipeline = client.pipeline(transaction=False)
        for n in range(begin, begin + 1000):
            pipeline.execute_command("mixed.count")
            if n % 500 == 7:
                pipeline.execute_command("mixed.fail")
            if n % 50_000 == 13:
                pipeline.execute_command("mixed.run_away")
        answers = pipeline.execute(raise_on_error=False)
        failed = [answer for answer in answers if isinstance(answer, redis.ResponseError)]
        assert len(failed) == sum(n % 500 == 7 or n % 50_000 == 13 for n in range(begin, begin + 1000))
        assert [answer for answer in answers if answer not in failed] == list(range(begin + 1, begin + 1001))
    assert client.get("n") == str(good).encode()
