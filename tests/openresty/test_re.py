"""`ngx.re`, compared with nginx-lua's, which uses the first PCRE: its compiler has other messages."""

import pathlib
import re

import pytest
from openresty import library

SNIPPETS = pathlib.Path(__file__).parent / "snippets"

# UTF-8 is stepped over by whole characters; a deep match gets a second stack; expressions may contain NUL.
DIFFERENT = {"gsub utf", "rec", "nul", "nul pat"}

PATTERNS = [
    "a", "b*", "(a)(b)?", "(?<x>a)|(?<y>b)", "^", "$", "^a.c$", "[a-c]+", r"\d+", r"(\w+)\s(\w+)", "(?i)AB", r"\bfoo\b",
    "(a|ab)(c|bcd)(d*)", r"(?=b)", r"(?<!a)b", "a{2,3}", "a+?", "a++", "(?:ab)+", r"(.)\1", ".", r"\s*", "x|", "(|a)+", "é",
    "[^a]", r"\Aab", r"c\z", "(?s).+", "(?m)^b", "(a)|(b)|(c)", r"foo\Kbar", "(?>a+)b", "((a)(b))(c)?", r"\Q.*\E",
]
SUBJECTS = [
    "", "a", "abc", "aab", "ABC abc", "a\nb\nc", "foo bar foo", "12 345", "aaaa", "foobar", "été", "abcd", ".*", "cba", "xyz",
]
OPTIONS = ["", "jo", "i", "m", "s", "x", "a", "jou", "d", "ims", "D"]
REPLACEMENTS = ["-", "[$0]", "<${1}|$2>", "$$"]


def without_messages(text):
    """The compiler's messages depend on the version of PCRE."""
    return re.sub(r'pcre_compile\(\) failed: .*', "pcre_compile() failed", text)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    return library.Both(tmp_path_factory.mktemp("re"))


def compare(both, text, allowed=()):
    theirs, ours = both.run(text)
    theirs = {name: without_messages(line) for name, line in theirs.items()}
    ours = {name: without_messages(line) for name, line in ours.items()}
    assert library.differences(theirs, ours, allowed) == {}
    return theirs


def test_every_function_gives_what_it_gives_in_nginx(both):
    compare(both, (SNIPPETS / "re.lua").read_text(), DIFFERENT)


def loops(options):
    """A snippet that tries every pattern on every subject."""
    listed = lambda texts: "{" + ", ".join(map(library.quoted, texts)) + "}"
    return f"""
local patterns, subjects = {listed(PATTERNS)}, {listed(SUBJECTS)}
local replacements = {listed(REPLACEMENTS)}
local re, options = ngx.re, {library.quoted(options)}
for p, pattern in ipairs(patterns) do
  for s, subject in ipairs(subjects) do
    local name = p .. "/" .. s .. " "
    try(name .. "match", re.match, subject, pattern, options)
    try(name .. "find", re.find, subject, pattern, options)
    try(name .. "find 1", re.find, subject, pattern, options, nil, 1)
    local ctx = {{ pos = 2 }}
    try(name .. "ctx", re.match, subject, pattern, options, ctx)
    line(name .. "pos", true, ctx.pos)
    for r, replacement in ipairs(replacements) do
      try(name .. "sub " .. r, re.sub, subject, pattern, replacement, options)
      try(name .. "gsub " .. r, re.gsub, subject, pattern, replacement, options)
    end
    try(name .. "gsub f", re.gsub, subject, pattern, function(m) return "<" .. m[0] .. ">" end, options)
    try(name .. "gmatch", function()
      local next_match, why = re.gmatch(subject, pattern, options)
      if not next_match then return next_match, why end
      local found = {{}}
      for i = 1, 20 do
        found[i] = next_match()
        if not found[i] then break end
      end
      return found
    end)
  end
end
"""


@pytest.mark.parametrize("options", OPTIONS)
def test_patterns_find_what_they_find_in_nginx(both, options):
    theirs, ours = both.run(loops(options))
    found = library.differences(
        {name: without_messages(line) for name, line in theirs.items()},
        {name: without_messages(line) for name, line in ours.items()},
    )
    # nginx gives up within a UTF-8 character, and gmatch ends there silently.
    is_within = lambda name, pair: "-11" in pair[0] or "u" in options and name.endswith("/11 gmatch")
    found = {name: pair for name, pair in found.items() if not is_within(name, pair)}
    assert found == {}
    assert len(theirs) > 5000
