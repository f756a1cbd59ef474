"""The same handlers, served by nginx's Lua module and by Tokaido."""

import http.client
import os
import pathlib
import re
import shutil
import subprocess

from support import free_port, wait_until

HERE = pathlib.Path(__file__).parent
# The root of Debian's packages of nginx's modules, whether installed or unpacked.
ROOT = pathlib.Path(os.environ.get("NGINX_LUA_ROOT", "/"))
MODULES = ROOT / "usr/lib/nginx/modules"
PHASES = ("rewrite", "access", "header_filter", "body_filter", "log")

# Inherent differences: who answers, when, and how the length of the body is sent.
HEADERS_LEFT_OUT = {"date", "server", "connection", "transfer-encoding", "content-length", "keep-alive"}


class Case:
    """A handler, and the requests that are sent to it."""

    def __init__(self, name, text):
        self.name = name
        self.is_part = name.startswith("part_")
        lines = text.splitlines()
        self.requests = [line[4:] for line in lines if line.startswith(">>> ")]
        self.settings = dict(re.findall(r"^-- (\w+): (\S+)$", text, re.MULTILINE))
        self.code = "\n".join(line for line in lines if not line.startswith((">>> ", "-- variables: "))) + "\n"
        self.route = f"/{name}"

    def file(self):
        """The text of the handler for Tokaido; nginx takes the first lines as comments."""
        head = "-- dialect: ngx\n"
        if not self.is_part and "phase" not in self.settings:
            head += f"-- route: {self.route}\n"
        return head + self.code

    def location(self, directory):
        lines = [f"content_by_lua_file {directory}/{self.name}.lua;"]
        for phase in PHASES:
            if phase in self.settings:
                lines.append(f"{phase}_by_lua_file {directory}/{self.settings[phase]}.lua;")
        lines += [f"set ${name} '';" for name in self.settings.get("variables", "").split(",") if name]
        return f"location = {self.route} {{ {' '.join(lines)} }}\n"


def cases(path):
    """The cases in a file: each begins with a line === NAME."""
    parts = re.split(r"^=== (\w+)\n", path.read_text(), flags=re.MULTILINE)
    return [Case(name, text) for name, text in zip(parts[1::2], parts[2::2], strict=True)]


def write_files(directory, found):
    directory.mkdir(parents=True, exist_ok=True)
    for case in found:
        (directory / f"{case.name}.lua").write_text(case.file())


CONFIGURATION = """
load_module {modules}/ndk_http_module.so;
load_module {modules}/ngx_http_lua_module.so;
daemon off;
worker_processes 1;
user root;
error_log {directory}/error.log info;
pid {directory}/pid;
events {{}}
http {{
  access_log off;
  client_body_temp_path {directory}/bodies;
  client_body_buffer_size 2m;
  client_max_body_size 2m;
  proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi;
  scgi_temp_path {directory}/scgi;
  lua_package_path "{handlers}/?.lua;{root}/usr/share/lua/5.1/?.lua;;";
  {init}
  server {{
    listen 127.0.0.1:{port};
{locations}
  }}
}}
"""


class Nginx:
    """nginx with Lua, as packaged by Debian."""

    def __init__(self, directory, handlers, found):
        self.directory, self.port = directory, free_port()
        directory.mkdir(parents=True, exist_ok=True)
        init = [
            f"{case.settings['phase']}_by_lua_file {handlers}/{case.name}.lua;"
            for case in found
            if "phase" in case.settings
        ]
        served = [case for case in found if not case.is_part and "phase" not in case.settings]
        text = CONFIGURATION.format(
            modules=MODULES,
            root=ROOT,
            directory=directory,
            handlers=handlers,
            port=self.port,
            init=" ".join(init),
            locations="".join(case.location(handlers) for case in served),
        )
        (directory / "nginx.conf").write_text(text)
        self.process = None

    def __enter__(self):
        binary = shutil.which("nginx") or "/usr/sbin/nginx"
        command = [binary, "-p", str(self.directory), "-c", str(self.directory / "nginx.conf")]
        with open(self.directory / "stderr", "wb") as stderr:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=stderr)
        wait_until(self.answers, f"nginx: {(self.directory / 'stderr').read_text()}")
        return self

    def answers(self):
        try:
            exchange(self.port, "GET /")
        except OSError:
            return False
        return True

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)


def exchange(port, line):
    """Sends a request, `METHOD TARGET [NAME: VALUE]... BODY`; returns status, headers and body."""
    method, target, rest = (line + "  ").split(" ", 2)
    headers, body = [], rest.strip()
    while found := re.match(r"\[([\w-]+): ([^\]]*)\] *", body):
        headers.append(found.groups())
        body = body[found.end() :]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.putrequest(method, target, skip_host=False, skip_accept_encoding=True)
        for name, value in headers:
            connection.putheader(name, value)
        if body:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body.encode() if body else None)
        try:
            response = connection.getresponse()
        except http.client.RemoteDisconnected:
            return None, [], b"", False
        try:
            content = response.read()
            is_whole = True
        except http.client.IncompleteRead as error:
            content, is_whole = error.partial, False
    finally:
        connection.close()
    found = sorted(
        (name.lower(), value)
        for name, value in response.getheaders()
        if name.lower() not in HEADERS_LEFT_OUT
    )
    return response.status, found, content, is_whole


def comparable(answer):
    """An answer without the part that is specific to the server: the error page."""
    status, headers, body, is_whole = answer
    if not is_whole:
        # nginx may not have sent what it had yet.
        return "broken off"
    if b"<center>nginx" in body or body.startswith(b'{"error":{"message"'):
        body = b"(page)"
        headers = [(name, value) for name, value in headers if name != "content-type"]
    return status, headers, body, is_whole


