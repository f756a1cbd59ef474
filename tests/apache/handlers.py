"""Handlers for Apache's mod_lua, and the requests that both servers get for each of them.

A handler is the body of `function handle(r)`, or a whole file. A request is a target after the handler's
path, or a tuple of method, target, headers and body. Lua 5.3 and LuaJIT format floating-point numbers
differently, and iterate over a table in a different order; so handlers format and sort.
"""

GET = ("GET", "", {}, None)


def post(body, content_type="application/x-www-form-urlencoded", method="POST", target=""):
    return (method, target, {"Content-Type": content_type}, body)


def get(target="", **headers):
    return ("GET", target, {name.replace("_", "-"): value for name, value in headers.items()}, None)


SHOW_PAIRS = """
  local names = {}
  for name in pairs(firsts) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    r:puts("[", name, "]=[", firsts[name], "] ", table.concat(lists[name], "|"), "\\n")
  end
"""

MULTIPART = (
    "--xYz\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n"
    "--xYz\r\nContent-Disposition: form-data; name=\"b\"; filename=\"n.txt\"\r\n"
    "Content-Type: text/plain\r\n\r\ntwo\r\nlines\r\n"
    "--xYz\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n3\r\n--xYz--\r\n"
)

DATES = [
    "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
    "Sun Nov 16 08:49:37 1994", "nonsense", "", "6 Nov 1994 08:49:37 +0100", "Sun, 6 Nov 1994 8:49:37 GMT",
    "Sun, 06 Nov 1994 08:49:37 +0200", "Sun, 06 Nov 1994 08:49:37 EST", "Sun, 06 Nov 1994 08:49:37",
    "Thu, 01 Jan 1970 00:00:00 GMT", "Thu, 01 Jan 1970 00:00:01 GMT", "Sun, 31 Feb 1994 08:49:37 GMT",
    "Mon, 29 Feb 1996 23:59:59 GMT", "Sun, 06 Nov 1894 08:49:37 GMT", "Sunday, 06-Nov-12 08:49:37 GMT",
    "sun, 06 nov 1994 08:49:37 gmt", "Sun, 06 Nov 1994 24:49:37 GMT",
]

# The handlers from the articles that measured mod_lua: unmodified in both servers, except for a smaller number.
ARTICLES = {
    "article_hello": ("""
function handle(r)
  r.content_type = "text/plain"
  r:puts("Hello, world!")
end
""", [GET]),
    "article_fibonacci": ("""
function fib(n)
  if n < 2 then return n end
  return fib(n - 2) + fib(n - 1)
end

function handle(r)
  r.content_type = "text/plain"
  local n = tonumber(r.args) or 37
  r:puts(string.format("fib(%d) = %d\\n", n, fib(n)))
  return apache2.OK
end
""", [get("?15"), get("?20")]),
}

OUTPUT = {
    "puts_one": ('r:puts("a")', [GET, ("HEAD", "", {}, None)]),
    "puts_many": ('r:puts("a", 1, 2.5, "b\\n")', [GET]),
    "puts_nothing": ("r:puts()", [GET]),
    "puts_twice": ('r:puts("a") r:puts("b")', [GET]),
    "write_one": ('local n = r:write("abc") r:puts(string.format("%d", n))', [GET]),
    "write_first_only": ('r:write("abc", "def")', [GET]),
    "write_number": ("r:write(12)", [GET]),
    "write_bytes": ('r:write("a\\0b\\255")', [GET]),
    "flush": ('r:puts("a") r:puts(tostring(r:flush())) r:puts("b")', [GET]),
    "print_is_no_output": ('print("x") r:puts("y")', [GET]),
    "large": ('for i = 1, 20000 do r:puts("line ", string.format("%d", i), "\\n") end', [GET]),
    "large_at_once": ('r:write(("x"):rep(1000000))', [GET]),
    "empty": ("", [GET, ("POST", "", {}, "")]),
    "returns_ok": ('r:puts("a") return apache2.OK', [GET]),
    "returns_done": ('r:puts("a") return apache2.DONE', [GET]),
    "returns_string": ('r:puts("a") return "text"', [GET]),
    "returns_boolean": ('r:puts("a") return false', [GET]),
    "returns_table": ('r:puts("a") return {}', [GET]),
    "returns_fraction": ('r:puts("a") return 404.5', [GET]),
    "returns_404": ('r:puts("a") r.headers_out["X-A"] = "1" r.err_headers_out["X-E"] = "2" return 404', [GET]),
    "returns_404_as_text": ('r:puts("a") return "404"', [GET]),
    "returns_403": ("return 403", [GET]),
    "returns_501": ("return 501", [GET]),
    "returns_999": ("return 999", [GET]),
    "returns_1": ("return 1", [GET]),
    "returns_minus_5": ("return -5", [GET]),
    "returns_204": ("return 204", [GET]),
    "returns_304": ("return 304", [GET]),
    "redirect_by_result": ('r.headers_out.Location = "/elsewhere" return 302', [GET]),
    "redirect_by_constant": ('r.headers_out["location"] = "http://a.example/" return apache2.HTTP_MOVED_TEMPORARILY', [GET]),
    "redirect_by_status": ('r.headers_out["Location"] = "http://a.example/" r.status = 302', [GET]),
    "status_404": ('r.status = 404 r:puts("mine")', [GET]),
    "status_201": ('r.status = 201 r:puts("made")', [GET]),
    "status_as_text": ('r.status = "404" r:puts(string.format("%d", r.status))', [GET]),
    "status_999": ('r.status = 999 r:puts("a")', [GET]),
    "status_0": ('r.status = 0 r:puts("a")', [GET]),
    "status_is_200": ('r:puts(string.format("%d", r.status))', [GET]),
    "custom_response": ('r:custom_response(404, "Not here, sorry") return 404', [GET]),
    "custom_response_elsewhere": ('r:custom_response(403, "no") return 404', [GET]),
    "custom_response_url": ('r:custom_response(404, "http://a.example/lost") return 404', [GET]),
}

