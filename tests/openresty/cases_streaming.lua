-- Answers that leave while their handler goes on, in the form of cases.lua. Those that wait for the gate are asked for by
-- test_streaming.py, which opens it once the beginning has come.

=== part_record
recorded = ngx.ctx.results
=== recorded
-- Waits, as the client may have its whole answer, above all to a HEAD, before the handler has come to its end.
for _ = 1, 2000 do if recorded then break end ngx.sleep(0.005) end
ngx.say(recorded) recorded = nil
=== open_gate
gate_is_open = true ngx.say("open")
=== flush_results
>>> GET /flush_results
>>> GET /recorded
>>> HEAD /flush_results
>>> GET /recorded
-- log: part_record
local results = {}
local function note(...)
  for i = 1, select("#", ...) do results[#results + 1] = tostring((select(i, ...))) end
  results[#results + 1] = ";"
  ngx.ctx.results = table.concat(results, " ")
end
note(ngx.flush()) note(ngx.flush(true)) note(ngx.say("x")) note(ngx.flush()) note(ngx.flush(true)) ngx.sleep(0.005)
note(ngx.say("y")) note(ngx.flush(true)) note(ngx.eof()) note(ngx.flush()) note(ngx.flush(true)) note(ngx.eof()) note(ngx.say("z"))
=== flush_none
>>> GET /flush_none
ngx.status = 204 ngx.send_headers() ngx.sleep(0.005)
=== flush_within
>>> GET /flush_within
local inner = ngx.location.capture("/flush_inner") ngx.flush(true) ngx.say(inner.status, " ", inner.body) ngx.flush(true)
=== flush_inner
>>> GET /flush_inner
local ok, why = ngx.flush() ngx.print(ok, why) ngx.print(" ", (ngx.flush()), (ngx.flush(true))) ngx.eof() ngx.print("late")
=== flush_in_thread
>>> GET /flush_in_thread
local function work(name) for i = 1, 3 do ngx.say(name, i) ngx.flush(true) end return name end
local a = ngx.thread.spawn(work, "a") ngx.say(select(2, ngx.thread.wait(a)))
ngx.thread.wait(ngx.thread.spawn(work, "b")) ngx.say(ngx.flush(true))
=== flush_in_coroutine
>>> GET /flush_in_coroutine
local co = coroutine.wrap(function() for i = 1, 3 do ngx.say(i) ngx.flush(true) coroutine.yield(i) end end)
ngx.say(co(), co(), co())
=== flush_many
>>> GET /flush_many
for i = 1, 300 do ngx.print(("%04d"):format(i):rep(300)) ngx.flush(true) end
=== flush_length
>>> GET /flush_length
ngx.header.content_length = 4 ngx.say("x") ngx.flush(true) ngx.sleep(0.005) ngx.say("y") ngx.say(ngx.flush(true))
=== flush_then_fail
>>> GET /flush_then_fail
ngx.say("x") ngx.flush(true) ngx.sleep(0.005) error("late")
=== flush_then_exit
>>> GET /flush_then_exit
ngx.say("x") ngx.flush(true) ngx.sleep(0.005) ngx.exit(500)
=== flush_then_close
>>> GET /flush_then_close
ngx.say("x") ngx.flush(true) ngx.sleep(0.005) ngx.exit(444)
=== flush_then_exec
>>> GET /flush_then_exec
ngx.say("x") ngx.flush(true) ngx.say(pcall(ngx.exec, "/recorded")) ngx.say(pcall(ngx.redirect, "/recorded"))
=== flush_then_header
>>> GET /flush_then_header
ngx.header["X-Before"] = "1" ngx.say("x") ngx.flush(true) ngx.header["X-After"] = "1" ngx.status = 500
ngx.say(ngx.header["X-Before"], ngx.status, ngx.headers_sent)
=== part_pieces
ngx.ctx.results = (ngx.ctx.results or "") .. "[" .. ngx.arg[1] .. "|" .. tostring(ngx.arg[2]) .. "]"
if ngx.arg[1] ~= "" then ngx.arg[1] = ngx.arg[1]:upper() end
=== flush_filtered
>>> GET /flush_filtered
>>> GET /recorded
-- body_filter: part_pieces
-- log: part_record
ngx.print("a") ngx.flush(true) ngx.print("b") ngx.print("") ngx.flush() ngx.sleep(0.005) ngx.print("c")
=== part_flush_header
ngx.header["X-Filtered"] = "1" ngx.header.content_length = nil
=== flush_header_filtered
>>> GET /flush_header_filtered
-- header_filter: part_flush_header
ngx.header.content_length = 2 ngx.say("x") ngx.flush(true) ngx.say("y")
=== part_flush_access
ngx.say("early") ngx.flush(true) ngx.sleep(0.005) ngx.say("enough") ngx.exit(ngx.HTTP_OK)
=== flush_in_access
>>> GET /flush_in_access
-- access: part_flush_access
ngx.say("never")
=== gated_flush
ngx.say("first") ngx.flush()
repeat ngx.sleep(0.005) until gate_is_open
gate_is_open = false ngx.say("last")
=== gated_flush_wait
ngx.say("first") ngx.flush(true)
repeat ngx.sleep(0.005) until gate_is_open
gate_is_open = false ngx.say("last") ngx.say(ngx.flush(true))
=== gated_filtered
-- body_filter: part_pieces
-- log: part_record
ngx.say("first") ngx.flush(true)
repeat ngx.sleep(0.005) until gate_is_open
gate_is_open = false ngx.say("last")
=== gated_large
ngx.print(("first "):rep(1000))
repeat ngx.sleep(0.005) until gate_is_open
gate_is_open = false ngx.say("last")
=== gated_length
ngx.header.content_length = 11 ngx.say("first") ngx.flush(true)
repeat ngx.sleep(0.005) until gate_is_open
gate_is_open = false ngx.say("last")
=== gated_thread
ngx.thread.spawn(function()
  repeat ngx.sleep(0.005) until gate_is_open
  gate_is_open = false ngx.say("last")
end)
ngx.say("first") ngx.flush(true)
=== gated_fail
ngx.say("first") ngx.flush(true)
repeat ngx.sleep(0.005) until gate_is_open
gate_is_open = false error("after the gate")
=== gated_eof
-- log: part_record
ngx.say("first") ngx.eof()
repeat ngx.sleep(0.005) until gate_is_open
gate_is_open = false ngx.ctx.results = "went on"
