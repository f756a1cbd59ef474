"""Handlers of mod_lua, served by Debian's Apache and by this server: status, headers and bodies are compared.

Not compared: Date, Server, and headers of the connection (Connection, Keep-Alive, Content-Length, Transfer-Encoding).
Accepted differences:

- the body of an error, which is the server's own, and its type;
- the attributes of cookies, which Apache writes with more spaces;
- what DIFFERENCES lists, with the reasons.
"""

import http.client
import os
import pathlib
import re
import tempfile

import pytest
from support import Server

from .handlers import ALL, text_of
from .peer import Apache

NOT_COMPARED = {"date", "server", "connection", "keep-alive", "content-length", "transfer-encoding"}

# Both get the same host, since handlers show it.
HOST = "test.example:8080"

# By handler: the difference, and what this server answers instead.
DIFFERENCES = {
    "line_break_in_header": ("a header with a line break is refused, Apache sends a space", 500),
    "returns_501": ("Apache tells methods in Allow, which are not the handler's", 501),
    "puts_zero_byte": ("Apache writes as much as C takes for a string", 200),
    "args_with_zero_byte": ("Apache gives as much of a value as C takes for a string", 200),
    "ivm_boolean": ("Apache gives false for a boolean", 200),
    "returns_200": ("Apache sends a page about an error that there was not", 200),
    "returns_declined": ("Apache sends the file's text", 404),
    "form_with_broken_escape": ("Apache reads on without looking at the digits", 200),
}


@pytest.fixture(scope="module")
def directory():
    """A directory that Apache's user can read, too."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        yield pathlib.Path(directory)


@pytest.fixture(scope="module")
def servers(directory):
    """Both servers, with the same files."""
    root, own = directory / "htdocs", directory / "procedures"
    run = directory / "run"
    for folder in (root, own, run):
        folder.mkdir()
    (root / "static.txt").write_text("what stands in a file\n")
    for name, (body, _) in ALL.items():
        (root / f"{name}.lua").write_text(text_of(body))
        (own / f"{name}.lua").write_text("-- dialect: mod_lua\n" + text_of(body))
    peer = Apache(run, root)
    options = [f"--mod-lua-document-root={root}", "--strict"]
    with Server(directory / "data", directory / "log", procedures=own, options=options) as server:
        yield peer, server
        assert server.is_alive(), server.log()
    peer.stop()


def answer_of(port, path, request):
    method, target, headers, body = request
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    body = body.encode("latin-1") if body is not None else None
    connection.request(method, path + target, body=body, headers={"Host": HOST, **headers})
    response = connection.getresponse()
    content = response.read()
    connection.close()
    told = sorted(
        (name.lower(), plain_cookie(value) if name.lower() == "set-cookie" else value)
        for name, value in response.getheaders()
        if name.lower() not in NOT_COMPARED
    )
    return response.status, told, content


def plain_cookie(value):
    return "; ".join(piece for piece in re.split(r"[; ]*;[; ]*|; +", value.strip()) if piece.strip())


def without_error_page(answer):
    """An answer without the parts that are specific to the server, if it reports an error or a redirect."""
    status, headers, body = answer
    if body.startswith((b"<!DOCTYPE HTML", b'{"error":')) or b"<h3>Error!</h3>" in body or 300 <= status < 400:
        headers = [(name, value) for name, value in headers if name != "content-type"]
        body = b""
    return status, headers, body


@pytest.mark.parametrize("name", ALL)
def test_both_answer_the_same(servers, name):
    peer, server = servers
    for request in ALL[name][1]:
        path = f"/{name}.lua"
        expected = without_error_page(answer_of(peer.port, path, request))
        given = without_error_page(answer_of(server.port, path, request))
        if name not in DIFFERENCES:
            assert given == expected, request
            continue
        assert given != expected, f"{name} no longer differs"
        status = DIFFERENCES[name][1]
        assert status is None or given[0] == status
