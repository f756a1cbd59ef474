"""One client for each protocol, all with the same few methods, so that any can be tried with any other."""

import base64
import http.client
import socket
import struct
import time
import urllib.parse

import redis

PROCEDURES = """
local tokaido = require("tokaido")

return {
  set = tokaido.write(function(tx, key, value, ttl_ms)
    tx.main:put(key, value, { ttl_ms = tonumber(ttl_ms) })
  end),
  add = tokaido.write(function(tx, key, value) return tx.main:add(key, value) end),
  get = tokaido.read(function(tx, key) return tx.main:get(key) end),
  delete = tokaido.write(function(tx, key) return tx.main:delete(key) end),
  increment = tokaido.write(function(tx, key, by) return tx.main:increment(key, tonumber(by)) end),
}
"""


class Refused(Exception):
    """The server reported that the record is not a number in this protocol."""


class Connection:
    """A socket that reads a number of bytes, or a line."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.reader = self.socket.makefile("rb")

    def send(self, data):
        self.socket.sendall(data)

    def read(self, count):
        data = self.reader.read(count)
        assert len(data) == count, "the server has closed the connection"
        return data

    def line(self):
        return self.reader.readline().removesuffix(b"\r\n")

    def close(self):
        self.reader.close()
        self.socket.close()


class Redis:
    """RESP, through redis-py."""

    numbers = "decimal"
    key_bytes_max = 4096
    can_expire = True

    def __init__(self, ports):
        self.client = redis.Redis(port=ports["all"], socket_timeout=60)

    def set(self, key, value, seconds=None):
        assert self.client.set(key, value, ex=seconds)

    def add(self, key, value):
        return bool(self.client.set(key, value, nx=True))

    def get(self, key):
        return self.client.get(key)

    def delete(self, key):
        return self.client.delete(key) == 1

    def increment(self, key, by):
        try:
            return self.client.incrby(key, by)
        except redis.ResponseError as error:
            raise Refused(error) from error

    def close(self):
        self.client.close()


class Lua:
    """Procedures, called over the Redis protocol."""

    numbers = "decimal"
    key_bytes_max = 4096
    can_expire = True

    def __init__(self, ports):
        self.client = redis.Redis(port=ports["all"], socket_timeout=60)

    def call(self, name, *arguments):
        return self.client.fcall(f"records.{name}", 0, *arguments)

    def set(self, key, value, seconds=None):
        self.call("set", key, value, *([seconds * 1000] if seconds else []))

    def add(self, key, value):
        return bool(self.call("add", key, value))

    def get(self, key):
        return self.call("get", key)

    def delete(self, key):
        return bool(self.call("delete", key))

    def increment(self, key, by):
        try:
            return int(self.call("increment", key, by))
        except redis.ResponseError as error:
            raise Refused(error) from error

    def close(self):
        self.client.close()


class Http:
    """The records under /v1/db. There are no counters."""

    numbers = None
    key_bytes_max = 4096
    can_expire = True

    def __init__(self, ports):
        self.client = http.client.HTTPConnection("127.0.0.1", ports["all"], timeout=60)

    def ask(self, method, key, body=None, headers=None):
        path = "/v1/db/main/" + urllib.parse.quote(key, safe="")
        self.client.request(method, path, body, headers or {})
        response = self.client.getresponse()
        return response.status, response.read()

    def set(self, key, value, seconds=None):
        headers = {"tokaido-ttl-ms": str(seconds * 1000)} if seconds else {}
        status, body = self.ask("PUT", key, value, headers)
        assert status in (201, 204), body

    def add(self, key, value):
        status, body = self.ask("PUT", key, value, {"if-none-match": "*"})
        assert status in (201, 412), body
        return status == 201

    def get(self, key):
        status, body = self.ask("GET", key)
        assert status in (200, 404), body
        return body if status == 200 else None

    def delete(self, key):
        status, body = self.ask("DELETE", key)
        assert status in (204, 404), body
        return status == 204

    def close(self):
        self.client.close()


class MemcachedText:
    """Meta commands, with keys in base64 so that they may be any bytes."""

    numbers = "decimal"
    key_bytes_max = 186  # 248 in base64
    can_expire = True

    def __init__(self, ports):
        self.connection = Connection(ports["memcached"])

    def ask(self, command, key, flags, data=None):
        line = b" ".join([command, base64.b64encode(key), *flags]) + b"\r\n"
        self.connection.send(line if data is None else line + data + b"\r\n")
        status, *rest = self.connection.line().split(b" ")
        if status == b"VA":
            return status, self.connection.read(int(rest[0]) + 2)[:-2]
        return status, rest[0] if rest else None

    def store(self, key, value, flags):
        return self.ask(b"ms", key, [b"%d" % len(value), b"b", *flags], value)[0]

    def set(self, key, value, seconds=None):
        assert self.store(key, value, [b"T%d" % seconds] if seconds else []) == b"HD"

    def add(self, key, value):
        status = self.store(key, value, [b"ME"])
        assert status in (b"HD", b"NS")
        return status == b"HD"

    def get(self, key):
        status, value = self.ask(b"mg", key, [b"b", b"v"])
        assert status in (b"VA", b"EN"), status
        return value

    def flags(self, key):
        return int(self.ask(b"mg", key, [b"b", b"f"])[1].removeprefix(b"f"))

    def delete(self, key):
        status, _ = self.ask(b"md", key, [b"b"])
        assert status in (b"HD", b"NF")
        return status == b"HD"

    def increment(self, key, by):
        status, value = self.ask(b"ma", key, [b"b", b"v", b"N0", b"J%d" % by, b"D%d" % by])
        if status != b"VA":
            raise Refused(status)
        return int(value)

    def close(self):
        self.connection.close()


class MemcachedBinary:
    """Requests with a header of 24 bytes and a body, and answers of the same form."""

    numbers = "decimal"
    key_bytes_max = 250
    can_expire = True
    MISSING, EXISTS, NO_NUMBER = 1, 2, 6

    def __init__(self, ports):
        self.connection = Connection(ports["memcached"])

    def ask(self, opcode, key, extras=b"", value=b""):
        body = extras + key + value
        header = struct.pack(">BBHBBHIIQ", 0x80, opcode, len(key), len(extras), 0, 0, len(body), 0, 0)
        self.connection.send(header + body)
        _, _, keys, extra_bytes, _, status, length, _, _ = struct.unpack(
            ">BBHBBHIIQ", self.connection.read(24)
        )
        return status, self.connection.read(length)[keys + extra_bytes :]

    def set(self, key, value, seconds=None):
        assert self.ask(0x01, key, struct.pack(">II", 0, seconds or 0), value)[0] == 0

    def add(self, key, value):
        status, _ = self.ask(0x02, key, bytes(8), value)
        assert status in (0, self.EXISTS)
        return status == 0

    def get(self, key):
        status, value = self.ask(0x00, key)
        assert status in (0, self.MISSING), status
        return value if status == 0 else None

    def delete(self, key):
        status, _ = self.ask(0x04, key)
        assert status in (0, self.MISSING)
        return status == 0

    def increment(self, key, by):
        status, value = self.ask(0x05, key, struct.pack(">QQI", by, by, 0))
        if status != 0:
            raise Refused(status)
        return struct.unpack(">Q", value)[0]

    def close(self):
        self.connection.close()


class KyotoCalls:
    """Kyoto Tycoon's procedures over HTTP, with every column in base64."""

    numbers = "8 bytes"
    key_bytes_max = 4096
    can_expire = True
    NOT_POSSIBLE = 450

    def __init__(self, ports):
        self.client = http.client.HTTPConnection("127.0.0.1", ports["all"], timeout=60)

    def ask(self, name, **inputs):
        def encode(text):
            return base64.b64encode(text if isinstance(text, bytes) else str(text).encode())

        body = b"".join(encode(name) + b"\t" + encode(value) + b"\n" for name, value in inputs.items())
        headers = {"content-type": "text/tab-separated-values; colenc=B"}
        self.client.request("POST", f"/rpc/{name}", body, headers)
        response = self.client.getresponse()
        encoding = response.headers["content-type"].partition("colenc=")[2]
        decode = {"B": base64.b64decode, "U": urllib.parse.unquote_to_bytes, "": bytes}[encoding]
        lines = [line.split(b"\t") for line in response.read().split(b"\n") if line]
        outputs = {decode(name): decode(value) for name, value in lines}
        assert response.status in (200, self.NOT_POSSIBLE), outputs
        return response.status == 200, outputs

    def set(self, key, value, seconds=None):
        assert self.ask("set", key=key, value=value, **({"xt": seconds} if seconds else {}))[0]

    def add(self, key, value):
        return self.ask("add", key=key, value=value)[0]

    def get(self, key):
        return self.ask("get", key=key)[1].get(b"value")

    def delete(self, key):
        return self.ask("remove", key=key)[0]

    def increment(self, key, by):
        is_done, outputs = self.ask("increment", key=key, num=by)
        if not is_done:
            raise Refused(outputs)
        return int(outputs[b"num"])

    def close(self):
        self.client.close()


