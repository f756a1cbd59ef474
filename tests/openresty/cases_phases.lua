-- The phases around a handler, and requests within requests. Of the same form as cases.lua.

=== part_auth
if ngx.var.arg_token ~= "sesame" then return ngx.exit(ngx.HTTP_FORBIDDEN) end
ngx.ctx.user = "ali"
=== access
>>> GET /access
>>> GET /access?token=sesame
>>> GET /access?token=wrong
-- access: part_auth
ngx.say("hello, ", ngx.ctx.user, " ", ngx.get_phase())
=== part_access_ok
ngx.ctx.seen = ngx.get_phase() ngx.exit(ngx.OK)
=== access_ok
>>> GET /access_ok
-- access: part_access_ok
ngx.say(ngx.ctx.seen)
=== part_access_closes
ngx.exit(444)
=== access_closes
>>> GET /access_closes
-- access: part_access_closes
ngx.say("never")
=== part_access_says
ngx.say("from access") ngx.exit(200)
=== access_says
>>> GET /access_says
-- access: part_access_says
ngx.say("never")
=== part_access_fails
error("no")
=== access_fails
>>> GET /access_fails
-- access: part_access_fails
ngx.say("never")
=== part_denies
ngx.status = 403 ngx.say("denied")
=== access_denies
>>> GET /access_denies
-- access: part_denies
ngx.say("secret")
=== rewrite_denies
>>> GET /rewrite_denies
-- rewrite: part_denies
-- access: part_auth
ngx.say("secret")
=== part_denies_exit
ngx.status = 403 ngx.say("denied") ngx.exit(ngx.OK)
=== access_denies_exit
>>> GET /access_denies_exit
-- access: part_denies_exit
ngx.say("secret")
=== rewrite_denies_exit
>>> GET /rewrite_denies_exit
-- rewrite: part_denies_exit
ngx.say("secret")
=== part_rewrite
ngx.req.set_uri_args("a=rewritten") ngx.req.set_header("X-Seen", ngx.get_phase()) ngx.ctx.from = "rewrite"
=== rewrite
>>> GET /rewrite?a=1
-- rewrite: part_rewrite
ngx.say(ngx.var.arg_a, " ", ngx.var.http_x_seen, " ", ngx.ctx.from)
=== part_header_filter
ngx.header["X-Filtered"] = ngx.get_phase() ngx.header["X-Own"] = nil ngx.header.content_length = nil
=== header_filter
>>> GET /header_filter
-- header_filter: part_header_filter
ngx.header["X-Own"] = "1" ngx.say("body")
=== part_header_status
ngx.status = 299
=== header_filter_status
>>> GET /header_filter_status
-- header_filter: part_header_status
ngx.say("body")
=== part_body_filter
local text, is_last = ngx.arg[1], ngx.arg[2]
ngx.arg[1] = string.upper(text) .. (is_last and "." or "")
=== body_filter
>>> GET /body_filter
-- body_filter: part_body_filter
ngx.say("a") ngx.print("b", "c")
=== part_body_drop
ngx.arg[1] = nil
=== body_filter_drop
>>> GET /body_filter_drop
-- body_filter: part_body_drop
ngx.say("a")
=== part_body_cuts
ngx.ctx.pieces = (ngx.ctx.pieces or 0) + 1
ngx.arg[1] = ngx.arg[1] .. ngx.ctx.pieces if ngx.ctx.pieces == 2 then ngx.arg[2] = true end
=== body_filter_cuts
>>> GET /body_filter_cuts
-- body_filter: part_body_cuts
ngx.print("a") ngx.print("b") ngx.print("c") ngx.print("d")
=== part_header_seen
ngx.header["X-Seen"] = tostring(ngx.headers_sent)
=== header_filter_seen
>>> GET /header_filter_seen
-- header_filter: part_header_seen
ngx.say(ngx.headers_sent, ngx.get_phase())
=== part_no_say
ngx.ctx.ok, ngx.ctx.message = pcall(ngx.say, "x") ngx.header["X-Said"] = tostring(ngx.ctx.ok) .. " " .. tostring(ngx.ctx.message)
=== say_in_header_filter
>>> GET /say_in_header_filter
-- header_filter: part_no_say
ngx.say("a")
=== part_log
logged_of_requests = (logged_of_requests or 0) + 1
=== log_phase
>>> GET /log_phase
-- log: part_log
ngx.say("x")
=== log_seen
>>> GET /log_seen
ngx.say(logged_of_requests)
=== exec
>>> GET /exec?x=1
ngx.ctx.lost = true return ngx.exec("/exec_target", "y=2")
=== exec_target
>>> GET /exec_target
ngx.say(ngx.var.uri, " ", ngx.var.args, " ", ngx.var.request_uri, " ", ngx.ctx.lost, " ", ngx.req.is_internal(), " ", ngx.var.arg_y)
=== exec_table
>>> GET /exec_table
return ngx.exec("/exec_target", { y = "a b" })
=== exec_query
>>> GET /exec_query?z=1
return ngx.exec("/exec_target?y=9")
=== exec_none
>>> GET /exec_none
return ngx.exec("/nowhere/at/all")
=== exec_late
>>> GET /exec_late
ngx.say("a") ngx.say(pcall(ngx.exec, "/exec_target"))
=== capture
>>> GET /capture
local got = ngx.location.capture("/capture_target?a=1")
ngx.say(got.status, " ", got.body, got.truncated, " ", got.header["X-Inner"])
=== capture_target
>>> GET /capture_target
ngx.header["X-Inner"] = "in" ngx.status = 202
ngx.req.read_body()
ngx.print(ngx.req.get_method(), " ", ngx.var.args, " ", ngx.is_subrequest, " ", ngx.req.get_body_data(), " ", ngx.var.uri)
=== capture_post
>>> GET /capture_post
local got = ngx.location.capture("/capture_target", { method = ngx.HTTP_POST, body = "sent", args = { b = "2" } })
ngx.say(got.status, " ", got.body)
=== capture_headers
>>> GET /capture_headers [X-One: 1]
local got = ngx.location.capture("/sets_header") ngx.say(got.body, ngx.var.http_x_one, ngx.var.http_x_two)
=== sets_header
ngx.req.set_header("X-One", "2") ngx.req.set_header("X-Two", "3") ngx.print(ngx.var.http_x_one)
=== capture_404
>>> GET /capture_404
local got = ngx.location.capture("/nowhere/at/all") ngx.say(got.status)
=== capture_error
>>> GET /capture_error
local got = ngx.location.capture("/error_plain") ngx.say(got.status)
=== capture_ctx
>>> GET /capture_ctx
local ctx = {}
local got = ngx.location.capture("/ctx_setter", { ctx = ctx }) ngx.say(ctx.set, " ", ngx.ctx.set)
=== ctx_setter
>>> GET /ctx_setter
ngx.ctx.set = "yes" ngx.say("ok")
=== capture_multi
>>> GET /capture_multi
local a, b = ngx.location.capture_multi { { "/say" }, { "/capture_target", { args = "q=2" } } }
ngx.say(a.status, a.body, b.status, b.body)
=== raw_header
>>> GET /raw_header?a=1 [X-One: 1]
local raw = ngx.req.raw_header() ngx.say(string.match(raw, "^[^\r]+"), " ", string.sub(raw, -4) == "\r\n\r\n")
ngx.say(string.find(string.lower(ngx.req.raw_header(true)), "x-one: 1", 1, true) ~= nil)
=== length_of_set_body
>>> POST /length_of_set_body abc
ngx.req.read_body() ngx.req.set_body_data("longer body")
ngx.say(ngx.var.content_length, " ", ngx.req.get_headers()["content-length"], " ", ngx.var.http_content_length)
=== length_of_built_body
>>> POST /length_of_built_body abc
ngx.req.read_body() ngx.req.init_body() ngx.req.append_body("12345") ngx.req.append_body("67") ngx.req.finish_body()
ngx.say(ngx.var.content_length, " ", ngx.req.get_body_data())
=== length_in_capture
>>> POST /length_in_capture abc
ngx.req.read_body()
local got = ngx.location.capture("/tells_length", { method = ngx.HTTP_POST, body = "longer body" }) ngx.print(got.body)
got = ngx.location.capture("/tells_length", { method = ngx.HTTP_POST }) ngx.print(got.body)
got = ngx.location.capture("/tells_length") ngx.print(got.body)
=== tells_length
>>> POST /tells_length abcd
ngx.say(ngx.var.content_length, " ", ngx.req.get_headers()["content-length"], " ", ngx.var.http_content_length)
=== length_after_discard
>>> POST /length_after_discard abcd
ngx.req.discard_body() ngx.say(ngx.var.content_length)
=== escaped_slash
>>> GET /escaped_slash
local got = ngx.location.capture("/tells%5fpath") ngx.print(got.status, " ", got.body)
got = ngx.location.capture("/tells_path%3fa=1") ngx.say(got.status)
=== tells_path
>>> GET /tells%5Fpath?a=%2F
ngx.say(ngx.var.uri, " ", ngx.var.request_uri, " ", ngx.var.arg_a)
=== exec_escaped
>>> GET /exec_escaped
return ngx.exec("/tells%5fpath")
=== part_page_headers
ngx.header["X-Filtered"] = ngx.status .. ngx.get_phase() ngx.header.content_length = nil ngx.header.content_type = "text/plain"
=== part_page_pieces
ngx.ctx.pieces = (ngx.ctx.pieces or 0) + 1
local is_page = ngx.arg[1]:find("^<html>") or ngx.arg[1]:find("^{") ~= nil
if ngx.arg[2] then ngx.arg[1] = "(" .. ngx.ctx.pieces .. tostring(is_page and true) .. tostring(ngx.ctx.mine) .. ")" end
=== page_of_failure
>>> GET /page_of_failure
-- header_filter: part_page_headers
-- body_filter: part_page_pieces
ngx.header["X-Own"] = "1" ngx.ctx.mine = 7 error("no")
=== page_of_failure_in_access
>>> GET /page_of_failure_in_access
-- access: part_access_fails
-- header_filter: part_page_headers
-- body_filter: part_page_pieces
ngx.say("never")
=== page_of_failure_later
>>> GET /page_of_failure_later
-- body_filter: part_page_pieces
-- header_filter: part_page_headers
ngx.header["X-Own"] = "1" ngx.sleep(0.001) error({})
=== page_of_exit
>>> GET /page_of_exit
-- header_filter: part_page_headers
-- body_filter: part_page_pieces
ngx.header["X-Own"] = "1" ngx.ctx.mine = 7 ngx.exit(404)
=== part_page_status
ngx.status = 418
=== page_status
>>> GET /page_status
-- header_filter: part_page_status
error("no")
=== part_page_logged
logged_status = ngx.status
=== page_logged
>>> GET /page_logged
>>> GET /page_logged_status
-- log: part_page_logged
-- header_filter: part_page_headers
-- body_filter: part_page_pieces
error("no")
=== page_logged_status
ngx.say(logged_status)
=== page_captured
>>> GET /page_captured
local inner = ngx.location.capture("/page_of_exit") ngx.say(inner.status, inner.header["X-Filtered"], inner.header["X-Own"], inner.body)