HEADERS = {
    "content_type": ('r.content_type = "text/html" r:puts("<p>")', [GET]),
    "content_type_in_headers": ('r.headers_out["Content-Type"] = "text/x" r:puts("a")', [GET]),
    "content_type_in_both": ('r.headers_out["Content-Type"] = "text/x" r.content_type = "text/y" r:puts("a")', [GET]),
    "content_type_number": ("r.content_type = 5 r:puts(r.content_type)", [GET]),
    "content_type_without_body": ('r.content_type = "text/plain"', [GET]),
    "content_type_unset": ("r:puts(tostring(r.content_type))", [GET]),
    "headers_out": ('r.headers_out["X-A"] = "1" r.headers_out["X-B"] = 2 r:puts(r.headers_out["x-a"])', [GET]),
    "headers_out_replaced": ('r.headers_out["X-A"] = "1" r.headers_out["x-a"] = "2" r:puts(r.headers_out["X-A"])', [GET]),
    "headers_out_removed": ('r.headers_out["X-A"] = "1" r.headers_out["x-a"] = nil r:puts(tostring(r.headers_out["X-A"]))', [GET]),
    "headers_out_empty": ('r.headers_out["X-A"] = "" r:puts("a")', [GET]),
    "headers_out_table": ('r.headers_out["X-A"] = "1" local firsts, lists = r:headers_out_table()' + SHOW_PAIRS, [GET]),
    "err_headers_out": ('r.err_headers_out["X-E"] = "1" r:puts("a")', [GET]),
    "headers_of_the_server": ('r.headers_out.Date = "never" r.headers_out.Server = "mine" r.headers_out["Content-Length"] = "3" r:puts("abcdef")', [GET]),
    "same_header_in_both": ('r.headers_out["Set-Cookie"] = "a" r.err_headers_out["Set-Cookie"] = "b" r:puts("a")', [GET]),
    "etag": ("r.headers_out.ETag = '\"x\"' r:puts(\"abc\")", [GET]),
    "wrong_header_name": ('r.headers_out["X A"] = "1" r:puts("a")', [GET]),
    "line_break_in_header": ('r.headers_out["X-A"] = "1\\nX-B: 2" r:puts("a")', [GET]),
    "headers_in": (
        'for _, n in ipairs { "Host", "host", "X-One", "X-Two", "none" } do r:puts(n, "=", tostring(r.headers_in[n]), "\\n") end',
        [get("", X_One="1", X_Two="a, b")],
    ),
    "headers_in_changed": ('r.headers_in["X-A"] = "b" r.headers_in.Host = nil r:puts(r.headers_in["x-a"], tostring(r.headers_in.Host))', [get("", X_A="a")]),
    "headers_in_table": ("local firsts, lists = r:headers_in_table()" + SHOW_PAIRS, [get("", X_Custom_Name="v")]),
    "notes": ('r.notes.a = "1" r.notes.A = "2" r.notes.n = 5 r.notes.x = nil r:puts(r.notes.a, r.notes.n, tostring(r.notes.x))', [GET]),
    "notes_table": ('r.notes.b = "2" r.notes.a = "1" local firsts, lists = r:notes_table()' + SHOW_PAIRS, [GET]),
    "subprocess_env": ('r.subprocess_env.a = "1" r:puts(r.subprocess_env.A, tostring(r.subprocess_env.b))', [GET]),
    "table_refuses_boolean": ('local ok = pcall(function() r.notes.a = true end) r:puts(tostring(ok))', [GET]),
}

