"""`ngx.socket` and `ngx.semaphore` beside nginx-lua's, and what only a server with many requests shows."""

import http.client
import pathlib
import shutil
import socket
import threading

import pytest
from openresty import library
from openresty.peer import Peer
from support import Server, wait_until

SNIPPETS = pathlib.Path(__file__).parent / "snippets"

# Where packages install pure Lua modules.
LUA_PATHS = [pathlib.Path("/usr/share/lua/5.1"), pathlib.Path("/usr/local/share/lua/5.1")]

# nginx resolves no names unless a resolver is configured.
DIFFERENT = {"host number"}


def closed_port():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


def test_sockets_do_what_they_do_in_nginx(tmp_path):
    closed = closed_port()
    with Peer(tmp_path) as peer:
        prelude = f"local PEER, CLOSED, PATH = {peer.port}, {closed}, {library.quoted(str(peer.path))}\n"
        allowed = f'[ngx]\nsocket_allow = ["127.0.0.1:*", "unix:{peer.path}", "unix:/none/such.sock"]\n'
        theirs, ours = library.Both(tmp_path).run((SNIPPETS / "sockets.lua").read_text(), prelude, allowed)
    assert library.differences(theirs, ours, DIFFERENT) == {}
    assert len(theirs) > 250


# The port of DNS is used only if it is given.
DIFFERENT_DATAGRAMS = {"no port"}


def send_back(listening):
    """Sends each datagram back as often as its first byte says, until it receives `end`."""
    while True:
        text, sender = listening.recvfrom(70000)
        if text == b"end":
            return
        for _ in range(int(text[:1]) if text[:1].isdigit() else 0):
            listening.sendto(text[1:], sender)


def test_datagrams_go_as_in_nginx(tmp_path):
    udp = lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with udp() as listening, udp() as closed:
        for bound in (listening, closed):
            bound.bind(("127.0.0.1", 0))
        peer, nobody = listening.getsockname(), closed.getsockname()
        closed.close()
        thread = threading.Thread(target=send_back, args=(listening,))
        thread.start()
        prelude = f"local PEER, CLOSED = {peer[1]}, {nobody[1]}\n"
        allowed = '[ngx]\nsocket_allow = ["127.0.0.1:*"]\n'
        text = (SNIPPETS / "datagrams.lua").read_text()
        try:
            theirs, ours = library.Both(tmp_path).run(text, prelude, allowed)
        finally:
            with udp() as last:
                last.sendto(b"end", peer)
            thread.join()
    assert library.differences(theirs, ours, DIFFERENT_DATAGRAMS) == {}


def test_semaphores_do_what_they_do_in_nginx(tmp_path):
    theirs, ours = library.Both(tmp_path).run((SNIPPETS / "semaphores.lua").read_text())
    assert library.differences(theirs, ours) == {}


class Handlers:
    """A server of one worker with these handlers; each has a route with its name."""

    def __init__(self, directory, handlers, *options):
        files = directory / "handlers"
        files.mkdir()
        for name, (code, *lines) in handlers.items():
            head = "".join(f"-- {line}\n" for line in ["dialect: ngx", f"route: GET /{name}", *lines])
            (files / f"{name}.lua").write_text(f"{head}{code}\n")
        options = ["--workers", "1", *options]
        self.server = Server(directory / "data", directory / "log", procedures=files, options=options)

    def __enter__(self):
        self.server.__enter__()
        return self

    def __exit__(self, *error):
        self.server.__exit__(*error)

    def get(self, target):
        status, _, body = self.server.http("GET", f"/{target}")
        return status, body.decode()

    def text(self, target):
        status, body = self.get(target)
        assert status == 200, self.server.log()[-2000:]
        return body


CONNECT = """
local sock = ngx.socket.tcp()
local port = tonumber(ngx.var.arg_port)
local ok, why
if port then ok, why = sock:connect(ngx.unescape_uri(ngx.var.arg_host), port) else
  ok, why = sock:connect(ngx.unescape_uri(ngx.var.arg_host))
end
ngx.say(ok, " ", why)
"""


