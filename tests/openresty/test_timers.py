"""Timers across a stop, a reload and the limits, and what they find of the server."""

import pytest
from support import Server, wait_until

WORKER = """-- dialect: ngx
-- phase: init_worker
turn = 0
ngx.timer.every(0.005, function(premature)
  if premature then ngx.log(ngx.WARN, "repeated, premature") else turn = turn + 1 end
end)
"""

MAKES = """-- dialect: ngx
-- route: GET /makes/:seconds
ngx.timer.at(tonumber(ngx.var.seconds), function(premature, what)
  ngx.log(ngx.WARN, what, " ", tostring(premature), " ", tostring(ngx.worker.exiting()), " VERSION")
  ngx.log(ngx.WARN, "later: ", tostring(select(2, ngx.timer.at(1, function() end))))
end, "ran")
ngx.say("made")
"""

TURN = """-- dialect: ngx
-- route: GET /turn
ngx.say(turn)
"""

FAILS = """-- dialect: ngx
-- route: GET /fails
ngx.timer.at(0, function() local function deep() error("broken deep down") end deep() end)
ngx.say("made")
"""

DATA = """-- dialect: ngx
-- route: GET /data
local tokaido = require "tokaido"
local seen
ngx.timer.at(0, function() seen = tokaido.read(function(tx) return tx.main:get("k") end) end)
repeat ngx.sleep(0.002) until seen
ngx.say(seen)
"""

WRITES = """-- dialect: ngx
-- route: GET /writes
-- writes: true
ngx.timer.at(0, function() end)
"""

MANY = """-- dialect: ngx
-- route: GET /many
local made = 0
while ngx.timer.at(60, function() end) do made = made + 1 end
ngx.say(made, " ", (select(2, ngx.timer.at(60, function() end))))
"""

CROWD = """-- dialect: ngx
-- route: GET /crowd/:wanted
local begun, is_over = 0, false
for i = 1, 4 do
  ngx.timer.at(0, function() begun = begun + 1 repeat ngx.sleep(0.002) until is_over end)
end
repeat ngx.sleep(0.002) until begun >= tonumber(ngx.var.wanted)
ngx.say(begun, " ", ngx.timer.running_count())
is_over = true
"""

GREEDY = """-- dialect: ngx
-- route: GET /greedy
ngx.timer.at(0, function() local t = {} while true do t[#t + 1] = string.rep("x", 2 ^ 16) .. #t end end)
ngx.timer.at(0.02, function() ngx.log(ngx.WARN, "outlived its virtual machine") end)
ngx.say("made")
"""

ENDLESS = """-- dialect: ngx
-- route: GET /endless
ngx.timer.at(0, function() while true do end end)
ngx.say("made")
"""

REACH = """-- dialect: ngx
-- route: GET /reach
local done, said = require("ngx.semaphore").new(), nil
ngx.timer.at(0, function(_, port)
  local sock = ngx.socket.tcp()
  assert(sock:connect("127.0.0.1", port))
  sock:send("PING\\r\\n")
  said = sock:receive()
  done:post(1)
end, tonumber(ngx.var.arg_port))
ngx.say(done:wait(5), " ", said)
"""

FILES = {
    "worker": WORKER,
    "makes": MAKES,
    "turn": TURN,
    "fails": FAILS,
    "data": DATA,
    "writes": WRITES,
    "many": MANY,
    "crowd": CROWD,
    "greedy": GREEDY,
    "reach": REACH,
    "endless": ENDLESS,
}


@pytest.fixture
def serve(tmp_path):
    handlers = tmp_path / "handlers"
    handlers.mkdir()
    for name, text in FILES.items():
        (handlers / f"{name}.lua").write_text(text)
    servers = []

    def start(*options):
        server = Server(
            tmp_path / "data",
            tmp_path / "log",
            procedures=handlers,
            options=["--strict", "--workers", "1", *options],
        )
        servers.append(server)
        return server.start(), handlers

    yield start
    for server in servers:
        server.kill()


def turn(server):
    return int(server.http("GET", "/turn")[2])


def test_a_stop_runs_what_is_pending_as_premature(serve):
    server, _ = serve()
    assert server.http("GET", "/makes/3600")[0] == 200
    assert server.stop() == 0
    server.wait_for_log("ran true true VERSION", "later: process exiting", "repeated, premature")


def test_a_reload_runs_what_is_pending_as_premature_in_the_program_that_made_it(serve):
    server, handlers = serve()
    assert server.http("GET", "/makes/3600")[0] == 200
    (handlers / "makes.lua").write_text(MAKES.replace("VERSION", "NEW"))
    assert server.http("POST", "/v1/reload")[0] == 200
    server.wait_for_log("ran true true VERSION", "repeated, premature")
    assert server.http("GET", "/makes/0")[0] == 200
    server.wait_for_log("ran false false NEW")


def test_timers_of_the_worker_run_also_after_a_reload_that_no_request_follows(serve):
    server, handlers = serve()
    wait_until(lambda: turn(server) > 2, "the timer of the first program")
    (handlers / "worker.lua").write_text(WORKER.replace("turn = turn + 1", 'ngx.log(ngx.WARN, "turn anew")'))
    assert server.http("POST", "/v1/reload")[0] == 200
    server.wait_for_log("turn anew")


def test_a_timer_that_fails_is_in_the_log_with_its_traceback_and_counted(serve):
    server, _ = serve()
    assert server.http("GET", "/fails")[0] == 200
    server.wait_for_log("fails.lua:3: broken deep down", "in function 'deep'")
    metrics = server.http("GET", "/metrics")[2].decode()
    assert 'tokaido_procedure_errors_total{procedure="fails"} 1' in metrics


def test_a_timer_reads_the_data(serve):
    server, _ = serve()
    server.redis().set("k", "from a timer")
    assert server.http("GET", "/data")[2] == b"from a timer\n"


def test_a_handler_that_writes_makes_no_timers(serve):
    server, _ = serve()
    assert server.http("GET", "/writes")[0] == 500
    server.wait_for_log("ngx.timer.at is not for a handler that writes")


def test_timers_are_as_many_as_the_limits_say(serve):
    server, _ = serve("--ngx-timers-pending-max", "5", "--ngx-timers-running-max", "2")
    assert server.http("GET", "/crowd/2")[2] == b"2 2\n"
    server.wait_for_log("too many run already; see limits.ngx_timers_running_max")
    # The worker's own timer is pending, too.
    assert server.http("GET", "/many")[2] == b"4 too many pending timers\n"


def test_limits_of_time_and_memory_hold(serve):
    server, _ = serve("--script-ms", "1000", "--script-memory-bytes", str(16 << 20))
    assert server.http("GET", "/endless")[0] == 200
    server.wait_for_log("endless was stopped after 1000 ms, its time limit")
    wait_until(lambda: turn(server) > 2, "the timer of the worker")
    assert server.http("GET", "/greedy")[0] == 200
    server.wait_for_log("timers are lost with a VM that met its memory limit")
    # The new virtual machine has its own timers.
    wait_until(lambda: turn(server) > 2, "the timer of the worker")
    assert server.http("GET", "/crowd/4")[2] == b"4 4\n"
    assert "outlived its virtual machine" not in server.log()


def test_a_timer_has_sockets_and_wakes_who_waits_for_a_semaphore(serve):
    server, _ = serve("--ngx-socket-allow", "127.0.0.1:*")
    assert server.http("GET", f"/reach?port={server.port}")[2] == b"true +PONG\n"
