"""Debian's memcached, for comparison with the server."""

import shutil
import socket
import subprocess

import pytest
from support import free_port, wait_until


class Memcached:
    """A memcached process for the test."""

    def __init__(self, *options):
        if not shutil.which("memcached"):
            pytest.skip("needs the Debian package memcached")
        self.port = free_port()
        command = ["memcached", "-u", "root", "-l", "127.0.0.1", "-p", str(self.port), "-U", "0"]
        self.process = subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL)
        wait_until(self.listens, "memcached")

    def listens(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
