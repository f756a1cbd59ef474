"""Debian's Apache with mod_lua, with which the server is compared."""

import os
import pathlib
import shutil
import subprocess

import pytest
from support import free_port, wait_until

MODULES = pathlib.Path("/usr/lib/apache2/modules")

CONFIGURATION = """
ServerRoot "{directory}"
PidFile "{directory}/httpd.pid"
Mutex file:{directory}
Listen 127.0.0.1:{port}
LoadModule mpm_event_module {modules}/mod_mpm_event.so
ServerLimit 1
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule lua_module {modules}/mod_lua.so
ServerName localhost
DocumentRoot "{root}"
ErrorLog "{directory}/error.log"
{user}
<FilesMatch "\\.lua$">
  SetHandler lua-script
</FilesMatch>
{more}
"""


class Apache:
    """Runs on a document root, in which files ending in .lua are handlers."""

    def __init__(self, directory, root, more=""):
        if not shutil.which("apache2", path="/usr/sbin:" + os.environ["PATH"]):
            pytest.skip("needs the Debian package apache2")
        self.port = free_port()
        self.directory = directory
        is_root = os.geteuid() == 0
        user = "User nobody\nGroup nogroup" if is_root else ""
        configuration = directory / "httpd.conf"
        configuration.write_text(
            CONFIGURATION.format(
                directory=directory, port=self.port, modules=MODULES, root=root, user=user, more=more
            )
        )
        if is_root:
            shutil.chown(directory, "nobody")
        command = ["/usr/sbin/apache2", "-d", str(directory), "-f", str(configuration), "-DFOREGROUND"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        wait_until(self.listens, "Apache")

    def listens(self):
        assert self.process.poll() is None, self.log()
        return "resuming normal operations" in self.log() or "configured" in self.log()

    def log(self):
        log = self.directory / "error.log"
        return log.read_text(errors="replace") if log.exists() else "no log"

    def stop(self):
        self.process.terminate()
        self.process.wait(30)