def test_a_handler_connects_only_to_what_is_listed(tmp_path):
    with Peer(tmp_path) as peer:
        options = ["--ngx-socket-allow", f"LocalHost:{peer.port}", "--ngx-socket-allow", f"unix:{peer.path}"]
        with Handlers(tmp_path, {"connect": (CONNECT,)}, *options) as handlers:
            connect = lambda host, port: handlers.text(f"connect?host={host}&port={port}")
            refused = lambda peer: f"nil {peer} is not allowed: the option ngx.socket_allow does not list it\n"
            assert connect("localhost", peer.port) == "1 nil\n"
            assert handlers.text(f"connect?host=unix:{peer.path}") == "1 nil\n"
            wait_until(lambda: peer.accepted == 2, "the connections")
            for host in ["127.0.0.1", "127.1", "0", "localhost.", "example.invalid"]:
                assert connect(host, peer.port) == refused(f"{host}:{peer.port}")
            assert connect("::1", peer.port) == refused(f"[::1]:{peer.port}")
            assert connect("localhost", handlers.server.port) == refused(f"localhost:{handlers.server.port}")
            other = f"unix:{peer.path.parent}/../{peer.path.parent.name}/{peer.path.name}"
            assert handlers.text(f"connect?host={other}") == refused(other)
            assert peer.accepted == 2


def test_without_a_list_nothing_is_reached(tmp_path):
    with Peer() as peer, Handlers(tmp_path, {"connect": (CONNECT,)}) as handlers:
        assert "the option ngx.socket_allow" in handlers.text(f"connect?host=127.0.0.1&port={peer.port}")
        assert peer.accepted == 0


def test_a_name_without_an_address_is_an_error(tmp_path):
    with Handlers(tmp_path, {"connect": (CONNECT,)}, "--ngx-socket-allow", "*:*") as handlers:
        assert "none.invalid could not be resolved" in handlers.text("connect?host=none.invalid&port=80")


# Sends what it is told to, and returns what it receives.
ASK = """
local sock = ngx.socket.tcp()
assert(sock:connect("127.0.0.1", tonumber(ngx.var.arg_port)))
sock:send(ngx.unescape_uri(ngx.var.arg_say) .. "\\n")
begun = (begun or 0) + 1
local heard, why = sock:receive()
begun = begun - 1
if ngx.var.arg_fail then error("broken") end
if ngx.var.arg_loop then while true do end end
ngx.say(heard, " ", why)
"""
BEGUN = "ngx.say(begun)"
GATE = "{%22gate%22:true}"
ANY = ["--ngx-socket-allow", "127.0.0.1:*"]


def test_a_thousand_requests_wait_while_others_are_answered(tmp_path):
    count = 1000
    with Peer() as peer, Handlers(tmp_path, {"ask": (ASK,), "begun": (BEGUN,)}, *ANY) as handlers:
        clients = []
        for number in range(count):
            client = http.client.HTTPConnection("127.0.0.1", handlers.server.port, timeout=120)
            client.request("GET", f"/ask?port={peer.port}&say=[{GATE},%22{number}%5cn%22]")
            clients.append(client)
        wait_until(lambda: handlers.text("begun") == f"{count}\n", "their beginning")
        wait_until(lambda: peer.open == count, "their connections")
        peer.open_gate()
        for number, client in enumerate(clients):
            response = client.getresponse()
            assert (response.status, response.read()) == (200, f"{number} nil\n".encode())
            client.close()
        assert handlers.text("begun") == "0\n"
        wait_until(lambda: peer.open == 0, "the end of their connections")


def test_sockets_end_with_their_request(tmp_path):
    options = [*ANY, "--script-ms", "200"]
    with Peer() as peer, Handlers(tmp_path, {"ask": (ASK,), "begun": (BEGUN,)}, *options) as handlers:
        line = f"ask?port={peer.port}&say=[%22x%5cn%22]"
        for ending, status in [("", 200), ("&fail=1", 500), ("&loop=1", 503)]:
            assert handlers.get(line + ending)[0] == status
            wait_until(lambda: peer.open == 0, "the end of the connection")


WRITES = """
local ok, why = pcall(ngx.socket.tcp)
ngx.say(ok, " ", why)
"""
READS = """
local tokaido = require "tokaido"
local sock = ngx.socket.tcp()
ngx.say(pcall(tokaido.read, function() return sock:connect("127.0.0.1", 1) end))
"""


def test_a_transaction_does_not_wait_for_a_socket(tmp_path):
    files = {"writes": (WRITES, "writes: true"), "reads": (READS,)}
    with Handlers(tmp_path, files, *ANY) as handlers:
        assert "is not for a handler that writes" in handlers.text("writes")
        assert "is not for a function of tokaido.read" in handlers.text("reads")


