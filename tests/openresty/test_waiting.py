"""Handlers that wait, and what goes on around them."""

import http.client
import threading

import pytest
from support import Server, wait_until

SLOW = """-- dialect: ngx
-- route: GET /slow
begun_here = (begun_here or 0) + 1
ngx.sleep(tonumber(ngx.var.arg_s))
ngx.say("slow, ", begun_here)
"""

QUICK = """-- dialect: ngx
-- route: GET /quick
ngx.say("quick ", begun_here)
"""


@pytest.fixture
def one_worker(tmp_path):
    handlers = tmp_path / "handlers"
    handlers.mkdir()
    (handlers / "slow.lua").write_text(SLOW)
    (handlers / "quick.lua").write_text(QUICK)
    options = ["--workers", "1"]
    with Server(tmp_path / "data", tmp_path / "log", procedures=handlers, options=options) as server:
        yield server, handlers


def quick(server):
    return server.http("GET", "/quick")[2]


class Slow(threading.Thread):
    """A request that waits."""

    def __init__(self, server, seconds):
        super().__init__()
        self.server, self.seconds, self.answer = server, seconds, None
        self.start()

    def run(self):
        self.answer = self.server.http("GET", f"/slow?s={self.seconds}")


def test_a_worker_answers_others_while_a_handler_waits(one_worker):
    server, _ = one_worker
    waiting = [Slow(server, 1.5) for _ in range(20)]
    wait_until(lambda: quick(server) == b"quick 20\n", "their beginning")
    assert all(slow.answer is None for slow in waiting)
    for slow in waiting:
        slow.join()
        status, _, body = slow.answer
        assert (status, body) == (200, b"slow, 20\n")


def test_a_reload_lets_a_handler_end_in_the_program_that_it_began_in(one_worker):
    server, handlers = one_worker
    slow = Slow(server, 1.5)
    wait_until(lambda: quick(server) == b"quick 1\n", "its beginning")
    (handlers / "quick.lua").write_text(QUICK.replace('"quick ", begun_here', '"new ", begun_here'))
    (handlers / "slow.lua").unlink()
    assert server.http("POST", "/v1/reload")[0] == 200
    assert quick(server) == b"new nil\n"
    assert slow.answer is None
    slow.join()
    assert slow.answer[::2] == (200, b"slow, 1\n")
    assert server.http("GET", "/slow?s=0")[0] == 404


def test_a_client_that_goes_leaves_nothing_behind(one_worker):
    server, _ = one_worker
    for _ in range(3):
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        connection.request("GET", "/slow?s=0.3")
        wait_until(lambda: quick(server) != b"quick nil\n", "its beginning")
        connection.close()
    assert server.http("GET", "/slow?s=0.5")[0] == 200
    assert quick(server) == b"quick 4\n"


def test_a_server_that_stops_lets_a_handler_end(one_worker):
    server, _ = one_worker
    slow = Slow(server, 0.5)
    wait_until(lambda: quick(server) == b"quick 1\n", "its beginning")
    assert server.stop() == 0
    slow.join()
    assert slow.answer[0] == 200
