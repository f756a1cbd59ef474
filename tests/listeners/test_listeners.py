"""UNIX sockets, and addresses for one protocol, with common clients."""

import socket
import ssl
import stat
import subprocess

import pytest
import redis
from support import STOP_SECONDS_MAX, free_port, tokaido

CONFIGURATION = """
[[listen]]
address = "localhost:{port}"
protocols = ["redis"]

[[listen]]
address = "127.0.0.1:{http_port}"
protocols = ["http"]

[[listen]]
address = "unix:{path}"
mode = "660"
"""


@pytest.fixture
def listening(own_server, tmp_path):
    """A running server that speaks Redis on its port, HTTP on `http_port`, and both on `path`."""
    server = own_server()
    server.listen = []
    server.http_port = free_port()
    server.path = tmp_path / "t.sock"
    configuration = tmp_path / "tokaido.toml"
    configuration.write_text(
        CONFIGURATION.format(port=server.port, http_port=server.http_port, path=server.path)
    )
    server.options = ["--config", str(configuration)]
    return server.start()


def over_socket(server, **options):
    options = {"socket_timeout": 30, "retry": None, "retry_on_error": []} | options
    return redis.Redis(unix_socket_path=str(server.path), **options)


def curl(server, url, *arguments):
    command = ["curl", "--silent", "--show-error", *arguments, url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_redis_py_and_curl_share_a_unix_socket(listening):
    client = over_socket(listening)
    assert client.set("k", "v")
    with client.pipeline(transaction=True) as pipeline:
        assert pipeline.incr("n").incr("n").execute() == [1, 2]
    assert over_socket(listening, protocol=3).get("n") == b"2"
    body = curl(listening, "http://localhost/v1/db/main/k", "--unix-socket", str(listening.path))
    assert body == "v"
    (shown,) = [c for c in client.client_list() if c["id"] == str(client.client_id())]
    assert shown["addr"] == shown["laddr"] == f"{listening.path}:0"
    assert client.config_get("unixsocket") == {"unixsocket": str(listening.path)}


def test_the_program_reaches_a_unix_socket(listening):
    connect = f"--connect=unix:{listening.path}"
    assert tokaido("put", connect, "main", "k", "v").returncode == 0
    assert tokaido("get", connect, "main", "k").stdout == "v\n"


def test_a_pinned_port_refuses_the_other_protocol(listening):
    assert listening.redis().set("k", "v")
    status, _, body = listening.http("GET", "/v1/db/main/k")
    assert status == 421 and b"this address speaks redis, not http" in body
    assert curl(listening, f"http://127.0.0.1:{listening.http_port}/v1/db/main/k") == "v"
    wrong = redis.Redis(port=listening.http_port, socket_timeout=30, retry=None, retry_on_error=[])
    with pytest.raises(redis.ResponseError, match="this address speaks http, not redis"):
        wrong.get("k")


def test_a_tls_client_is_named_in_the_log(listening):
    context = ssl._create_unverified_context()
    with socket.create_connection(("127.0.0.1", listening.port), timeout=30) as connection:
        with pytest.raises(OSError):
            context.wrap_socket(connection)
    listening.wait_for_log("began with TLS")


def test_the_socket_goes_with_its_server_and_comes_back_after_a_kill(listening, own_server):
    mode = stat.S_IMODE(listening.path.stat().st_mode)
    assert mode == 0o660
    second = own_server("second")
    second.listen = [f"unix:{listening.path}"]
    assert second.spawn().process.wait(STOP_SECONDS_MAX) == 1
    assert f"unix:{listening.path} is in use" in second.log()
    assert over_socket(listening).ping(), "the first one is not disturbed"
    listening.kill()
    assert listening.path.exists(), "nobody was there to remove it"
    listening.start()
    assert over_socket(listening).ping()
    assert listening.stop() == 0
    assert not listening.path.exists()


def test_a_unix_socket_asks_for_the_password_if_there_is_one(own_server, tmp_path):
    server = own_server(options=["--password", "sesame"])
    server.path = tmp_path / "t.sock"
    server.listen.append(f"unix:{server.path}")
    server.start()
    with pytest.raises(redis.AuthenticationError):
        over_socket(server).get("k")
    assert over_socket(server, password="sesame").ping()
