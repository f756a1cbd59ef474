"""Small handlers with the same answers as nginx."""

import shutil

import pytest
from support import Server

from .support import HERE, MODULES, Nginx, cases, comparable, exchange, write_files

FOUND = [case for name in ("cases", "cases_phases", "cases_waiting", "cases_streaming", "cases_timers") for case in cases(HERE / f"{name}.lua")]
REQUESTS = [(case, line) for case in FOUND for line in case.requests]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The ports of nginx and of Tokaido, with the same files."""
    has_nginx = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
    assert has_nginx and (MODULES / "ngx_http_lua_module.so").exists(), "install libnginx-mod-http-lua"
    directory = tmp_path_factory.mktemp("openresty")
    handlers = directory / "handlers"
    write_files(handlers, FOUND)
    options = ["--strict", "--workers", "1"]
    with (
        Nginx(directory / "nginx", handlers, FOUND) as nginx,
        Server(directory / "data", directory / "log", procedures=handlers, options=options) as tokaido,
    ):
        yield nginx.port, tokaido.port, tokaido


def name(request):
    case, line = request
    return f"{case.name}-{case.requests.index(line)}"


@pytest.mark.parametrize("request_", REQUESTS, ids=map(name, REQUESTS))
def test_a_handler_answers_as_in_nginx(both, request_):
    nginx, tokaido, server = both
    _, line = request_
    expected, answer = exchange(nginx, line), exchange(tokaido, line)
    assert comparable(answer) == comparable(expected), server.log()[-2000:]


def test_there_are_enough_of_them():
    assert len([case for case in FOUND if case.requests]) >= 80
