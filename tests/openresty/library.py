"""The same Lua snippets in nginx and in Tokaido, for the parts of `ngx` that need no request."""

import os
import pathlib
import shutil
import subprocess
import time
import urllib.error
import urllib.request

from support import Server, free_port

NGINX = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
MODULES = pathlib.Path("/usr/lib/nginx/modules")
START_SECONDS_MAX = 20

# Prints the outcome of a call as one line: its name, whether it raised, the number of results, and each result.
PRELUDE = r"""
local pieces = {}
local function show(value)
  if type(value) == "table" then
    local keys = {}
    for key in pairs(value) do keys[#keys + 1] = key end
    table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
    local parts = {}
    for _, key in ipairs(keys) do parts[#parts + 1] = tostring(key) .. "=" .. show(value[key]) end
    return "{" .. table.concat(parts, ", ") .. "}"
  end
  if type(value) == "string" then
    return '"' .. value:gsub("[^\32-\126]", function(char) return ("\\%d"):format(char:byte()) end) .. '"'
  end
  return tostring(value)
end
-- The second line of a name is told from the first by its number.
local seen = {}
local function line(name, ok, ...)
  seen[name] = (seen[name] or 0) + 1
  if seen[name] > 1 then name = name .. " #" .. seen[name] end
  local parts = { name, ok and "gives" or "raises" }
  if ok then
    for i = 1, select("#", ...) do parts[#parts + 1] = show((select(i, ...))) end
  end
  pieces[#pieces + 1] = table.concat(parts, " | ") .. "\n"
end
local function try(name, call, ...) line(name, pcall(call, ...)) end
"""
END = "\nngx.print(table.concat(pieces))\n"

CONFIGURATION = """
load_module {modules}/ndk_http_module.so;
load_module {modules}/ngx_http_lua_module.so;
daemon off;
{user}
worker_processes 1;
pid {directory}/pid;
error_log {directory}/error.log warn;
events {{ worker_connections 64; }}
http {{
  access_log off;
  client_body_temp_path {directory}/body;
  proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi;
  scgi_temp_path {directory}/scgi;
  lua_package_path "/usr/share/lua/5.1/?.lua;;";
  lua_shared_dict d 1m;
  server {{
    listen 127.0.0.1:{port};
{locations}
  }}
}}
"""


def is_installed():
    """Whether there is an nginx with Lua to compare with."""
    return NGINX is not None and (MODULES / "ngx_http_lua_module.so").exists()


class Nginx:
    """An nginx that serves the files of a directory, each under its own name."""

    def __init__(self, directory, files):
        self.directory, self.port, self.process = pathlib.Path(directory), free_port(), None
        locations = "\n".join(
            f"    location = /{file.stem} {{ content_by_lua_file {file}; }}" for file in files
        )
        text = CONFIGURATION.format(
            user="user root;" if os.geteuid() == 0 else "",  # its workers must be able to read the directories
            modules=MODULES, directory=directory, port=self.port, locations=locations
        )
        self.configuration = self.directory / "nginx.conf"
        self.configuration.write_text(text)

    def get(self, name):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{name}", timeout=60) as reply:
            return reply.read()

    def __enter__(self):
        command = [NGINX, "-p", str(self.directory), "-c", str(self.configuration)]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                self.get("ready")
                return self
            except urllib.error.HTTPError:
                return self
            except OSError:
                assert time.monotonic() < deadline and self.process.poll() is None, "nginx does not start"
                time.sleep(0.02)

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(START_SECONDS_MAX)


class Both:
    """Runs a snippet in both, and returns the lines of each by name."""

    def __init__(self, directory):
        assert is_installed(), "install libnginx-mod-http-lua, lua-resty-core and lua-resty-lrucache"
        self.directory, self.made = pathlib.Path(directory), 0

    def run(self, text, prelude="", configuration=""):
        self.made += 1
        place = self.directory / str(self.made)
        (place / "nginx").mkdir(parents=True)
        (place / "tokaido").mkdir()
        code = PRELUDE + prelude + text + END
        plain = place / "nginx" / "snippet.lua"
        plain.write_text(code)
        (place / "tokaido" / "snippet.lua").write_text(
            "-- dialect: ngx\n-- route: GET /snippet\n" + code
        )
        with Nginx(place / "nginx", [plain]) as nginx:
            theirs = nginx.get("snippet")
        (place / "tokaido.toml").write_text(
            '[databases.d]\nengine = "cache"\nbytes = "1 MiB"\n' + configuration
        )
        # A snippet makes many calls: on a busy machine they take longer than a procedure may.
        options = ["--config", str(place / "tokaido.toml"), "--script-ms", "30000"]
        with Server(place / "data", place / "log", place / "tokaido", options=options) as server:
            status, _, ours = server.http("GET", "/snippet")
            assert status == 200, server.log()
        return lines(theirs), lines(ours)


def lines(answer):
    found = {}
    for line in answer.decode(errors="replace").splitlines():
        name, _, rest = line.partition(" | ")
        assert name not in found, f"two lines of {name}"
        found[name] = rest
    return found


def differences(theirs, ours, allowed=()):
    """The differences, except for the allowed names, which must differ."""
    assert theirs.keys() == ours.keys()
    found = {
        name: (theirs[name], ours[name]) for name in theirs if theirs[name] != ours[name]
    }
    missing = [name for name in allowed if name not in found]
    assert not missing, f"these no longer differ: {missing}"
    return {name: pair for name, pair in found.items() if name not in allowed}


def quoted(text):
    """A Lua string literal."""
    escaped = "".join(
        chr(byte) if 32 <= byte < 127 and byte not in (34, 92) else f"\\{byte:03d}"
        for byte in text.encode() if isinstance(text, str)
    )
    return f'"{escaped}"'
