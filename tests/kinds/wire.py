"""The Redis protocol without a client library, so that each reply keeps its type."""

import socket

NULL, NULL_ARRAY = ("null",), ("null array",)


class Wire:
    """One connection, in version 2 or 3 of the protocol."""

    def __init__(self, port, protocol):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.input = self.socket.makefile("rb")
        if protocol == 3:
            self.run("HELLO", "3")

    def close(self):
        self.input.close()
        self.socket.close()

    def run(self, *command):
        """Runs one command, and returns its reply."""
        return self.run_all([command])[0]

    def run_all(self, commands):
        """Runs a pipeline, and returns the replies in order."""
        self.socket.sendall(b"".join(map(encode, commands)))
        return [self.reply() for _ in commands]

    def reply(self):
        line = self.input.readline()
        assert line.endswith(b"\r\n"), f"cut off: {line}"
        kind, rest = line[:1].decode(), line[1:-2]
        if kind in "+-:,#(":
            return kind, rest.decode()
        if kind == "_":
            return NULL
        length = int(rest)
        if kind in "$=":
            if length < 0:
                return NULL
            body = self.input.read(length + 2)
            return kind, body[:-2]
        if length < 0:
            return NULL_ARRAY
        if kind == "%":
            return kind, [(self.reply(), self.reply()) for _ in range(length)]
        assert kind in "*~>", f"a reply of an unknown type: {line}"
        return kind, [self.reply() for _ in range(length)]


def encode(command):
    out = [b"*%d\r\n" % len(command)]
    for argument in command:
        argument = argument if isinstance(argument, bytes) else str(argument).encode()
        out.append(b"$%d\r\n%s\r\n" % (len(argument), argument))
    return b"".join(out)
