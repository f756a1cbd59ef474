"""`ngx.shared`, compared with nginx-lua's, and as other protocols see it."""

import pathlib
import socket

from openresty import library
from support import Server

SNIPPETS = pathlib.Path(__file__).parent / "snippets"

# Expired entries disappear at once; less than a millisecond is not for ever; an entry that is too
# large evicts nothing. Flags are not negative, and a time may be text.
DIFFERENT = {"exptime str", "flags neg", "getflagsneg", "stale", "flush_expired", "set 0.0004", "too big"}


def test_every_method_gives_what_it_gives_in_nginx(tmp_path):
    theirs, ours = library.Both(tmp_path).run((SNIPPETS / "shared.lua").read_text())
    assert library.differences(theirs, ours, DIFFERENT) == {}


def test_values_are_records_of_every_protocol(tmp_path):
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "keep.lua").write_text(
        "-- dialect: ngx\n-- route: GET /keep\n"
        "local d = ngx.shared.d\n"
        "d:set('n', 5) d:set('b', true) d:set('s', 'text', 0, 7)\n"
        "ngx.say(d:incr('n', 1))\n"
    )
    (tmp_path / "files" / "read.lua").write_text(
        "-- dialect: ngx\n-- route: GET /read\n"
        "local d = ngx.shared.d\n"
        "ngx.say(type(d:get('n')), ' ', d:get('n'), ' ', type(d:get('r')), ' ', tostring(d:get('b')))\n"
    )
    (tmp_path / "tokaido.toml").write_text('[databases.d]\nengine = "cache"\nbytes = "1 MiB"\n')
    options = ["--config", str(tmp_path / "tokaido.toml")]
    with Server(tmp_path / "data", tmp_path / "log", tmp_path / "files", options=options) as server:
        assert server.http("GET", "/keep")[2] == b"6\n"
        client = server.redis()
        client.execute_command("SELECT", "d")
        assert [client.get(key) for key in ("n", "b", "s")] == [b"6", b"true", b"text"]
        assert client.incr("n") == 7
        client.set("r", "12")
        assert server.http("GET", "/read")[2] == b"number 7 string true\n"


def test_a_value_that_memcached_drops_is_no_number(tmp_path):
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "keep.lua").write_text(
        "-- dialect: ngx\n-- route: GET /keep\nngx.shared.memcached:set('n', 5)\n"
    )
    (tmp_path / "files" / "read.lua").write_text(
        "-- dialect: ngx\n-- route: GET /read\n"
        "local d = ngx.shared.memcached\n"
        "ngx.say('[', d:get('n'), '] ', select(2, d:incr('n', 1)))\n"
    )
    with Server(tmp_path / "data", tmp_path / "log", tmp_path / "files") as server:
        assert server.http("GET", "/keep")[0] == 200
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
            client.sendall(b"md n x\r\n")
            assert client.recv(100) == b"HD\r\n"
        assert server.http("GET", "/read")[2] == b"[] not a number\n"


def test_counts_are_kept_and_pairs_shows_every_dictionary(tmp_path):
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "counts.lua").write_text(
        "-- dialect: ngx\n-- route: GET /counts\n"
        "local names = {} for name in pairs(ngx.shared) do names[#names + 1] = name end\n"
        "table.sort(names) ngx.say(table.concat(names, ' '))\n"
        "local d = ngx.shared.d\n"
        "for i = 1, 100 do d:set(i, i, 0.001) end ngx.sleep(0.01) ngx.update_time()\n"
        # The server removes some of them itself.
        "ngx.say(d:flush_expired(5) <= 5, ' ', d:flush_expired(7.5) <= 7, ' ', d:flush_expired() > 0)\n"
        "for i = 1, 9 do d:set(i, i) end\n"
        "ngx.say(#d:get_keys(2.7), ' ', #d:get_keys(3))\n"
    )
    (tmp_path / "files" / "forged.lua").write_text(
        "-- dialect: ngx\n-- route: GET /forged\n"
        "local buffer = require 'string.buffer'\n"
        "local forged = '\\4' .. ('\\16'):rep(8)\n"
        "for _, text in ipairs { forged, buffer.encode({ ngx.null }), buffer.encode({ a = { 1 } }) } do\n"
        "  local ok, value = pcall(buffer.decode, text)\n"
        "  ngx.say(ok, ' ', type(value))\n"
        "  local again = buffer.new():put(text)\n"
        "  ngx.say((pcall(again.decode, again)))\n"
        "end\n"
    )
    (tmp_path / "tokaido.toml").write_text(
        '[databases.d]\nengine = "cache"\nbytes = "1 MiB"\n[databases.e]\nengine = "cache"\nbytes = "1 MiB"\n'
    )
    options = ["--config", str(tmp_path / "tokaido.toml")]
    with Server(tmp_path / "data", tmp_path / "log", tmp_path / "files", options=options) as server:
        status, _, body = server.http("GET", "/counts")
        assert (status, body.decode().split("\n")) == (200, ["d e memcached", "true true true", "2 3", ""]), server.log()
        status, _, body = server.http("GET", "/forged")
        answer = ["false string", "false", "true table", "true", "true table", "true", ""]
        assert (status, body.decode().split("\n")) == (200, answer), server.log()