class KyotoBinary:
    """Kyoto Tycoon's binary protocol, which sets, gets and removes. There are no counters."""

    numbers = None
    key_bytes_max = 4096
    can_expire = True
    NEVER = 2**63 - 1

    def __init__(self, ports):
        self.connection = Connection(ports["all"])

    def ask(self, magic, body):
        self.connection.send(struct.pack(">BII", magic, 0, 1) + body)
        assert self.connection.read(1)[0] == magic
        return struct.unpack(">I", self.connection.read(4))[0]

    def set(self, key, value, seconds=None):
        head = struct.pack(">HIIq", 0, len(key), len(value), seconds or self.NEVER)
        assert self.ask(0xB8, head + key + value) == 1

    def get(self, key):
        if not self.ask(0xBA, struct.pack(">HI", 0, len(key)) + key):
            return None
        _, keys, values, _ = struct.unpack(">HIIq", self.connection.read(18))
        assert self.connection.read(keys) == key
        return self.connection.read(values)

    def delete(self, key):
        return self.ask(0xB9, struct.pack(">HI", 0, len(key)) + key) == 1

    def close(self):
        self.connection.close()


class KyotoRest:
    """Kyoto Tycoon's REST interface, on its own address. There are no counters."""

    numbers = None
    key_bytes_max = 4096
    can_expire = True

    def __init__(self, ports):
        self.client = http.client.HTTPConnection("127.0.0.1", ports["kyoto"], timeout=60)

    def ask(self, method, key, body=None, headers=None):
        self.client.request(method, "/" + urllib.parse.quote(key, safe=""), body, headers or {})
        response = self.client.getresponse()
        return response.status, response.read()

    def set(self, key, value, seconds=None):
        # A time in whole seconds, rounded so that it is never too early.
        headers = {"X-Kt-Xt": str(int(time.time()) + seconds + 1)} if seconds else {}
        assert self.ask("PUT", key, value, headers)[0] == 201

    def add(self, key, value):
        status, _ = self.ask("PUT", key, value, {"X-Kt-Mode": "add"})
        assert status in (201, 450)
        return status == 201

    def get(self, key):
        status, body = self.ask("GET", key)
        assert status in (200, 404)
        return body if status == 200 else None

    def delete(self, key):
        status, _ = self.ask("DELETE", key)
        assert status in (204, 404)
        return status == 204

    def close(self):
        self.client.close()


