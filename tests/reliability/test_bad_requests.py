"""Requests that are invalid, cut off, too large, or arrive byte by byte: each gets an error or is
dropped, and the server survives."""

import os
import random
import socket

import pytest


@pytest.fixture
def talk(server):
    """Sends bytes, closes its side, and returns everything received until the server closes."""

    def talk(request):
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
            try:
                connection.sendall(request)
                connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            reply = b""
            try:
                while more := connection.recv(65536):
                    reply += more
            except ConnectionResetError:
                pass
            return reply

    return talk


@pytest.mark.parametrize(
    "request_",
    [
        b"*3\r\n$x\r\n",
        b"*1000000000\r\n",
        b"*1\r\n$99999999999999999999\r\n",
        b"*1\r\n:4\r\nPING\r\n",
        b"*1\r\n$4\r\nPINGxx",
        b"*2\r\n$3\r\nGET\r\n$9223372036854775807\r\n",
    ],
)
def test_a_broken_frame_gets_a_protocol_error(talk, request_):
    reply = talk(request_)
    assert reply.startswith(b"-ERR Protocol error"), reply
    assert reply.count(b"\r\n") == 1, "after it, nothing can be understood"


def test_what_stood_before_the_broken_frame_is_answered(talk):
    assert talk(b"PING\r\nSET k v\r\n*1\r\n$x\r\n").startswith(b"+PONG\r\n+OK\r\n-ERR Protocol error")


@pytest.mark.parametrize("length", [1, 5, 13, 21, 26])
def test_a_request_that_is_cut_off_does_nothing(talk, server, length):
    whole = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"
    assert talk(whole[:length]) == b""
    assert server.redis().exists("k") == 0


def test_a_request_may_come_byte_by_byte(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n":
            connection.sendall(bytes([byte]))
        assert connection.recv(100) == b"+OK\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        for byte in b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n":
            connection.sendall(bytes([byte]))
        assert connection.recv(100).startswith(b"HTTP/1.1 200")


def test_garbage_is_survived(talk):
    random_ = random.Random(1978)
    for _ in range(200):
        talk(random_.randbytes(random_.randint(1, 300)))
    talk(os.urandom(1 << 20))


def test_a_key_over_the_limit_is_refused_and_the_connection_goes_on(talk):
    key = b"k" * 4097
    request = b"*3\r\n$3\r\nSET\r\n$4097\r\n" + key + b"\r\n$1\r\nv\r\nPING\r\n"
    refusal, pong = talk(request).split(b"\r\n")[:2]
    assert refusal.startswith(b"-ERR") and b"4096" in refusal
    assert pong == b"+PONG"


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /healthz HTTP/1.1\r\nbad header\r\n\r\n",
        b"PUT /v1/db/main/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"PUT /v1/db/main/k HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /" + b"x" * 60_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"a: b\r\n" * 100_000 + b"\r\n",
    ],
)
def test_broken_http_is_refused(talk, server, request_):
    reply = talk(request_)
    assert reply == b"" or reply.startswith(b"HTTP/1.1 4"), reply[:100]
    assert server.redis().exists("k") == 0


def test_another_version_of_http_is_answered_in_http(talk):
    assert talk(b"GET / HTTP/9.9\r\n\r\n").startswith(b"HTTP/1.1 505 ")


def test_what_is_neither_protocol_gets_an_error_that_a_person_can_read(talk):
    assert talk(b"GET / FTP/9.9\r\n\r\n").startswith(b"-ERR ")


def test_a_path_that_is_too_long_is_answered_by_http(talk):
    request = b"GET /" + b"x" * (1 << 20) + b" HTTP/1.1\r\n\r\n"
    assert talk(request).startswith(b"HTTP/1.1 431 ")
