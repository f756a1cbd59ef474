"""Answers that leave while their handler goes on: what is early is early in nginx, too."""

import http.client
import shutil
import socket
import struct
import time

import pytest
from support import Server, wait_until

from .support import HERE, Nginx, cases, exchange, write_files

FOUND = cases(HERE / "cases_streaming.lua")
GATED = [case for case in FOUND if case.name.startswith("gated_")]


def begin(port, target):
    """Sends a request, and returns the response once its head has arrived."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", target)
    return connection, connection.getresponse()


def rest(response):
    """The rest of the body, and whether it is complete."""
    try:
        return response.read(), True
    except http.client.IncompleteRead as error:
        return error.partial, False


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    assert shutil.which("nginx") or shutil.which("/usr/sbin/nginx"), "install libnginx-mod-http-lua"
    directory = tmp_path_factory.mktemp("streaming")
    handlers = directory / "handlers"
    write_files(handlers, FOUND)
    options = ["--strict", "--workers", "1"]
    with (
        Nginx(directory / "nginx", handlers, FOUND) as nginx,
        Server(directory / "data", directory / "log", procedures=handlers, options=options) as tokaido,
    ):
        yield nginx.port, tokaido.port


@pytest.mark.parametrize("case", GATED, ids=lambda case: case.name)
def test_the_beginning_is_there_before_the_handler_goes_on(servers, case):
    answers = []
    for port in servers:
        connection, response = begin(port, case.route)
        length = 6000 if case.name == "gated_large" else 6
        first = response.read(length)
        if case.name == "gated_eof":
            # The end has arrived, too.
            first += response.read()
        assert exchange(port, "GET /open_gate")[2] == b"open\n"
        answers.append((response.status, dict(response.getheaders()).get("Content-Length"), first, rest(response)))
        connection.close()
    if case.name == "gated_eof":
        # nginx sends no length, while Tokaido knows it by then.
        answers = [(status, None, first, left) for status, _, first, left in answers]
        for port in servers:
            wait_until(lambda: exchange(port, "GET /recorded")[2] == b"went on\n", "the end of the handler")  # noqa: B023
    assert answers[0] == answers[1]


def test_nothing_is_early_for_http_1_0(servers):
    for port in servers:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
            client.sendall(b"GET /flush_many HTTP/1.0\r\n\r\n")
            answer = b"".join(iter(lambda: client.recv(65536), b""))
        head, body = answer.split(b"\r\n\r\n", 1)
        assert b"content-length: 360000" in head.lower() and b"chunked" not in head.lower()
        assert len(body) == 360000


# In seconds: enough for a busy machine to do a test's work between two waits.
WAIT_MAX = 3
# Longer than that.
LONGER = 4

HANDLERS = {
    "quick": "ngx.say('quick')",
    "left": "ngx.say(tostring(left))",
    "events": """left = nil
ngx.header.content_type = "text/event-stream"
local count = 0
while true do
  local ok, why = ngx.say("data: ", count, "\\n")
  if ok then ok, why = ngx.flush(true) end
  if not ok then left = why break end
  if ngx.worker.exiting() then break end
  count = count + 1
  ngx.sleep(0.01)
end""",
    "download": """local piece = ("x"):rep(1048576)
produced = 0
for i = 1, tonumber(ngx.var.arg_pieces) do
  ngx.print(piece)
  local ok, why = ngx.flush(true)
  if not ok then left = why break end
  produced = i
end""",
    "produced": "ngx.say(produced)",
    "flood": """local piece = ("x"):rep(1048576)
for i = 1, 200 do ngx.print(piece) ngx.flush() ngx.sleep(0) end""",
    "behind": "begun = (begun or 0) + 1 ngx.say('answer') ngx.eof() repeat ngx.sleep(0.005) until may_end ended = (ended or 0) + 1",
    "end_all": "may_end = true ngx.say(ended)",
    "begun": "ngx.say(begun)",
    "writes": "ngx.say('a') ngx.say(ngx.flush(true)) ngx.say(ngx.flush())",
    "reads": """local tokaido = require "tokaido"