REQUEST = {
    "method": ("r:puts(r.method)", [GET, ("POST", "", {}, ""), ("DELETE", "", {}, None), ("OPTIONS", "", {}, None), ("PURGE", "", {}, None), ("HEAD", "", {}, None)]),
    "uri": ('r:puts(r.uri, " ", r.unparsed_uri, " ", tostring(r.args), " ", r.the_request)', [GET, get("?a=1&b"), get("?"), get("?%41+%zz")]),
    "protocol": ('r:puts(r.protocol, " ", tostring(r.hostname), " ", r.useragent_ip, " ", tostring(r.is_https))', [GET]),
    "constants_of_requests": (
        'r:puts(r.handler, r.proxyreq, tostring(r.assbackwards), tostring(r.is_initial_req), tostring(r.user), tostring(r.ap_auth_type), tostring(r.content_encoding), r.context_prefix, string.format("%d", r.remaining))',
        [GET],
    ),
    "range": ("r:puts(tostring(r.range))", [GET]),
    "server_name": ('r:puts(r.server_name, " ", r:get_server_name_for_url(), " ", r:construct_url("/x?y=1"):match("/x.*"))', [GET]),
    "set_fields": ('r.user = "u" r.ap_auth_type = "t" r.args = "z=1" r.handler = "h" r:puts(r.user, r.ap_auth_type, r.args, r.handler, r:parseargs().z)', [GET]),
    "fields_are_guarded": (
        'for _, n in ipairs { "method", "hostname", "protocol", "range", "notes", "headers_out", "nothing" } do local ok, m = pcall(function() r[n] = "x" end) r:puts(n, " ", tostring(ok), " ", m:match("Property.*"), "\\n") end',
        [GET],
    ),
    "parseargs": (
        "local firsts, lists = r:parseargs()" + SHOW_PAIRS,
        [get(f"?{query}") for query in (
            "a=1&b=2", "a=1&a=2&A=3", "a&b=", "=5", "a==b", "a=1;b=2", "&&a&", "a=%zz", "a=%4", "a+b=c+d", "%41=1", "a=%c3%a9",
            "x%20y=1%26", "",
        )] + [GET],
    ),
    "parsebody": (
        "local firsts, lists = r:parsebody()" + SHOW_PAIRS,
        [post(body) for body in ("a=1&b=2&a=3", "a&b=&c=1", "=5", "a==b", "a=1;b=2", "a=x+y%20z", "A=1&a=2", "%41=1", "")]
        + [post("a=1", "application/json"), post("a=1", "application/x-www-form-urlencoded; charset=utf-8")]
        + [post("a=1", method="PUT"), post(MULTIPART, "multipart/form-data; boundary=xYz"), GET],
    ),
    "parsebody_limit": ("local firsts, lists = r:parsebody(10)" + SHOW_PAIRS, [post("a=1&b=2"), post("a=1&b=23456789")]),
    "parsebody_default_limit": ("local firsts, lists = r:parsebody() r:puts(tostring(firsts.a and #firsts.a))", [post("a=" + "x" * 8000), post("a=" + "x" * 9000)]),
    "parsebody_order": ("local firsts, lists = r:parsebody() r:puts(firsts.a, table.concat(lists.a))", [post("a=1&a=2&a=3")]),
    "requestbody": (
        'local body, len = r:requestbody() r:puts(tostring(body), " ", len and string.format("%d", len) or "nil")',
        [post("abc"), post("abc", method="PUT"), post("abc", method="PATCH"), post("abc", method="DELETE"), GET],
    ),
    "requestbody_twice": ("r:requestbody() r:puts(tostring((r:requestbody())))", [post("abc")]),
    "requestbody_echo": ("r:write(r:requestbody())", [post("a\0b"), post("x" * 1000), post("x" * 1000000)]),
    "requestbody_then_form": ("r:requestbody() local firsts, lists = r:parsebody()" + SHOW_PAIRS, [post("a=1")]),
    "getcookie": (
        'for _, n in ipairs { "a", "b", "c", "d", "A" } do r:puts(n, "=", tostring((r:getcookie(n))), ";") end',
        [get("", Cookie='a=1; b="q x"; c=; d=x=y'), get("", Cookie="a=1;b=2;a=3"), get("", Cookie="  a = 1 "), GET],
    ),
    "setcookie": ('r:setcookie("a", "b") r:puts("x")', [GET]),
    "setcookie_all": ('r:setcookie { key = "a", value = "b c;", expires = 1900000000, secure = true, httponly = true, path = "/p", domain = "d.example" }', [GET]),
    "setcookie_twice": ('r:setcookie("a", "b") r:setcookie("c", "d", true, 1900000000)', [GET]),
    "setcookie_table": ('r:setcookie { key = "a", value = "b" }', [GET]),
    "setcookie_with_error": ('r:setcookie("a", "b") return 403', [GET]),
}

