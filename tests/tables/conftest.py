"""A server whose database `people` is a table, and a Tokyo Tyrant client for it."""

import socket
import struct

import pytest

CONFIGURATION = """
[databases.people]
engine = "table"

[tyrant]
database = "{database}"
"""


class Refused(Exception):
    """The reply had the code 1."""


class Client:
    """The few commands of the binary protocol that the tests need."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.file = self.socket.makefile("rb")

    def close(self):
        self.file.close()
        self.socket.close()

    def number(self):
        return struct.unpack(">I", self.file.read(4))[0]

    def call(self, command, request):
        self.socket.sendall(b"\xc8" + bytes([command]) + request)
        return self.file.read(1) == b"\0"

    def misc(self, name, *arguments):
        """Calls a misc function, and returns its list."""
        arguments = [text.encode() if isinstance(text, str) else text for text in arguments]
        request = struct.pack(">III", len(name), 0, len(arguments)) + name.encode()
        request += b"".join(struct.pack(">I", len(text)) + text for text in arguments)
        is_done = self.call(0x90, request)
        items = [self.file.read(self.number()) for _ in range(self.number())]
        if not is_done:
            raise Refused(self.misc("error")[0].decode())
        return items

    def put(self, key, **columns):
        pairs = [text for pair in columns.items() for text in pair]
        return self.misc("put", key, *pairs)

    def search(self, *parts, name="search"):
        """Searches; each part is a tuple of words, or one word."""
        parts = ["\0".join(part) if isinstance(part, tuple) else part for part in parts]
        return [item.decode() for item in self.misc(name, *parts)]


@pytest.fixture
def table(own_server, tmp_path):
    """Starts servers whose Tokyo Tyrant clients use a database, each with a maker of clients."""
    clients = []

    def start(database="people"):
        configuration = tmp_path / "tokaido.toml"
        configuration.write_text(CONFIGURATION.format(database=database))
        server = own_server(options=["--config", str(configuration), "--workers", "2"]).start()
        assert server.redis().ping()

        def connect():
            clients.append(Client(server.port))
            return clients[-1]

        server.tyrant = connect
        return server

    yield start
    for client in clients:
        client.close()
