"""Exits that close the connection, after other requests on it."""

import socket

from support import Server

HELLO = """-- dialect: ngx
-- route: GET /hello
ngx.say("hello")
"""

GONE = """-- dialect: ngx
-- route: GET /gone
ngx.exit(444)
"""


def request(path):
    return f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode()


def test_answers_to_earlier_requests_are_sent(tmp_path):
    files = tmp_path / "handlers"
    files.mkdir()
    (files / "hello.lua").write_text(HELLO)
    (files / "gone.lua").write_text(GONE)
    with Server(tmp_path / "data", tmp_path / "log", procedures=files) as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
            client.sendall(request("/hello") * 20 + request("/gone") + request("/hello"))
            answers = b""
            while piece := client.recv(65536):
                answers += piece
    assert answers.count(b"HTTP/1.1 200 OK\r\n") == 20
    assert answers.count(b"\r\n\r\nhello\n") == 20 and answers.endswith(b"hello\n")
