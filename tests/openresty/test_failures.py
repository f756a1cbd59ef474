"""What the client of a failed handler receives, and what remains of it."""

from support import Server

HANDLERS = {
    "marks": "ngx.header['X-Filtered'] = ngx.status",
    "shouts": "ngx.arg[1] = ngx.arg[1]:upper()",
    "breaks": "error('filter')",
    "writes": """-- route: GET /writes
-- writes: true
-- header_filter: marks
-- body_filter: shouts
local tokaido = require "tokaido"
tokaido.write(function(tx) tx.main:put("written", "1") end)
error("no")""",
    "reads": """-- route: GET /reads
local tokaido = require "tokaido"
ngx.say(tostring(tokaido.read(function(tx) return tx.main:get("written") end)))""",
    "broken": """-- route: GET /broken
-- header_filter: breaks
error("no")""",
    "slow": """-- route: GET /slow
-- header_filter: marks
while true do end""",
}


def test_the_page_of_a_failure_passes_the_filters_of_its_handler(tmp_path):
    handlers = tmp_path / "handlers"
    handlers.mkdir()
    for name, code in HANDLERS.items():
        (handlers / f"{name}.lua").write_text(f"-- dialect: ngx\n{code}\n")
    with Server(tmp_path / "data", tmp_path / "log", procedures=handlers, options=["--strict"]) as server:
        status, headers, body = server.http("GET", "/writes")
        assert (status, headers["X-Filtered"]) == (500, "500")
        assert body == b'{"ERROR":{"MESSAGE":"INTERNAL SERVER ERROR"}}\n'
        assert server.http("GET", "/reads")[2] == b"nil\n"
        # If a filter fails, too, or a limit stopped the handler, the page is the server's own.
        for path, expected in [("/broken", 500), ("/slow", 503)]:
            status, headers, body = server.http("GET", path)
            assert (status, headers["X-Filtered"]) == (expected, None)
            assert b'"error"' in body
        assert server.log().count("no") >= 2