ngx.say("a") tokaido.read(function() ngx.say(ngx.flush(true)) end)""",
    "flushes": """ngx.say("first")
local light = ngx.thread.spawn(function() return ngx.flush(true) end)
ngx.flush()
ngx.say(ngx.thread.wait(light))""",
    "flush_behind": """ngx.say("answer")
local light = ngx.thread.spawn(function() ngx.flush(true) end)
ngx.eof()
ngx.thread.wait(light)
has_flushed = true""",
    "has_flushed": "ngx.say(tostring(has_flushed))",
    "whole": "ngx.print(('x'):rep(20000000)) ngx.flush() ngx.sleep(0) ngx.eof() ngx.sleep(30)",
    "one_piece": "ngx.print(('x'):rep(20000000)) ngx.flush(true) ngx.print('end')",
    "silent": "ngx.say('first') ngx.flush(true) ngx.sleep(30) ngx.say('never')",
    "steady": f"for i = 1, 20 do ngx.say(i) ngx.flush(true) ngx.sleep({LONGER / 20}) end",
    "bodiless": """ngx.status = tonumber(ngx.var.arg_status) ngx.say("first")
repeat ngx.print(("x"):rep(1048576)) ngx.sleep(0.001) dropped = (dropped or 0) + 1 until dropped >= 100
repeat ngx.sleep(0.005) until may_end""",
    "dropped": "ngx.say(dropped)",
    "end_bodiless": "may_end = true dropped = nil",
    "broken_head": "ngx.status = 200 ngx.header['content-length'] = '7' ngx.say('abc') ngx.flush(true) ngx.sleep(0.01)",
}


def write_handlers(directory):
    directory.mkdir()
    for name, code in HANDLERS.items():
        mode = "-- writes: true\n" if name == "writes" else ""
        (directory / f"{name}.lua").write_text(f"-- dialect: ngx\n-- route: GET /{name}\n{mode}{code}\n")


@pytest.fixture
def server(tmp_path):
    handlers = tmp_path / "handlers"
    write_handlers(handlers)
    options = ["--strict", "--workers", "1", "--http-wait-ms", str(WAIT_MAX * 1000)]
    with Server(tmp_path / "data", tmp_path / "log", procedures=handlers, options=options) as server:
        yield server


def get(server, path):
    return server.http("GET", path)[2]


def test_events_go_to_many_while_others_are_answered(server):
    streams = [begin(server.port, "/events") for _ in range(20)]
    for _ in range(3):
        for _, response in streams:
            assert response.fp.readline() and response.fp.readline()
    assert get(server, "/quick") == b"quick\n"
    for connection, _ in streams:
        connection.close()


def test_events_outlive_the_time_of_a_wait_for_as_long_as_they_are_taken(server):
    _, response = begin(server.port, "/steady")
    assert rest(response) == (b"".join(b"%d\n" % i for i in range(1, 21)), True)


def test_a_stream_that_sends_nothing_for_too_long_breaks_off(server):
    _, response = begin(server.port, "/silent")
    assert rest(response) == (b"first\n", False)
    server.wait_for_log("limits.http_wait_ms")


def test_a_handler_is_told_that_its_client_has_gone(server):
    connection, response = begin(server.port, "/events")
    assert response.read(5) == b"data:"
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    response.close()
    connection.close()
    wait_until(lambda: get(server, "/left") != b"nil\n", "the end of the events")
    assert get(server, "/left") in (b"nginx output filter error\n", b"client aborted\n")


def test_a_handler_that_waits_for_a_slow_client_makes_no_more_than_that_takes(server):
    connection, response = begin(server.port, "/download?pieces=100")
    # Socket buffers hold far less than all of it.
    first = response.read(1)
    assert int(get(server, "/produced")) < 50
    body = first + response.read()
    assert body == b"x" * (100 << 20)
    connection.close()
    assert int(get(server, "/produced")) == 100


def test_more_than_may_be_buffered_breaks_the_answer_off(server):
    connection, response = begin(server.port, "/flood")
    server.wait_for_log("would wait to be sent")
    _, is_whole = rest(response)
    assert not is_whole
    connection.close()
    assert get(server, "/quick") == b"quick\n"


def test_a_connection_has_one_handler_behind_its_answers(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.request("GET", "/behind")
    response = connection.getresponse()
    assert response.read() == b"answer\n"
    connection.request("GET", "/end_all")
    # This waits for the previous handler, so another connection has to end that one.
    assert get(server, "/end_all") == b"nil\n"
    assert connection.getresponse().read() == b"1\n"
    connection.close()


def test_a_handler_goes_on_behind_its_answer_when_the_client_has_gone(server):
    for _ in range(3):
        connection, response = begin(server.port, "/behind")
        assert response.read() == b"answer\n"
        connection.close()
    wait_until(lambda: get(server, "/begun") == b"3\n", "their beginning")
    get(server, "/end_all")
    wait_until(lambda: get(server, "/end_all") == b"3\n", "their end")


def test_where_nothing_may_wait_a_flush_waits_for_nothing(server):
    assert get(server, "/writes") == b"a\n1\n1\n"
    assert get(server, "/reads") == b"a\n1\n"


def test_a_body_shorter_than_promised_is_broken_off(server):
    connection, response = begin(server.port, "/broken_head")
    assert response.getheader("Content-Length") == "7"
    assert rest(response) == (b"abc\n", False)
    connection.close()


def test_a_connection_goes_on_behind_a_stream(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    for _ in range(3):
        connection.request("GET", "/flushes")
        assert connection.getresponse().read() == b"first\ntrue1\n"
    connection.close()


def test_a_reload_gives_a_stream_time_to_end_and_tells_it(server):
    connection, response = begin(server.port, "/events")
    assert response.read(5) == b"data:"
    path = server.procedures / "quick.lua"
    path.write_text(path.read_text().replace("quick'", "new'"))
    assert server.http("POST", "/v1/reload")[0] == 200
    assert get(server, "/quick") == b"new\n"
    assert rest(response)[1]
    connection.close()


def test_a_stop_tells_a_stream(server):
    connection, response = begin(server.port, "/events")
    assert response.read(5) == b"data:"
    assert server.stop() == 0
    assert rest(response)[1]
    connection.close()


def test_light_threads_that_flush_do_not_keep_each_other(server):
    assert get(server, "/flushes") == b"first\ntrue1\n"


def test_a_flush_ends_with_an_answer_that_is_complete(server):
    assert get(server, "/flush_behind") == b"answer\n"
    wait_until(lambda: get(server, "/has_flushed") == b"true\n", "the end of the handler")


def test_a_whole_answer_is_taken_for_as_long_as_its_client_takes_it(server):
    connection, response = begin(server.port, "/whole")
    first = response.read(1_000_000)
    time.sleep(LONGER)
    left, is_whole = rest(response)
    connection.close()
    assert (len(first) + len(left), is_whole) == (20_000_000, True)


def test_a_client_that_takes_some_of_a_piece_has_its_time_anew(server):
    connection, response = begin(server.port, "/one_piece")
    length = 0
    for _ in range(19):
        length += len(response.read(1_000_000))
        time.sleep(LONGER / 19)
    left, is_whole = rest(response)
    connection.close()
    assert (length + len(left), left[-3:], is_whole) == (20_000_003, b"end", True)


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304)])
def test_an_answer_without_a_body_is_there_before_its_handler_is_done(server, method, status):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.request(method, f"/bodiless?status={status}")
    response = connection.getresponse()
    # The length of the body was not known.
    assert (response.status, response.getheader("Content-Length"), response.read()) == (status, None, b"")
    # More than may be buffered: it is dropped.
    wait_until(lambda: get(server, "/dropped") == b"100\n", "the end of the writing")
    get(server, "/end_bodiless")
    connection.request("GET", "/quick")
    assert connection.getresponse().read() == b"quick\n"
    connection.close()
