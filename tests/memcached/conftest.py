"""A server whose port speaks memcached, and a raw connection to it."""

import socket

import pytest
from support import free_port

CONFIGURATION = """
[[listen]]
address = "127.0.0.1:{port}"

[[listen]]
address = "127.0.0.1:{memcached_port}"
protocols = ["memcached"]

[[listen]]
address = "unix:{path}"
protocols = ["memcached"]

[memcached]
database = "{database}"

[databases.durable]
engine = "tree"
"""


class Raw:
    """A connection that sends bytes unchanged."""

    def __init__(self, address):
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(30)
        self.socket.connect(address)

    def send(self, data):
        self.socket.sendall(data)

    def read_until(self, end):
        data = b""
        while not data.endswith(end):
            part = self.socket.recv(1 << 16)
            if not part:
                break
            data += part
        return data

    def ask(self, data, end=b"\r\n"):
        self.send(data)
        return self.read_until(end)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


@pytest.fixture
def make_memcached(own_server, tmp_path):
    """Makes servers that speak all protocols on `port`, and only memcached on `memcached_port` and `path`."""

    def make(database="memcached", options=()):
        server = own_server(directory=f"data-{database}")
        server.listen = []
        server.memcached_port = free_port()
        server.path = str(tmp_path / f"{database}.sock")
        configuration = tmp_path / f"{database}.toml"
        configuration.write_text(
            CONFIGURATION.format(
                port=server.port,
                memcached_port=server.memcached_port,
                path=server.path,
                database=database,
            )
        )
        server.options = ["--config", str(configuration), "--workers", "2", *options]
        server.start()
        # It listens before it has opened its files; only an answer shows that it is ready.
        with Raw(("127.0.0.1", server.memcached_port)) as raw:
            raw.ask(b"version\r\n")
        return server

    return make


@pytest.fixture
def memcached(make_memcached):
    return make_memcached()
