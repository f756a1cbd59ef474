"""A server with an address for Tokyo Tyrant clients, and a third-party client."""

import socket
import struct
import sys
import types

import pytest
from support import free_port, wait_until



class NoBase:
    """As a base class, it adds no base."""

    def __mro_entries__(self, bases):
        return ()


# The client is older than Python 3: it inherits from removed classes, and confuses bytes and text.
sys.modules.setdefault("UserDict", types.SimpleNamespace(DictMixin=NoBase()))
import pytyrant  # noqa: E402

pytyrant.xrange = range
pytyrant._t0 = lambda code: [struct.pack(">BB", pytyrant.MAGIC, code)]


def receive(connection, length):
    data = b""
    while len(data) < length:
        part = connection.recv(length - len(data))
        assert part, "the server has closed the connection"
        data += part
    return data


pytyrant.sockrecv = receive


class Tyrant(pytyrant.Tyrant):
    """The client. Its `vanish` sends what is now `optimize`, and its `copy` what is now `vanish`."""

    def copy(self, path):
        pytyrant.socksend(self.sock, [struct.pack(">BBI", pytyrant.MAGIC, 0x73, len(path)), path])
        pytyrant.socksuccess(self.sock)

    def restore(self, path, since_us, options):
        head = struct.pack(">BBIQI", pytyrant.MAGIC, 0x74, len(path), since_us, options)
        pytyrant.socksend(self.sock, [head, path])
        pytyrant.socksuccess(self.sock)

    def vanish_all(self):
        self.misc(b"vanish", 0, [])


CONFIGURATION = """
[[listen]]
address = "127.0.0.1:{port}"

[[listen]]
address = "127.0.0.1:{tyrant_port}"
protocols = ["tyrant"]
"""

PROCEDURES = """
local tokaido = require("tokaido")

return {
  copy = tokaido.write(function(tx, from, to)
    local value = tx.main:get(from)
    tx.main:put(to, value)
    return #value
  end),
}
"""


def is_open(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def tyrant(own_server, tmp_path):
    """Makes clients of a server that has a port for them only, besides the one for all protocols."""
    files = tmp_path / "procedures"
    files.mkdir()
    (files / "record.lua").write_text(PROCEDURES)
    server = own_server(procedures=files)
    server.listen, server.tyrant_port = [], free_port()
    path = tmp_path / "tokaido.toml"
    path.write_text(CONFIGURATION.format(port=server.port, tyrant_port=server.tyrant_port))
    server.options += ["--config", str(path)]
    server.start()
    wait_until(lambda: is_open(server.tyrant_port), "the port")
    opened = []

    def connect(port=None):
        client = Tyrant.open("127.0.0.1", port or server.tyrant_port)
        client.sock.settimeout(30)
        opened.append(client)
        return client

    connect.server = server
    yield connect
    for client in opened:
        client.close()
