-- Handlers that nginx and Tokaido serve, and which answer alike. Each begins with a line === NAME, answers /NAME, and is
-- sent what stands behind >>>: METHOD TARGET [NAME: VALUE]... BODY. Those that begin with part_ are named by others.

=== say
>>> GET /say
ngx.say("hello")
=== collect
>>> GET /collect
ngx.say(collectgarbage(), " ", collectgarbage("collect"), " ", type(collectgarbage("count")))
=== say_many
>>> GET /say_many
ngx.say("a", 1, 1.5, true, false, nil, ngx.null, 1e15, 1e100, -0.25)
=== say_nothing
>>> GET /say_nothing
ngx.say()
=== print_parts
>>> GET /print_parts
ngx.print("a") ngx.print("b", "c") ngx.print({"d", {"e", 1, {true}}, "f"})
=== say_table
>>> GET /say_table
ngx.say({"a", "b"}, {}, {1, 2})
=== say_holes
>>> GET /say_holes
ngx.say({1, nil, 3}, { [3] = "c" }) ngx.say((pcall(ngx.say, { [0] = 1 })), (pcall(ngx.say, { [1.5] = 1 })))
=== say_bad
>>> GET /say_bad
local ok, message = pcall(ngx.say, function() end)
ngx.say(ok, " ", message:match "%(.*")
local ok, message = pcall(ngx.say, {a = 1})
ngx.say(ok, " ", message:match "%(.*")
=== empty
>>> GET /empty
>>> HEAD /empty
=== head
>>> HEAD /head
ngx.header["X-A"] = "1" ngx.say("hello")
=== status_set
>>> GET /status_set
ngx.status = 201 ngx.say("made ", ngx.status)
=== status_string
>>> GET /status_string
ngx.status = "203" ngx.say(ngx.status)
=== status_before
>>> GET /status_before
local before = ngx.status ngx.say(before) ngx.say(ngx.status)
=== status_late
>>> GET /status_late
ngx.say("a") ngx.status = 404 ngx.say(ngx.status)
=== status_odd
>>> GET /status_odd
ngx.status = 418 ngx.say("teapot")
=== exit_ok
>>> GET /exit_ok
ngx.say("before") ngx.exit(ngx.OK) ngx.say("after")
=== exit_200
>>> GET /exit_200
ngx.exit(200)
=== exit_200_said
>>> GET /exit_200_said
ngx.say("a") ngx.exit(200)
=== exit_201
>>> GET /exit_201
ngx.exit(201)
=== exit_204
>>> GET /exit_204
ngx.exit(204)
=== exit_304
>>> GET /exit_304
ngx.header["X-A"] = "b" ngx.exit(304)
=== exit_403
>>> GET /exit_403
ngx.header["X-A"] = "b" ngx.exit(403)
=== exit_404
>>> GET /exit_404
>>> POST /exit_404 abc
return ngx.exit(ngx.HTTP_NOT_FOUND)
=== exit_500
>>> GET /exit_500
ngx.exit(500)
=== exit_503_status
>>> GET /exit_503_status
ngx.status = 503 ngx.say("busy") ngx.exit(ngx.HTTP_OK)
=== exit_status_own_body
>>> GET /exit_status_own_body
ngx.status = 410 ngx.print("gone for good") return ngx.exit(ngx.status)
=== exit_in_pcall
>>> GET /exit_in_pcall
pcall(function() ngx.say("in") ngx.exit(200) end) ngx.say("never")
=== exit_in_coroutine
>>> GET /exit_in_coroutine
local co = coroutine.wrap(function() ngx.say("in") ngx.exit(200) end) co() ngx.say("never")
=== exit_bad
>>> GET /exit_bad
local ok, message = pcall(ngx.exit, "x") ngx.say(ok)
=== error_plain
>>> GET /error_plain
error("broken")
=== error_table
>>> GET /error_table
error({ code = 7 })
=== error_message
>>> GET /error_message
error({ message = "secret", status = 404, code = "x" })
=== error_nil
>>> GET /error_nil
local t = nil; return t.x
=== error_after
>>> GET /error_after
ngx.say("so far") error("broken")
=== error_after_status
>>> GET /error_after_status
ngx.status = 202 ngx.header["X-A"] = "1" ngx.print("so far") error("broken")
=== syntax_pcall
>>> GET /syntax_pcall
local chunk, message = loadstring("x = = 1") ngx.say(chunk, " ", message)
=== redirect
>>> GET /redirect
ngx.redirect("/elsewhere") ngx.say("never")
=== redirect_301
>>> GET /redirect_301
ngx.header["X-A"] = "1" return ngx.redirect("http://example.com/a?b=c", 301)
=== redirect_others
>>> GET /redirect_others?s=303
>>> GET /redirect_others?s=307
>>> GET /redirect_others?s=308
return ngx.redirect("/x", tonumber(ngx.var.arg_s))
=== redirect_bad
>>> GET /redirect_bad
local ok, message = pcall(ngx.redirect, "/x", 200) ngx.say(ok, " ", message)
=== redirect_late
>>> GET /redirect_late
ngx.say("a") local ok, message = pcall(ngx.redirect, "/x") ngx.say(ok, " ", message)
=== header_set
>>> GET /header_set
ngx.header["X-One"] = "1" ngx.header.x_two = "2" ngx.header["X-Three"] = 3 ngx.header.X_Four = true
ngx.say(ngx.header["x-one"], ngx.header.x_two, ngx.header["X-THREE"], ngx.header["X-Four"])
=== header_many
>>> GET /header_many
ngx.header["Set-Cookie"] = { "a=1", "b=2; Path=/" }
local cookies = ngx.header["Set-Cookie"]
ngx.say(type(cookies), " ", #cookies, " ", cookies[2])
=== header_one_of_table
>>> GET /header_one_of_table
ngx.header["X-A"] = { "only" } ngx.say(type(ngx.header["X-A"]))
=== header_replace
>>> GET /header_replace
ngx.header["X-A"] = { "1", "2" } ngx.header["X-A"] = "3" ngx.say("ok")
=== header_clear
>>> GET /header_clear
ngx.header["X-A"] = "1" ngx.header["X-B"] = "2" ngx.header["X-A"] = nil ngx.header["X-B"] = {}
ngx.say(ngx.header["X-A"], ngx.header["X-B"])
=== header_type
>>> GET /header_type
ngx.header.content_type = "application/json; charset=utf-8" ngx.say("{}")
=== header_type_none
>>> GET /header_type_none
ngx.header.content_type = nil ngx.say("x")
=== header_type_table
>>> GET /header_type_table
ngx.header["Content-Type"] = { "text/a", "text/b" } ngx.say("x")
=== header_type_default
>>> GET /header_type_default
local before = ngx.header.content_type ngx.say(before) ngx.say(ngx.header.content_type)
=== header_length
>>> GET /header_length
ngx.header.content_length = 3 ngx.print("abc")
=== header_late
>>> GET /header_late
ngx.say("a") ngx.header["X-Late"] = "1" ngx.say(ngx.headers_sent)
=== header_missing
>>> GET /header_missing
ngx.say(ngx.header["X-None"], " ", ngx.headers_sent) ngx.say(ngx.headers_sent)
=== header_location
>>> GET /header_location
ngx.header["Location"] = "/there" ngx.status = 302 ngx.say("moved")
=== header_cache
>>> GET /header_cache
ngx.header["Cache-Control"] = "no-cache" ngx.header["ETag"] = '"abc"' ngx.header["Expires"] = "Thu, 01 Jan 1970 00:00:00 GMT"
ngx.header["Last-Modified"] = "Thu, 01 Jan 1970 00:00:00 GMT"
ngx.say("x")
=== send_headers
>>> GET /send_headers
ngx.header["X-A"] = "1" ngx.say(ngx.send_headers(), ngx.headers_sent)
=== flush
>>> GET /flush
ngx.say("a") ngx.say(ngx.flush(true)) ngx.say(ngx.flush()) ngx.say("b")
=== eof
>>> GET /eof
ngx.say("a") local ok = ngx.eof() local again, message = ngx.eof() local said, why = ngx.say("b")
eof_result = { ok, again, message, said, why }
=== eof_result
>>> GET /eof_result
for i = 1, 5 do ngx.say(eof_result[i]) end
=== eof_then_fail
>>> GET /eof_then_fail
ngx.say("whole") ngx.eof() error("too late")
=== eof_then_exit
>>> GET /eof_then_exit
ngx.say("whole") ngx.eof() ngx.exit(ngx.ERROR)
=== exit_error
>>> GET /exit_error
ngx.header["X-A"] = "b" ngx.exit(ngx.ERROR)
=== exit_error_said
>>> GET /exit_error_said
ngx.say("a") ngx.exit(ngx.ERROR)
=== exit_444
>>> GET /exit_444
ngx.exit(444)
=== exit_444_said
>>> GET /exit_444_said
ngx.say("a") ngx.exit(ngx.HTTP_CLOSE)
=== status_444
>>> GET /status_444
ngx.status = 444 ngx.say("said")
=== resp_headers
>>> GET /resp_headers
ngx.header["X-A"] = "1" ngx.header["X-B"] = { "1", "2" }
local headers = ngx.resp.get_headers()
ngx.say(headers["X-A"], headers.x_a, type(headers["x-b"]), headers["x-b"][2], headers["x-none"])
=== method
>>> GET /method
>>> POST /method
>>> PUT /method x
>>> DELETE /method
>>> OPTIONS /method
>>> PATCH /method x
ngx.say(ngx.req.get_method(), " ", ngx.var.request_method)
=== method_set
>>> GET /method_set
ngx.req.set_method(ngx.HTTP_POST) ngx.say(ngx.req.get_method())
ngx.say(pcall(ngx.req.set_method, 3))
=== args
>>> GET /args?a=1&b=two&a=3&flag&empty=&=none&a%20b=c%20d&p=x+y
>>> GET /args
>>> GET /args?a=%zz&%41=%41
>>> GET /args?a=1;b=2&&c=3&
local args, message = ngx.req.get_uri_args()
local names = {}
for name in pairs(args) do names[#names + 1] = name end
table.sort(names)
for _, name in ipairs(names) do
  local value = args[name]
  if type(value) == "table" then
    local shown = {}
    for i, one in ipairs(value) do shown[i] = tostring(one) end
    value = "{" .. table.concat(shown, ",") .. "}"
  end
  ngx.say(name, " = ", tostring(value), " ", type(value))
end
ngx.say(message)
=== args_limit
>>> GET /args_limit?a=1&b=2&c=3
local args, message = ngx.req.get_uri_args(2) ngx.say(args.a, args.b, args.c, message)
local args, message = ngx.req.get_uri_args(0) ngx.say(args.a, args.b, args.c, message)
=== args_set
>>> GET /args_set?a=1
ngx.req.set_uri_args("b=2&c=3") ngx.say(ngx.var.args, " ", ngx.req.get_uri_args().c, " ", ngx.var.arg_a)
ngx.req.set_uri_args({ d = "x y" }) ngx.say(ngx.var.args)
ngx.req.set_uri_args({ e = { 1, "ä" } }) ngx.say(ngx.var.args)
ngx.req.set_uri_args({ f = true, g = false }) ngx.say(ngx.var.args)
=== args_var_set
>>> GET /args_var_set?a=1
ngx.var.args = "z=26" ngx.say(ngx.var.arg_z, " ", ngx.var.query_string, " ", ngx.var.is_args)
=== uri
>>> GET /uri
>>> GET /uri?a=b
>>> GET /%75ri
ngx.say(ngx.var.uri, " ", ngx.var.request_uri, " ", ngx.var.document_uri)
=== uri_set
>>> GET /uri_set?a=b
ngx.req.set_uri("/other path") ngx.say(ngx.var.uri, " ", ngx.var.request_uri, " ", ngx.var.args)
ngx.say(pcall(ngx.req.set_uri, ""))
=== post_args
>>> POST /post_args a=1&b=two%20words&a=2&c
>>> POST /post_args
ngx.req.read_body()
local args = ngx.req.get_post_args()
ngx.say(type(args.a), " ", args.b, " ", args.c)
=== post_args_unread
>>> POST /post_args_unread a=1
local ok, message = pcall(ngx.req.get_post_args) ngx.say(ok, " ", message)
=== body
>>> POST /body hello body
>>> POST /body
>>> GET /body
ngx.say(ngx.req.get_body_data()) ngx.req.read_body() ngx.say(ngx.req.get_body_data(), " ", ngx.req.get_body_file())
=== body_set
>>> POST /body_set hello
ngx.req.read_body() ngx.req.set_body_data("other") ngx.say(ngx.req.get_body_data(), " ", ngx.var.request_body)
=== body_pieces
>>> POST /body_pieces hello
ngx.req.read_body() ngx.req.init_body(100) ngx.req.append_body("a") ngx.req.append_body("b") ngx.req.finish_body()
ngx.say(ngx.req.get_body_data())
=== body_discard
>>> POST /body_discard hello
ngx.req.discard_body() ngx.say("gone")
=== headers
>>> GET /headers [X-One: 1] [X-Two: a] [X-Two: b] [User-Agent: test]
local headers = ngx.req.get_headers()
ngx.say(headers["x-one"], headers.x_one, headers["X-ONE"], type(headers["x-two"]), headers["x-two"][2], headers.user_agent, headers["x-none"])
=== headers_limit
>>> GET /headers_limit [X-One: 1] [X-Two: 2]
local headers, message = ngx.req.get_headers(1) local n = 0 for _ in pairs(headers) do n = n + 1 end ngx.say(n, " ", message)
=== headers_set
>>> GET /headers_set [X-One: 1]
ngx.req.set_header("X-One", "2") ngx.req.set_header("X-New", { "a", "b" }) ngx.req.set_header("X-Number", 7)
local headers = ngx.req.get_headers()
ngx.say(headers["x-one"], " ", #headers["x-new"], " ", headers["x-number"], " ", ngx.var.http_x_one)
ngx.req.clear_header("X-One") ngx.say(ngx.req.get_headers()["x-one"], " ", ngx.var.http_x_one)
ngx.req.set_header("X-Number", nil) ngx.say(ngx.req.get_headers()["x-number"])
=== http_version
>>> GET /http_version
ngx.say(ngx.req.http_version(), " ", ngx.var.server_protocol, " ", type(ngx.req.start_time()), " ", ngx.req.is_internal())
=== var_request
>>> GET /var_request?x=1&y=2 [Cookie: a=1; session=abc; b=2] [X-Test: t] [Content-Type: text/x]
ngx.say(ngx.var.arg_x, ngx.var.arg_y, ngx.var.arg_z, " ", ngx.var.ARG_X)
ngx.say(ngx.var.cookie_session, ngx.var.cookie_a, ngx.var.cookie_none, " ", ngx.var.http_x_test, ngx.var.http_none)
ngx.say(ngx.var.request, " ", ngx.var.args, " ", ngx.var.query_string, " ", ngx.var.is_args)
ngx.say(ngx.var.remote_addr, " ", ngx.var.server_addr, " ", ngx.var.scheme, " ", ngx.var.host, " ", ngx.var.content_type)
ngx.say(type(ngx.var.remote_port), " ", ngx.var.https, " ", #ngx.var.msec > 12, " ", ngx.var.pid == tostring(ngx.worker.pid()))
=== var_cookies
>>> GET /var_cookies [Cookie:  a = 1 ; B=2  ;c;d=;=e; f=g=h ;]
ngx.say(ngx.var.cookie_a, ",", ngx.var.cookie_b, ",", ngx.var.cookie_d, ",", ngx.var.cookie_f, ",")
=== var_body
>>> POST /var_body abc
ngx.say(ngx.var.content_length, " ", ngx.var.request_body) ngx.req.read_body() ngx.say(ngx.var.request_body)
=== var_unknown
>>> GET /var_unknown
ngx.say(ngx.var.nothing_of_the_kind, " ", ngx.var[1]) ngx.say(pcall(function() ngx.var.uri = "x" end))
=== var_own
>>> GET /var_own
-- variables: own,other
ngx.var.own = "mine" ngx.var.other = 7 ngx.say(ngx.var.own, " ", ngx.var.other, " ", type(ngx.var.other))
ngx.var.own = nil ngx.say(ngx.var.own)
=== ctx
>>> GET /ctx
ngx.ctx.a = 1 ngx.ctx.b = { "x" } ngx.say(ngx.ctx.a, ngx.ctx.b[1], ngx.ctx.none) ngx.ctx = { c = 2 } ngx.say(ngx.ctx.a, ngx.ctx.c)
=== phase
>>> GET /phase
ngx.say(ngx.get_phase(), " ", ngx.is_subrequest)
=== constants
>>> GET /constants
local names = {}
for name, value in pairs(ngx) do if type(value) == "number" then names[#names + 1] = name .. "=" .. value end end
table.sort(names) ngx.say(table.concat(names, "\n"))
=== null
>>> GET /null
ngx.say(type(ngx.null), " ", tostring(ngx.null), " ", ngx.null == ngx.null, " ", ngx.null == nil)
=== log_levels
>>> GET /log_levels
ngx.log(ngx.ERR, "a", 1, true, nil) ngx.log(ngx.DEBUG, "b") print("c", 1) local ok, message = pcall(ngx.log, 99, "x") ngx.say(ok, message:match "%(.*")
=== worker
>>> GET /worker
ngx.say(type(ngx.worker.pid()), " ", ngx.worker.exiting())
=== config
>>> GET /config
ngx.say(ngx.config.subsystem, " ", type(ngx.config.debug), " ", type(ngx.config.nginx_version), " ", type(ngx.config.ngx_lua_version), " ", type(ngx.config.prefix()))
=== globals
>>> GET /globals
counter_of_globals = nothing_yet ngx.say(counter_of_globals, " ", type(_G), " ", _VERSION)
=== part_answer
local answer = { number = 42 }
function answer.greet(name) return "hello, " .. name end
return answer
=== require
>>> GET /require
local answer = require "part_answer" ngx.say(answer.number, " ", answer.greet("you"), " ", require "part_answer" == answer)
=== require_none
>>> GET /require_none
ngx.say((pcall(require, "no.such.module")))
=== coroutines
>>> GET /coroutines
local co = coroutine.create(function(a) local b = coroutine.yield(a + 1) return b * 2 end)
ngx.say(coroutine.resume(co, 1)) ngx.say(coroutine.resume(co, 10)) ngx.say(coroutine.status(co))
local gen = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end)
ngx.say(gen(), gen(), gen())
ngx.say(coroutine.resume(co))
