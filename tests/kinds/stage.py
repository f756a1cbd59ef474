"""A scene with several clients, played on two servers, where every client must receive the same."""

from support import wait_until

from .wire import Wire, encode


class Stage:
    """Clients of one server. What they receive is compared with what the other server's receive."""

    def __init__(self, port, protocol):
        self.port, self.protocol = port, protocol
        self.wires, self.came, self.blocked = {}, [], 0
        self.main = Wire(port, protocol)
        self.main.run("FLUSHALL")

    def run(self, *command):
        self.came.append((command, self.main.run(*command)))

    def block(self, name, *command):
        """Sends a blocking command from a client, and lets it wait."""
        wire = self.wires.setdefault(name, None) or Wire(self.port, self.protocol)
        self.wires[name] = wire
        wire.socket.sendall(encode(command))
        self.blocked += 1
        wait_until(lambda: blocked_clients(self.main) == self.blocked, f"{command} to wait")

    def hear(self, *names):
        """Reads the replies of clients that waited."""
        for name in names:
            self.came.append((name, self.wires[name].reply()))
            self.blocked -= 1

    def hear_in_any_order(self, *names):
        """Reads replies that the clients received at the same time."""
        self.came.append((names, sorted(self.wires[name].reply() for name in names)))
        self.blocked -= len(names)

    def close(self):
        for wire in [*self.wires.values(), self.main]:
            wire.close()


def blocked_clients(wire):
    lines = wire.run("INFO", "clients")[1].decode().splitlines()
    return next(int(line.partition(":")[2]) for line in lines if line.startswith("blocked_clients:"))


def play(scene, protocol, *ports):
    """Plays a scene on both servers."""
    came = []
    for port in ports:
        stage = Stage(port, protocol)
        try:
            scene(stage)
        finally:
            stage.close()
        wait_until(lambda port=port: blocked_clients(Wire(port, 2)) == 0, "that nobody waits")
        came.append(stage.came)
    for step, (expected, ours) in enumerate(zip(*came, strict=True)):
        assert expected == ours, f"step {step}: Redis {expected}, Tokaido {ours}"