TEXTS = {
    "escape": ('local t = {} for i = 1, 255 do t[i] = string.char(i) end r:puts(r:escape(table.concat(t)), r:escape(""))', [GET]),
    "unescape": ('for _, t in ipairs { "a+b%41", "x%", "%zz", "%00", "%c3%a9", "%1fa", "", "plain" } do r:puts("[", tostring((r:unescape(t))), "]") end', [GET]),
    "escape_html": ('local t = {} for i = 1, 255 do t[i] = string.char(i) end r:puts(r:escape_html(table.concat(t)))', [GET]),
    "escape_logitem": ('local t = {} for i = 1, 255 do t[i] = string.char(i) end r:puts(r:escape_logitem(table.concat(t)))', [GET]),
    "os_escape_path": (
        'local t = {} for i = 1, 255 do t[i] = string.char(i) end r:puts(r:os_escape_path(table.concat(t))) for _, p in ipairs { "a:b", "a/b:c", "/a:b", "" } do r:puts("|", r:os_escape_path(p), "|", r:os_escape_path(p, true)) end',
        [GET],
    ),
    "base64_encode": ('for _, t in ipairs { "", "a", "ab", "abc", "\\0\\255x" } do r:puts(r:base64_encode(t), ";") end', [GET]),
    "base64_decode": ('for _, t in ipairs { "", "YQ==", "YWI=", "YWJj", "YWI", "YW Jj", "!", "YQ", "Y" } do r:puts(r:base64_decode(t), ";") end', [GET]),
    "md5": ('for _, t in ipairs { "", "hello", "a\\0b", ("x"):rep(1000) } do r:puts(r:md5(t), ";") end', [GET]),
    "sha1": ('for _, t in ipairs { "", "hello", "a\\0b", ("x"):rep(1000) } do r:puts(r:sha1(t), ";") end', [GET]),
    "regex": (
        'for _, p in ipairs { "(\\\\w+) (\\\\w+)", "o+", "^foo$", "(x)|(f)", "[[:digit:]]+", "b{2}", "(?i)FOO", "a.b", "^b$", "z" } do for flags = 0, 2 do local m = r:regex("foo bar bb 42 a\\nb\\nb", p, flags) r:puts(p, " ", string.format("%d", flags), " ") if m then for i = 0, 3 do r:puts("[", tostring(m[i]), "]") end else r:puts(tostring(m)) end r:puts("\\n") end end',
        [GET],
    ),
    "regex_of_pcre": (
        'for _, p in ipairs { "(?<=bar )(\\\\w+)", "(b)\\\\1", "(?!foo)\\\\b\\\\w+", "2\\\\s*$", "(?<n>4)(x)?", "[^a]\\xc3", "b$", "\\\\R" } do for flags = 0, 3 do local m = r:regex("foo bar bb 42 a\\nb\\n", p, flags) r:puts(p, " ", string.format("%d", flags), " ") if m then for i = 0, 3 do r:puts("[", tostring(m[i]), "]") end else r:puts(tostring(m)) end r:puts("\\n") end end',
        [GET],
    ),
    "regex_broken": ('local m, why = r:regex("a", "(", 0) r:puts(tostring(m), type(why))', [GET]),
    "regex_without_flags": ('r:puts(r:regex("foo", "o")[0])', [GET]),
    "strcmp_match": ('for _, c in ipairs { { "foobar.com", "foo*.com" }, { "Foo", "foo" }, { "abc", "a?c" }, { "abc", "*" }, { "abc", "a?" }, { "", "*" }, { "abab", "*ab" } } do r:puts(tostring(r.strcmp_match(c[1], c[2])), tostring(r.strcmp_match(c[1], c[2], true)), ";") end', [GET]),
    "date_parse_rfc": (
        "".join(f'do local d = r.date_parse_rfc("{date}") r:puts(d and string.format("%d", d) or "nil", "\\n") end ' for date in DATES),
        [GET],
    ),
    "clock": ('local a = r:clock() r:puts(type(a), tostring(a > 1.6e15), tostring(r:clock() >= a), type(r.started))', [GET]),
    "logs": ('for _, l in ipairs { "emerg", "alert", "crit", "err", "warn", "notice", "info", "debug", "trace1", "trace8" } do r[l](r, "a line") end r:puts("ok")', [GET]),
}

