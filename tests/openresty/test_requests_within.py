"""Subrequests of a handler that have no counterpart in nginx."""

import http.client

import pytest
from support import Server, wait_until

HANDLERS = {
    "named": ("GET /named/:part", "ngx.print(ngx.var.part, ' ', ngx.var.uri)"),
    "capture": ("GET /capture/*path", "ngx.print(ngx.location.capture('/named/' .. ngx.var.arg_part).body)"),
    "exec": ("GET /exec", "return ngx.exec('/named/' .. ngx.var.arg_part)"),
    # The sum counts: each of them is small enough alone.
    "large": ("GET /large", "ngx.print(('x'):rep(400000)) ngx.sleep(0.01) ngx.print(('x'):rep(1000))"),
    "many": (
        "GET /many",
        """local requests = {}
for i = 1, ngx.var.arg_count do requests[i] = { "/large" } end
local found = { ngx.location.capture_multi(requests) }
for _, inner in ipairs(found) do ngx.print(inner.status, " ", #inner.body, ";") end""",
    ),
    "waiter": ("GET /waiter", "ngx.print(tostring(gate():wait(20)))"),
    "leaves": (
        None,
        """local shared = require "ngx.semaphore".new(0)
function gate() return shared end
ngx.thread.spawn(function() ngx.location.capture("/waiter") end)
ngx.sleep(0.01)
ngx.exit(ngx.OK)""",
    ),
    "leaver": ("GET /leaver", "-- rewrite: leaves\nngx.say('left') ngx.flush(true) repeat ngx.sleep(0.005) until stayed"),
    "stayer": ("GET /stayer", "stays = true ngx.print(tostring(gate():wait(50))) stayed = true"),
    "stays": ("GET /stays", "ngx.print(tostring(stays))"),
    "poster": ("GET /poster", "gate():post(1)"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    directory = tmp_path_factory.mktemp("within")
    handlers = directory / "handlers"
    handlers.mkdir()
    for name, (route, code) in HANDLERS.items():
        head = f"-- route: {route}\n" if route else ""
        (handlers / f"{name}.lua").write_text(f"-- dialect: ngx\n{head}{code}\n")
    options = ["--strict", "--workers", "1", "--http-response-bytes-max", "1000000"]
    with Server(directory / "data", directory / "log", procedures=handlers, options=options) as server:
        yield server


def get(server, target):
    return server.http("GET", target)[::2]


def test_an_encoded_slash_divides_no_part_of_a_route(server):
    assert get(server, "/named/a%2Fb") == (200, b"a/b /named/a/b")
    assert get(server, "/capture/x?part=a%252Fb") == (200, b"a%2Fb /named/a%2Fb")
    assert get(server, "/exec?part=c%20d") == (200, b"c d /named/c d")


def test_requests_side_by_side_share_the_limit_of_a_response(server):
    assert get(server, "/many?count=2") == (200, b"200 401000;" * 2)
    status, body = get(server, "/many?count=3")
    assert status == 200 and body.count(b"500 0;") >= 1 and b"200 401000;" in body


def test_what_waits_in_a_request_that_was_given_up_takes_nothing_from_others(server):
    leaver, stayer = (http.client.HTTPConnection("127.0.0.1", server.port, timeout=20) for _ in range(2))
    leaver.request("GET", "/leaver")
    answer = leaver.getresponse()
    assert answer.read(5) == b"left\n"
    stayer.request("GET", "/stayer")
    wait_until(lambda: get(server, "/stays")[1] == b"true", "the one that waits")
    assert get(server, "/poster")[0] == 200
    assert stayer.getresponse().read() == b"true"
    assert answer.read() == b""
    leaver.close()
    stayer.close()
