-- Handlers that wait, in the form of cases.lua.

=== sleep
>>> GET /sleep
ngx.say("a") ngx.sleep(0.01) ngx.say("b") ngx.sleep(0) ngx.say(ngx.var.uri, ngx.get_phase())
=== sleep_bad
>>> GET /sleep_bad
ngx.say((pcall(ngx.sleep, -1)), (pcall(ngx.sleep, "x")))
=== sleep_in_coroutine
>>> GET /sleep_in_coroutine
local co = coroutine.wrap(function() for i = 1, 2 do ngx.sleep(0.005) coroutine.yield(i) end end)
ngx.say(co(), co()) ngx.say(pcall(function() ngx.sleep(0.001) error("x", 0) end))
=== sleep_then_fail
>>> GET /sleep_then_fail
ngx.sleep(0.005) error("late")
=== sleep_then_exit
>>> GET /sleep_then_exit
ngx.sleep(0.005) ngx.exit(403)
=== part_slow_access
ngx.sleep(0.005) ngx.ctx.slept = true
=== sleep_in_access
>>> GET /sleep_in_access
-- access: part_slow_access
ngx.say(ngx.ctx.slept)
=== part_sleepy_filter
local ok, message = pcall(ngx.sleep, 0.001) ngx.header["X-Slept"] = tostring(ok) .. " " .. tostring(message)
=== sleep_in_header_filter
>>> GET /sleep_in_header_filter
-- header_filter: part_sleepy_filter
ngx.say("x")
=== sleep_in_capture
>>> GET /sleep_in_capture
local got = ngx.location.capture("/sleep") ngx.print(got.body, ngx.var.uri)
=== yield_at_top
>>> GET /yield_at_top
ngx.say("a") coroutine.yield() ngx.say("b")
=== threads
>>> GET /threads
local order = {}
local function work(name, time) ngx.sleep(time) order[#order + 1] = name return name, time end
local slow, quick = ngx.thread.spawn(work, "slow", 0.03), ngx.thread.spawn(work, "quick", 0.01)
ngx.say(ngx.thread.wait(slow, quick)) ngx.say(ngx.thread.wait(slow)) ngx.say(table.concat(order, ","), " ", type(slow))
=== thread_fails
>>> GET /thread_fails
local t = ngx.thread.spawn(function() ngx.sleep(0.001) error("broken", 0) end)
local ok, message = ngx.thread.wait(t) ngx.say(ok, " ", message)
=== thread_now
>>> GET /thread_now
ngx.say("a") local t = ngx.thread.spawn(function(x) ngx.say("b", x) return 1, nil, 3 end, 7) ngx.say("c") ngx.say(ngx.thread.wait(t))
=== thread_outlives
>>> GET /thread_outlives
ngx.thread.spawn(function() ngx.sleep(0.01) ngx.say("last") end) ngx.say("first")
=== thread_exits
>>> GET /thread_exits
ngx.thread.spawn(function() ngx.sleep(0.005) ngx.exit(404) end) ngx.sleep(1)
=== thread_kill
>>> GET /thread_kill
local t = ngx.thread.spawn(function() ngx.sleep(5) ngx.say("never") end)
ngx.say(ngx.thread.kill(t)) ngx.say(ngx.thread.kill(t))
local done = ngx.thread.spawn(function() end) ngx.say(ngx.thread.kill(done))
=== thread_yields
>>> GET /thread_yields
local t = ngx.thread.spawn(function() ngx.print("1 ") coroutine.yield() ngx.print("2 ") end)
ngx.print("main ") ngx.thread.wait(t) ngx.say("end")
=== thread_in_thread
>>> GET /thread_in_thread
local outer = ngx.thread.spawn(function()
  local inner = ngx.thread.spawn(function() ngx.sleep(0.005) return "inner" end)
  local ok, result = ngx.thread.wait(inner)
  return result .. " outer"
end)
ngx.say(ngx.thread.wait(outer))
=== capture_in_thread
>>> GET /capture_in_thread
local t = ngx.thread.spawn(function() local inner = ngx.location.capture("/sleep") return inner.status .. inner.body end)
ngx.say("main") local ok, body = ngx.thread.wait(t) ngx.print(body) ngx.say(ngx.var.uri, ngx.header["X-Of-Inner"])
=== meet_a
ngx.header["X-Of-Inner"] = "a" meet_a_here = true ngx.print("a") repeat ngx.sleep(0.005) until meet_b_here
ngx.sleep(0.02) meet_a_here = false ngx.say(ngx.var.uri)
=== meet_b
ngx.header["X-Of-Inner"] = "b" meet_b_here = true ngx.print("b") repeat ngx.sleep(0.005) until meet_a_here
ngx.sleep(0.02) meet_b_here = false ngx.say(ngx.var.uri)
=== meet_multi
>>> GET /meet_multi
local a, b = ngx.location.capture_multi { { "/meet_a" }, { "/meet_b" } }
ngx.say(a.body, b.body, a.header["X-Of-Inner"], b.header["X-Of-Inner"], " ", ngx.header["X-Of-Inner"])
=== meet_threads
>>> GET /meet_threads
local function get(path) local inner = ngx.location.capture(path) return inner.body, inner.header["X-Of-Inner"] end
local a, b = ngx.thread.spawn(get, "/meet_a"), ngx.thread.spawn(get, "/meet_b")
ngx.say("main") ngx.say(ngx.thread.wait(a)) ngx.say(ngx.thread.wait(b))
=== meet_main
>>> GET /meet_main
local t = ngx.thread.spawn(function() return ngx.location.capture("/meet_a").body end)
ngx.print(ngx.location.capture("/meet_b").body) ngx.say(ngx.thread.wait(t))
=== meet_deep
>>> GET /meet_deep
local a, b = ngx.location.capture_multi { { "/meet_multi" }, { "/sleep" } } ngx.print(a.body, b.body)
=== meet_multi_in_thread
>>> GET /meet_multi_in_thread
local t = ngx.thread.spawn(function()
  local a, b = ngx.location.capture_multi { { "/meet_a" }, { "/meet_b" } }
  ngx.say("met") return a.body .. b.body
end)
ngx.say("main") ngx.say(ngx.thread.wait(t))
=== capture_threads_in_thread
>>> GET /capture_threads_in_thread
local t = ngx.thread.spawn(function() return ngx.location.capture("/threads").body end) ngx.sleep(0.001) ngx.say(ngx.thread.wait(t))
=== slow_exit
ngx.sleep(0.005) ngx.exit(404)
=== slow_error
ngx.sleep(0.005) error("inner")
=== capture_ends_in_thread
>>> GET /capture_ends_in_thread
local function status(path) return ngx.location.capture(path).status end
local a, b = ngx.thread.spawn(status, "/slow_exit"), ngx.thread.spawn(status, "/slow_error")
ngx.say(ngx.thread.wait(a)) ngx.say(ngx.thread.wait(b))
=== kill_with_capture
>>> GET /kill_with_capture
local t = ngx.thread.spawn(function() return ngx.location.capture("/sleep").body end)
ngx.say(ngx.thread.kill(t)) ngx.say(ngx.thread.wait(t))
=== capture_beside_thread
>>> GET /capture_beside_thread
local order = {}
ngx.thread.spawn(function() for i = 1, 3 do order[#order + 1] = i ngx.sleep(0.002) end end)
ngx.location.capture("/long_sleep") ngx.say(table.concat(order, ","))
=== long_sleep
ngx.sleep(0.05)
=== capture_many
>>> GET /capture_many
local requests = {}
for i = 1, 30 do requests[i] = { "/slow_echo", { args = { i = i } } } end
local bodies = {}
for i, inner in ipairs { ngx.location.capture_multi(requests) } do bodies[i] = inner.body end
ngx.say(table.concat(bodies, " "))
=== slow_echo
ngx.sleep(0.01 - ngx.var.arg_i / 5000) ngx.print(ngx.var.arg_i)