LANGUAGE = {
    "constants": (
        'local c = {} for _, n in ipairs { "OK", "DECLINED", "DONE", "HTTP_MOVED_TEMPORARILY", "HTTP_NOT_FOUND", "HTTP_OK", "PROXYREQ_NONE", "PROXYREQ_PROXY", "PROXYREQ_REVERSE", "PROXYREQ_RESPONSE", "AUTHZ_DENIED", "AUTHZ_GRANTED", "AUTHZ_NEUTRAL", "AUTHZ_GENERAL_ERROR", "AUTHZ_DENIED_NO_USER" } do c[#c + 1] = n .. "=" .. tostring(apache2[n]) end r:puts(table.concat(c, " "))',
        [GET],
    ),
    "require": ('require "string" local a = require "apache2" r:puts(tostring(a.OK or apache2.OK), require("table").concat({ "a", "b" }), type(require("math").floor))', [GET]),
    "closures": ("local function add(n) return function(m) return n + m end end r:puts(string.format('%d', add(1)(2)))", [GET]),
    "errors_are_caught": ('local ok, m = pcall(error, { code = 7 }) r:puts(tostring(ok), string.format("%d", m.code))', [GET]),
    "coroutines": ("local c = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) r:puts(string.format('%d%d%d', c(), c(), c()))", [GET]),
    "string_library": ('r:puts(("x"):rep(3), (" a "):gsub("%s", ""), ("abc"):upper(), ("k=v"):match("(%w)=(%w)"))', [GET]),
    "fails": ('r:puts("before") error("boom")', [GET]),
    "fails_with_nil": ("local t = nil r:puts(t.x)", [GET]),
    "wrong_arguments": ('for _, v in ipairs { {}, true } do r:puts(tostring((pcall(r.puts, r, v)))) end r:puts(tostring((pcall(r.puts, "x"))), tostring((pcall(r.md5, r))))', [GET]),
    "ivm": ('local n = r:ivm_get("n") r:puts(n and string.format("%d", n) or "nil", tostring((r:ivm_get("s")))) r:ivm_set("n", (n or 0) + 1) r:ivm_set("s", "text")', [GET, GET, GET]),
    "sendfile": ('r.content_type = "text/plain" local n = r:sendfile(r.document_root .. "/static.txt") r:puts(string.format("%d", n))', [GET]),
    "sendfile_missing": ('r:puts(tostring(r:sendfile(r.document_root .. "/none.txt")))', [GET]),
    "stat": ('local s = r:stat(r.document_root .. "/static.txt") r:puts(string.format("%d %d %d", s.size, s.filetype, s.mtime), tostring(s.mtime > 1.6e15), tostring((r:stat(r.document_root .. "/none"))))', [GET]),
}

# The cases whose differences test_differential.py explains.
DIFFERENT = {
    "puts_zero_byte": ('r:puts("a\\0b")', [GET]),
    "args_with_zero_byte": ("r:write(r:parseargs().a)", [get("?a=x%00b")]),
    "ivm_boolean": ('r:ivm_set("flag", true) r:puts(tostring((r:ivm_get("flag"))))', [GET]),
    "returns_200": ('r:puts("a") return 200', [GET]),
    "returns_declined": ("return apache2.DECLINED", [GET]),
    "form_with_broken_escape": ("r:write(r:parsebody().a)", [post("a=%zz")]),
}

ALL = DIFFERENT | ARTICLES | OUTPUT | HEADERS | REQUEST | TEXTS | LANGUAGE


def text_of(body):
    return body if "function handle" in body else f"function handle(r)\n{body}\nend\n"
