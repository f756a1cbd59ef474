-- Timers, in the form of cases.lua. A handler waits until its timers have told what they have seen.

=== timer
>>> GET /timer
local seen
ngx.say(ngx.timer.at(0, function(premature, ...) seen = { premature, select("#", ...), ... } end, "a", nil, 3))
repeat ngx.sleep(0.002) until seen
ngx.say(seen[1], " ", seen[2], " ", seen[3], " ", seen[4], " ", seen[5])
=== timer_where
>>> GET /timer_where
ngx.ctx.mine = 1
local seen
ngx.timer.at(0.005, function() seen = { ngx.get_phase(), ngx.ctx.mine, ngx.worker.exiting() } ngx.ctx.mine = 2 end)
repeat ngx.sleep(0.002) until seen
ngx.say(seen[1], " ", seen[2], " ", seen[3], " ", ngx.ctx.mine, " ", ngx.get_phase())
=== timer_order
>>> GET /timer_order
local order = {}
for i, delay in ipairs { 0.03, 0.01, 0.02 } do ngx.timer.at(delay, function() order[#order + 1] = i end) end
repeat ngx.sleep(0.002) until #order == 3
ngx.say(table.concat(order, " "))
=== timer_arguments
>>> GET /timer_arguments
local function said(...) local ok, message = pcall(...) ngx.say(ok, " ", (string.gsub(tostring(message), "'%?'", "'at'"))) end
said(ngx.timer.at) said(ngx.timer.at, 1) said(ngx.timer.at, "x", function() end) said(ngx.timer.at, {}, function() end)
said(ngx.timer.at, 1, math.floor) said(ngx.timer.at, 1, "x") said(ngx.timer.every, 1)
said(ngx.timer.every, 0, function() end) said(ngx.timer.every, 0.0001, function() end)
said(ngx.timer.at, "0.001", function() end)
=== timer_refused
>>> GET /timer_refused
local seen = {}
local names = { "say", "print", "send_headers" }
ngx.timer.at(0, function()
  for i, name in ipairs(names) do seen[i] = select(2, pcall(ngx[name], "x")) end
  for _, code in ipairs {
    "ngx.flush()", "ngx.eof()", "ngx.redirect('/x')", "ngx.exec('/x')", "ngx.location.capture('/x')", "ngx.req.read_body()",
  } do seen[#seen + 1] = select(2, pcall(loadstring(code, "=code"))) end
  for _, code in ipairs {
    "return ngx.status", "ngx.status = 3", "return ngx.header.a", "ngx.header.a = 1", "return ngx.resp.get_headers()",
    "return ngx.req.get_method()", "return ngx.req.get_uri_args()", "return ngx.req.get_headers()",
    "return ngx.var.uri", "ngx.var.x = 1", "return ngx.headers_sent", "return ngx.arg[1]", "ngx.req.set_uri('/x')",
    "ngx.req.set_header('a', 1)", "return ngx.req.get_body_data()", "return ngx.req.http_version()",
  } do seen[#seen + 1] = tostring((pcall(loadstring(code)))) end
  seen.done = true
end)
repeat ngx.sleep(0.002) until seen.done
ngx.say(table.concat(seen, "\n"))
=== timer_waits
>>> GET /timer_waits
local seen = {}
ngx.timer.at(0, function()
  seen[#seen + 1] = "begun"
  local t = ngx.thread.spawn(function() ngx.sleep(0.01) seen[#seen + 1] = "thread" return "joined" end)
  ngx.sleep(0.002)
  local _, what = ngx.thread.wait(t)
  seen[#seen + 1] = what
end)
repeat ngx.sleep(0.002) until #seen == 3
ngx.say(table.concat(seen, " "))
=== timer_thread_outlives
>>> GET /timer_thread_outlives
local seen
ngx.timer.at(0, function() ngx.thread.spawn(function() ngx.sleep(0.005) seen = "last" end) end)
repeat ngx.sleep(0.002) until seen
ngx.say(seen)
=== timer_exits
>>> GET /timer_exits
local seen = {}
ngx.timer.at(0, function() seen[1] = "a" ngx.exit(ngx.OK) seen[2] = "never" end)
ngx.timer.at(0.005, function() seen.done = true end)
repeat ngx.sleep(0.002) until seen.done
ngx.say(#seen)
=== timer_fails
>>> GET /timer_fails
local seen
ngx.timer.at(0, function() error("broken") end)
ngx.timer.at(0, function() error({}) end)
ngx.timer.at(0.005, function() seen = ngx.timer.running_count() end)
repeat ngx.sleep(0.002) until seen
ngx.say(seen)
=== timer_in_timer
>>> GET /timer_in_timer
local seen
ngx.timer.at(0, function(_, n) ngx.timer.at(0, function(_, m) seen = m + 1 end, n + 1) end, 1)
repeat ngx.sleep(0.002) until seen
ngx.say(seen)
=== timer_outlives_its_request
>>> GET /timer_outlives_its_request
>>> GET /timer_seen
outlived = nil
ngx.timer.at(0.01, function(_, uri) outlived = uri end, ngx.var.uri)
=== timer_seen
repeat ngx.sleep(0.002) until outlived
ngx.say(outlived)
=== timer_counts
>>> GET /timer_counts
local before = ngx.timer.pending_count()
local go, seen
ngx.timer.at(0, function() seen = { ngx.timer.running_count(), ngx.timer.pending_count() - before } repeat ngx.sleep(0.002) until go end)
ngx.say(ngx.timer.pending_count() - before)
repeat ngx.sleep(0.002) until seen
ngx.say(seen[1], " ", seen[2], " ", ngx.timer.running_count(), " ", ngx.timer.pending_count() - before)
go = true
repeat ngx.sleep(0.002) until ngx.timer.running_count() == 0
ngx.say "done"
=== timer_before
>>> GET /timer_before
local seen
ngx.say(ngx.timer.at(-1, function(premature) seen = { premature } end)) repeat ngx.sleep(0.002) until seen ngx.say(seen[1])
=== part_timer_of_log
ngx.timer.at(0, function(_, status) logged_by_timer = status end, ngx.status)
=== timer_of_log
>>> GET /timer_of_log
>>> GET /timer_of_log_seen
-- log: part_timer_of_log
ngx.status = 201 ngx.say("x")
=== timer_of_log_seen
repeat ngx.sleep(0.002) until logged_by_timer
ngx.say(logged_by_timer)
=== timer_of_worker
-- phase: init_worker
repeated, begun_by_worker = 0, nil
ngx.timer.at(0, function() begun_by_worker = ngx.get_phase() end)
ngx.timer.every(0.004, function(premature) if not premature then repeated = repeated + 1 end end)
=== timer_every
>>> GET /timer_every
local before = repeated
repeat ngx.sleep(0.002) until repeated > before + 2
ngx.say(begun_by_worker)