class Tyrant:
    """Tokyo Tyrant's binary protocol, which has no expiry and no flags."""

    numbers = "4 bytes"
    key_bytes_max = 4096
    can_expire = False
    DONE, FAILED = 0, 1

    def __init__(self, ports):
        self.connection = Connection(ports["all"])

    def ask(self, command, *parts):
        self.connection.send(b"\xc8" + bytes([command]) + b"".join(parts))
        return self.connection.read(1)[0]

    def size(self, data):
        return struct.pack(">I", len(data))

    def set(self, key, value):
        assert self.ask(0x10, self.size(key), self.size(value), key, value) == self.DONE

    def add(self, key, value):
        return self.ask(0x11, self.size(key), self.size(value), key, value) == self.DONE

    def get(self, key):
        if self.ask(0x30, self.size(key), key) != self.DONE:
            return None
        return self.connection.read(struct.unpack(">I", self.connection.read(4))[0])

    def delete(self, key):
        return self.ask(0x20, self.size(key), key) == self.DONE

    def increment(self, key, by):
        if self.ask(0x60, self.size(key), struct.pack(">i", by), key) != self.DONE:
            raise Refused
        return struct.unpack(">i", self.connection.read(4))[0]

    def close(self):
        self.connection.close()


class TyrantHttp:
    """HTTP with Tokyo Tyrant's rules, on its own address. There are no counters and no expiry."""

    numbers = None
    key_bytes_max = 4096
    can_expire = False

    def __init__(self, ports):
        self.client = http.client.HTTPConnection("127.0.0.1", ports["tyrant"], timeout=60)

    def ask(self, method, key, body=None, headers=None):
        self.client.request(method, "/" + urllib.parse.quote(key, safe=""), body, headers or {})
        response = self.client.getresponse()
        return response.status, response.read()

    def set(self, key, value):
        assert self.ask("PUT", key, value)[0] == 201

    def add(self, key, value):
        status, _ = self.ask("PUT", key, value, {"X-TT-PDMODE": "1"})
        assert status in (201, 409)
        return status == 201

    def get(self, key):
        status, body = self.ask("GET", key)
        assert status in (200, 404)
        return body if status == 200 else None

    def delete(self, key):
        status, _ = self.ask("DELETE", key)
        assert status in (200, 404)
        return status == 200

    def close(self):
        self.client.close()


PROTOCOLS = {
    "redis": Redis,
    "lua": Lua,
    "http": Http,
    "memcached-text": MemcachedText,
    "memcached-binary": MemcachedBinary,
    "kyoto-calls": KyotoCalls,
    "kyoto-binary": KyotoBinary,
    "kyoto-rest": KyotoRest,
    "tyrant": Tyrant,
    "tyrant-http": TyrantHttp,
}
