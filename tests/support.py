"""The server under test: started on its own directory, stopped, killed, and its log read."""

import os
import pathlib
import random
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

import redis

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROCEDURES = ROOT / "tests" / "procedures"
START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 60


def binary():
    """The program under test: the one that `cargo xtask test` names, otherwise the last one built."""
    return os.environ.get("TOKAIDO_BINARY") or str(ROOT / "target" / "debug" / "tokaido")


def tokaido(*arguments, **options):
    """Runs the program to its end, and returns the completed process, with its output as text."""
    command = [binary(), *map(str, arguments)]
    options = {"capture_output": True, "text": True, "timeout": 60, "stdin": subprocess.DEVNULL} | options
    return subprocess.run(command, check=False, **options)


def free_port():
    """A free port. It is not one that the system assigns to outgoing connections: such a port could be taken
    before the server has it, and a client that probes it could connect to itself."""
    while True:
        port = random.randrange(10_000, 32_768)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def wait_until(condition, what):
    """Waits for something that happens by itself."""
    deadline = time.monotonic() + START_SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, f"{what} does not come"
        time.sleep(0.01)


class Server:
    """A running server. `start` may be called again after `stop` or `kill`, on the same data."""

    def __init__(self, directory, log, procedures=None, port=None, options=()):
        self.directory = pathlib.Path(directory)
        self.procedures = procedures
        self.port = port or free_port()
        self.listen = [self.address]  # none: as configured
        self.options = list(options)
        self.log_path = pathlib.Path(log)
        self.process = None

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def command(self):
        command = [binary(), "serve", "--dir", str(self.directory)]
        for address in self.listen:
            command += ["--listen", address]
        if self.procedures:
            command += ["--procedures", str(self.procedures)]
        return command + self.options

    def spawn(self):
        """Starts the program without waiting until it listens."""
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        return self

    def start(self):
        self.spawn()
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline:
            assert self.process.poll() is None, f"the server ended at once: {self.log()}"
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return self
            except OSError:
                time.sleep(0.02)
        raise AssertionError(f"the server does not listen: {self.log()}")

    def stop(self):
        """Asks it to stop, and returns its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_SECONDS_MAX)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def log(self):
        return self.log_path.read_text(errors="replace")

    def wait_for_log(self, *texts):
        """Waits until the log contains all of them: the start is logged only after listening."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while not all(text in self.log() for text in texts):
            assert time.monotonic() < deadline, f"not all of {texts} are logged: {self.log()}"
            time.sleep(0.02)

    def is_alive(self):
        return self.process.poll() is None and self.redis().ping()

    def redis(self, **options):
        """A client without retries, so that a test sees every failure."""
        options = {"socket_timeout": 30, "retry": None, "retry_on_error": []} | options
        return redis.Redis(host="127.0.0.1", port=self.port, **options)

    def http(self, method, path, body=None, headers=None):
        """Sends a request; returns status, headers and body."""
        request = urllib.request.Request(
            f"http://{self.address}{path}", data=body, method=method, headers=headers or {}
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return response.status, response.headers, response.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.kill()
