"""Misuse of `ngx.re` by scripts, which must do no harm: each is a request, and the server survives."""

import pytest
from support import Server

# Compiles more expressions than are kept between requests.
CROWD = """
local crowds = 0
local function crowd()
  crowds = crowds + 1
  for i = 1, 1600 do ngx.re.find("a", "zz(a|b)+" .. i .. "-" .. crowds .. tostring({})) end
end
"""

# Each returns the given value, whatever runs while the expression is in use.
REENTERED = {
    "ctx is read": ("""
        local ctx = setmetatable({}, { __index = function() crowd() return 1 end })
        return ngx.re.match("hello", "(l+)", "", ctx)[1]""", "ll"),
    "ctx is written": ("""
        local ctx = setmetatable({}, { __newindex = function() crowd() end })
        return ngx.re.match("hello", "(l+)", "", ctx)[1]""", "ll"),
    "ctx of find": ("""
        local ctx = setmetatable({}, { __index = crowd, __newindex = function() crowd() end })
        return table.concat({ ngx.re.find("hello", "(l+)(o)", "", ctx, 2) }, " ")""", "5 5"),
    "res of match": ("""
        local res = setmetatable({}, { __newindex = function(t, k, v) crowd() rawset(t, k, v) end })
        ngx.re.match("hello", "(?<many>l+)(o)", "", nil, res)
        return res[1] .. res[2] .. res.many""", "lloll"),
    "res of split": ("""
        local res = setmetatable({}, { __newindex = function(t, k, v) crowd() rawset(t, k, v) end })
        return table.concat(require("ngx.re").split("a,b;c", "([,;])", "", nil, nil, res), " ")""", "a , b ; c"),
    "replacement": ("""
        local text = setmetatable({}, { __tostring = function() crowd() return "<$1>" end })
        return (ngx.re.gsub("hello", "(l)", text))""", "he<l><l>o"),
    "function": ("""
        return (ngx.re.gsub("hello", "(l)", function(m) crowd() return "<" .. m[1] .. ">" end))""", "he<l><l>o"),
    "subject": ("""
        local text = setmetatable({}, { __tostring = function() crowd() return "hello" end })
        return ngx.re.match(text, "(l+)")[1]""", "ll"),
    "no text": ("""
        local text = setmetatable({}, { __tostring = function() return {} end })
        return select(2, pcall(ngx.re.match, text, "l")):match("__tostring gives a string")""", "__tostring gives a string"),
}

# A coroutine that waits across requests, while the expressions of the first request are gone.
OUTLASTS = """
if not kept then
  kept = coroutine.create(function()
    local wait = function() coroutine.yield() return 1 end
    local ctx = setmetatable({}, { __index = wait, __newindex = wait })
    local found = ngx.re.match("hello", "(l+)", "", ctx)[1]
    return (ngx.re.gsub("hello", "l", function(m) wait() return found end))
  end)
end
local ok, value = coroutine.resume(kept)
crowd()
ngx.print(value or coroutine.status(kept))
"""

PLACES = """
local tries = { 0/0, -0/0, 0.5, 1e-300, -1, -1/0, 1/0, 1e300, 2^53, 7, 6, 3.7 }
for i, pos in ipairs(tries) do
  local m, why = ngx.re.match("hello", "l*o?", "", { pos = pos })
  local from, to, why_not = ngx.re.find("hello", "l*o?", "", { pos = pos })
  local parts, no = require("ngx.re").split("hello", "l", "", { pos = pos })
  ngx.say(i, " ", m and "[" .. m[0] .. "]" or why, " ", from or why_not, " ", parts and table.concat(parts, "|") or no)
end
"""
BAD = "pcre_exec() failed: -24"
FOUND_AT = [
    *(f"{i} {BAD} {BAD} {BAD}" for i in (1, 2)),
    *(f"{i} [] 1 he||o" for i in (3, 4, 5, 6)),
    *(f"{i} {BAD} {BAD} " for i in (7, 8, 9, 10)),
    "11 [] 6 ",
    "12 [llo] 3 ||o",
]