# A socket that is kept in a global after its request.
STRAY = """
if not stray then
  stray = ngx.socket.tcp()
  assert(stray:connect("127.0.0.1", tonumber(ngx.var.arg_port)))
  return ngx.say("made")
end
ngx.say(pcall(stray.send, stray, "x"))
"""
MANY = """
local socks = {}
for i = 1, 5 do
  socks[i] = ngx.socket.tcp()
  local ok, why = socks[i]:connect("127.0.0.1", tonumber(ngx.var.arg_port))
  if not ok then return ngx.say(i, " ", why) end
end
"""
MUCH = """
local sock = ngx.socket.tcp()
assert(sock:connect("127.0.0.1", tonumber(ngx.var.arg_port)))
sock:send('[{"echo": 100000}]\\n' .. ("x"):rep(100000))
local all, why, part = sock:receive("*a")
ngx.say(all, " ", why, " ", #part)
"""


def test_limits_hold(tmp_path):
    files = {"stray": (STRAY,), "many": (MANY,), "much": (MUCH,)}
    options = [*ANY, "--handler-sockets-max", "3", "--socket-bytes-max", "65536"]
    with Peer() as peer, Handlers(tmp_path, files, *options) as handlers:
        port = f"?port={peer.port}"
        assert handlers.text("stray" + port) == "made\n"
        assert "bad request" in handlers.text("stray" + port)
        assert handlers.text("many" + port) == "4 a request has at most 3 sockets\n"
        assert handlers.text("much" + port).startswith("nil more than 65536 bytes, limits.socket_bytes_max ")


BOTH = """
local function fill()
  local sock = ngx.socket.tcp()
  assert(sock:connect("127.0.0.1", tonumber(ngx.var.arg_port)))
  sock:settimeout(1000)
  sock:send('["' .. ("x"):rep(60000) .. '", 20]\\n')
  local _, why = sock:receive(100000)
  return why
end
local one, other = ngx.thread.spawn(fill), ngx.thread.spawn(fill)
ngx.say(select(2, ngx.thread.wait(one)), ", ", select(2, ngx.thread.wait(other)))
"""


def test_the_sockets_of_a_worker_hold_only_so_much_together(tmp_path):
    options = [*ANY, "--worker-socket-bytes-max", "65536"]
    with Peer() as peer, Handlers(tmp_path, {"both": (BOTH,)}, *options) as handlers:
        # What the first request held is free for the second.
        for _ in range(2):
            said = handlers.text(f"both?port={peer.port}")
            assert "more than 65536 bytes for all handlers of a worker, limits.worker_socket_bytes_max" in said


def test_a_worker_has_only_so_many_sockets(tmp_path):
    options = [*ANY, "--worker-sockets-max", "2"]
    with Peer() as peer, Handlers(tmp_path, {"many": (MANY,)}, *options) as handlers:
        for _ in range(2):
            assert handlers.text(f"many?port={peer.port}") == "3 a worker has at most 2 sockets open\n"


EVICT = """
local function connected(name)
  local sock = ngx.socket.tcp()
  assert(sock:connect("127.0.0.1", tonumber(ngx.var["arg_" .. name])))
  return sock
end
local one, two = connected("port"), connected("port")
assert(one:setkeepalive(0) and two:setkeepalive(0))
connected("other")
ngx.say(connected("port"):getreusedtimes())
"""


def test_what_is_kept_makes_room(tmp_path):
    options = [*ANY, "--worker-sockets-max", "2"]
    with Peer() as peer, Peer() as other, Handlers(tmp_path, {"evict": (EVICT,)}, *options) as handlers:
        for _ in range(2):
            assert handlers.text(f"evict?port={peer.port}&other={other.port}") == "1\n"


WAIT = """
sem = sem or require("ngx.semaphore").new()
waiting = (waiting or 0) + 1
local ok, why = sem:wait(tonumber(ngx.var.arg_s))
waiting = waiting - 1
ngx.say(ok, " ", why)
"""
POST = """sem:post(tonumber(ngx.var.arg_n)) ngx.say(sem:count())"""
COUNT = """ngx.say(waiting, " ", sem and sem:count())"""


def test_requests_wait_for_each_other(tmp_path):
    files = {"wait": (WAIT,), "post": (POST,), "count": (COUNT,)}
    with Handlers(tmp_path, files) as handlers:
        answers = []
        threads = [
            threading.Thread(target=lambda: answers.append(handlers.text("wait?s=30"))) for _ in range(20)
        ]
        for thread in threads:
            thread.start()
        wait_until(lambda: handlers.text("count") == "20 -20\n", "the waiting")
        assert handlers.text("wait?s=0.01") == "false timeout\n"
        assert handlers.text("post?n=25") == "5\n"
        for thread in threads:
            thread.join()
        assert answers == ["true nil\n"] * 20
        assert handlers.text("count") == "0 5\n"