# Matches that begin after their end, or before the start of the search.
BACKWARDS = r"""
for i, pattern in ipairs { [[(?<=(?1))(?(DEFINE)(\Ka))]], [[(?=(?1))(?(DEFINE)(a\K))]] } do
  local subject = i == 1 and "xaay" or "a"
  local many = 0
  for found, why in ngx.re.gmatch(subject, pattern) do many = many + 1 end
  local calls = { ngx.re.match, ngx.re.find, ngx.re.gsub, require("ngx.re").split }
  for number, call in ipairs(calls) do
    local ok, value = pcall(call, subject, pattern, number == 3 and "-" or nil)
    ngx.say(ok)
  end
end
ngx.say((ngx.re.gsub("foobar foobar", [[foo\Kbar]], "-")))
"""

REFUSED = """
ngx.say(select(2, ngx.re.match("a", "(*NO_JIT)a")))
ngx.say(select(3, ngx.re.find(("a"):rep(8000) .. ("b"):rep(8000), "(a(?1)?b)", "d")))
ngx.say(ngx.re.find("\\230\\151\\165", ".", "dU"))
"""

# A time limit ends it.
ENDLESS = "ngx.re.find(('a'):rep(1000000), '^(?:(?!.*[xyz])a)*', 'd')"

# Too much for one request, and nothing of it remains for the next.
MANY = """
local large = ("(a|b)+(c|d)+"):rep(200)
for i = 1, 10000 do
  local m, why = ngx.re.match("a", large .. i)
  if why then return ngx.say(why) end
end
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    directory = tmp_path_factory.mktemp("safety")
    files = directory / "files"
    files.mkdir()
    bodies = {"places": PLACES, "backwards": BACKWARDS, "refused": REFUSED, "endless": ENDLESS, "many": MANY}
    bodies["outlasts"] = CROWD + OUTLASTS
    for i, (body, _) in enumerate(REENTERED.values()):
        bodies[f"reentered{i}"] = CROWD + f"ngx.print((function() {body} end)())"
    for name, body in bodies.items():
        (files / f"{name}.lua").write_text(f"-- dialect: ngx\n-- route: GET /{name}\n{body}\n")
    options = ["--workers", "1", "--script-ms", "20000", "--stalled-ms", "40000", "--stalled-exit-ms", "0"]
    with Server(directory / "data", directory / "log", files, options=options) as server:
        yield server


def ask(server, name):
    status, _, body = server.http("GET", f"/{name}")
    assert status == 200, server.log()[-2000:]
    return body.decode()


@pytest.mark.parametrize("name", REENTERED)
def test_whatever_runs_meanwhile_the_match_is_the_same(server, name):
    number = list(REENTERED).index(name)
    for _ in range(3):
        assert ask(server, f"reentered{number}") == REENTERED[name][1]


def test_a_coroutine_outlasts_the_expressions_of_its_request(server):
    answers = [ask(server, "outlasts") for _ in range(5)]
    assert answers[-1] == "hellllo", answers


def test_only_places_in_the_text_are_searched(server):
    assert ask(server, "places").splitlines() == FOUND_AT


def test_matches_go_forwards(server):
    assert ask(server, "backwards").splitlines() == ["true"] * 8 + ["foo- foo-"]


def test_what_is_not_done_is_refused(server):
    no_jit, deep, utf = ask(server, "refused").splitlines()
    assert "leave out (*NO_JIT)" in no_jit
    assert deep == "pcre_exec() failed: -21"
    assert utf == "13"


def test_one_request_compiles_only_so_much(server):
    for _ in range(2):
        assert "the expressions of one request have up to" in ask(server, "many")


def test_the_time_limit_ends_a_dfa(tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    (files / "endless.lua").write_text(f"-- dialect: ngx\n-- route: GET /endless\n{ENDLESS}\n")
    options = ["--script-ms", "200"]
    with Server(tmp_path / "data", tmp_path / "log", files, options=options) as server:
        assert server.http("GET", "/endless")[0] == 503
        assert "time limit" in server.log()