REDIS = """
local redis = require "resty.redis"
local db = redis:new()
db:set_timeouts(1000, 5000, 5000)
assert(db:connect("127.0.0.1", tonumber(ngx.var.arg_port)))
local again = db:get_reused_times()
assert(db:set("greeting", "hello"))
ngx.say(db:get("greeting"), " ", db:get("nothing") == ngx.null)
db:init_pipeline()
db:incr("count") db:lpush("list", "a", "b") db:lrange("list", 0, -1) db:nonsense()
local results = db:commit_pipeline()
ngx.say(results[1], " ", results[2], " ", table.concat(results[3], ","), " ", results[4][1], " ", results[4][2])
local channel = redis:new()
assert(channel:connect("127.0.0.1", tonumber(ngx.var.arg_port)))
assert(channel:subscribe("news"))
db:publish("news", "rain")
local message = channel:read_reply()
ngx.say(table.concat(message, " "))
channel:close()
assert(db:set_keepalive(10000, 10))
ngx.say(again)
"""


def test_a_client_of_redis_talks_to_the_server_itself(tmp_path):
    found = [path / "resty" / "redis.lua" for path in LUA_PATHS if (path / "resty" / "redis.lua").exists()]
    if not found:
        pytest.skip("there is no lua-resty-redis: install it with luarocks")
    (tmp_path / "handlers").mkdir()
    with Handlers(tmp_path / "handlers", {"redis": (REDIS,)}, *ANY) as handlers:
        module = handlers.server.procedures / "resty" / "redis.lua"
        module.parent.mkdir()
        shutil.copy(found[0], module)
        module.write_text("-- dialect: ngx\n" + module.read_text())
        assert handlers.server.http("POST", "/v1/reload")[0] == 200
        for again in (0, 1):
            lines = handlers.text(f"redis?port={handlers.server.port}").splitlines()
            assert lines[0] == "hello true"
            assert lines[2] == "message news rain"
            assert lines[3] == str(again)


OUTER = """
local port = tonumber(ngx.var.arg_port)
local function ask(say)
  local sock = ngx.socket.tcp()
  assert(sock:connect("127.0.0.1", port))
  sock:send(say .. "\\n")
  local heard = sock:receive()
  sock:close()
  return heard
end
local lights = {}
for i = 1, 300 do lights[i] = ngx.thread.spawn(ask, ('["%d\\\\n"]'):format(i)) end
local inner = ngx.location.capture("/inner?port=" .. port).body
local sum = 0
for i = 1, 300 do sum = sum + select(2, ngx.thread.wait(lights[i])) end
local slow = ngx.thread.spawn(ask, '[{"gate": true}, "slow\\\\n"]')
local quick = ngx.thread.spawn(ask, '["quick\\\\n"]')
local which = select(2, ngx.thread.wait(slow, quick))
ngx.thread.kill(slow)
ngx.say(inner, " ", sum, " ", which)
"""
INNER = """
local sock = ngx.socket.tcp()
assert(sock:connect("127.0.0.1", tonumber(ngx.var.arg_port)))
sock:send('[0.05, "inner\\\\n"]\\n')
local light = ngx.thread.spawn(function() return sock:receive() end)
ngx.print(select(2, ngx.thread.wait(light)))
"""


def test_light_threads_and_requests_within_requests_have_sockets(tmp_path):
    with Peer() as peer, Handlers(tmp_path, {"outer": (OUTER,), "inner": (INNER,)}, *ANY) as handlers:
        for _ in range(3):
            assert handlers.text(f"outer?port={peer.port}") == f"inner {300 * 301 // 2} quick\n"
        peer.open_gate()
        wait_until(lambda: peer.open == 0, "the end of the connections")


def test_a_reload_lets_a_handler_end_with_its_socket(tmp_path):
    with Peer() as peer, Handlers(tmp_path, {"ask": (ASK,), "begun": (BEGUN,)}, *ANY) as handlers:
        client = http.client.HTTPConnection("127.0.0.1", handlers.server.port, timeout=60)
        client.request("GET", f"/ask?port={peer.port}&say=[{GATE},%22late%5cn%22]")
        wait_until(lambda: handlers.text("begun") == "1\n", "its beginning")
        (handlers.server.procedures / "ask.lua").unlink()
        assert handlers.server.http("POST", "/v1/reload")[0] == 200
        assert handlers.text("begun") == "nil\n"
        peer.open_gate()
        assert client.getresponse().read() == b"late nil\n"
