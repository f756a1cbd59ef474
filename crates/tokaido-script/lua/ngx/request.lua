-- The path of a request through its phases, in a coroutine. `ngx.exit` ends a phase from wherever it is called: it yields,
-- nothing resumes it, and what follows the phase runs in another coroutine.

local core = ...

local error, xpcall, type, pairs, setmetatable = error, xpcall, type, pairs, setmetatable
local rawequal, rawset, pcall = rawequal, rawset, pcall
local create, resume, yield = coroutine.create, coroutine.resume, coroutine.yield
local native = core.native
local context, reply, fail, ffi_string = native.context, native.reply, native.fail, native.string
local response_sent, response_header = native.response_sent, native.response_header
local response_nest, response_unnest = native.response_nest, native.response_unnest
local response_select, response_forget = native.response_select, native.response_forget

-- Sets what is running: a request, or a timer, which has no request.
function core.enter(running)
  core.running = running
  core.request = not running.is_timer and running or nil
end

-- The coroutines that no handler may resume.
local own = setmetatable({}, { __mode = "k" })

-- What a coroutine yields first: the end of its phase, an uncaught error, `ngx.exit`, or that it waits, with the time
-- in ms at which it goes on and whether it waits for more than that.
local FINISHED, FAILED, EXIT, WAIT = {}, {}, {}, {}
local SIGNALS = { [FINISHED] = true, [FAILED] = true, [EXIT] = true, [WAIT] = true }
core.EXIT, core.WAIT, core.own_threads = EXIT, WAIT, own

-- Runs one request or phase after another, so that the next one needs no new coroutine.
local function loop(chunk)
  while true do
    local ok, failure = xpcall(chunk, core.keep_error)
    if ok then chunk = yield(FINISHED) else chunk = yield(FAILED, failure) end
  end
end

local idle, idle_count = {}, 0

local bounded_resume = core.bounded.coroutine.resume

-- How a phase ended: nil, or the status or `ngx.exec` target that ended it early.
local function left(ok, signal, value)
  if signal == FINISHED then return nil end
  if ok and signal == EXIT then return value end
  error(not ok and signal or value, 0)
end

-- Resumes a coroutine until it yields a signal; its other yields are for nobody.
local function resume_to_signal(resume_one, thread, ok, signal, value, polls)
  while ok and not SIGNALS[signal] do ok, signal, value, polls = resume_one(thread) end
  return ok, signal, value, polls
end

-- Resumes a phase until its end; whenever it waits, the request waits with it.
local function resume_to_end(resume_one, thread, ...)
  local ok, signal, value, polls = resume_to_signal(resume_one, thread, ...)
  while signal == WAIT do
    yield(WAIT, value, polls)
    ok, signal, value, polls = resume_to_signal(resume_one, thread, resume_one(thread))
  end
  return ok, signal, value
end

local function take_thread()
  if idle_count == 0 then
    local thread = create(loop)
    own[thread] = true
    return thread
  end
  local thread = idle[idle_count]
  idle[idle_count], idle_count = nil, idle_count - 1
  return thread
end

local function give_back(thread)
  idle_count = idle_count + 1
  idle[idle_count] = thread
end

-- Runs a chunk in a coroutine of its own; gives what ended it early. Errors pass through.
local function run(chunk)
  if core.running.outer then
    -- Inside other coroutines, whose depth is counted.
    local thread = create(loop)
    own[thread] = true
    return left(resume_to_end(bounded_resume, thread, bounded_resume(thread, chunk)))
  end
  local thread = take_thread()
  local ok, signal, value, polls = resume(thread, chunk)
  if signal ~= FINISHED then ok, signal, value = resume_to_end(resume, thread, ok, signal, value, polls) end
  if signal == FINISHED then
    give_back(thread)
    return nil
  end
  return left(ok, signal, value)
end

core.run_chunk = run

-- Ends the running phase.
function core.leave(value)
  yield(EXIT, value)
end

-- Runs a filter's file in between; gives what ended it early.
function core.run_filter(request, phase, chunk)
  local before = request.phase
  request.phase = phase
  local ok, value = pcall(run, chunk)
  request.phase = before
  if not ok then
    request.has_failing_filter = true
    error(value, 0)
  end
  return value
end

-- Begins to send; from here on the headers can no longer change.
local function send_headers(request)
  if request.status == 0 then request.status = 200 end
  if not request.is_typed and response_header(context, "content-type", 12, "text/plain", 10, 0) ~= 1 then
    fail(3)
  end
  local filter = request.handler.header_filter
  if filter then
    local status = core.run_filter(request, "header_filter", filter)
    if type(status) == "number" and status >= 300 then request.status = status end
  end
  local status = request.status
  if not (status >= 200 and status <= 599) then
    error("a status is a number from 200 to 599, this is " .. status, 0)
  end
  if status == 204 then native.response_header_remove(context, "content-type", 12) end
  request.is_sent = true
  if response_sent(context, status) ~= 1 then fail(3) end
  request.is_bodiless = reply.number == 1
end
core.send_headers = send_headers

-- The page that ends a request which no handler has answered.
local REASONS = {
  [301] = "Moved Permanently", [302] = "Found", [303] = "See Other", [304] = "Not Modified",
  [307] = "Temporary Redirect", [308] = "Permanent Redirect", [400] = "Bad Request",
  [401] = "Unauthorized", [402] = "Payment Required", [403] = "Forbidden", [404] = "Not Found",
  [405] = "Method Not Allowed", [406] = "Not Acceptable", [408] = "Request Timeout",
  [409] = "Conflict", [410] = "Gone", [413] = "Content Too Large", [429] = "Too Many Requests",
  [500] = "Internal Server Error", [501] = "Not Implemented", [502] = "Bad Gateway",
  [503] = "Service Unavailable", [504] = "Gateway Timeout",
}

local function send_page(request, status)
  request.status = status
  -- Whoever captured it gets only the status.
  if request.outer then
    request.is_sent, request.is_ended = true, true
    return
  end
  local body = ""
  if status >= 300 and status ~= 304 then
    body = '{"error":{"message":"' .. (REASONS[status] or "status " .. status) .. '"}}\n'
    if response_header(context, "content-type", 12, "application/json", 16, 0) ~= 1 then fail(3) end
  end
  request.is_typed = request.is_typed or status ~= 201
  send_headers(request)
  if body ~= "" then core.send_whole(request, body) end
end

-- Ends a request whose client gets no response, unless that is complete already.
local function drop(request)
  if request.is_ended then return end
  request.is_dropped = true
  if native.response_drop(context) ~= 1 then fail(3) end
end

-- Handles a phase that `ngx.exit` has ended; tells whether the request is over.
local function settle(request, status)
  if (status == -1 or status == 444) and not request.outer then
    if status == 444 then request.status = 444 end
    drop(request)
    return true
  end
  if status >= 300 or status == 201 or status == 204 then
    if not request.is_sent then send_page(request, status) end
    return true
  end
  if status >= 200 then
    request.status = request.status == 0 and status or request.status
    return true
  end
  if status == -1 and not request.is_sent then
    send_page(request, 500)
    return true
  end
  return request.phase == "content"
end

local PHASE_AFTER = { rewrite = "access", access = "content" }

local EXECS_MAX = 10

local follow

-- Runs the phases from this one up to the content. No loop: the compiler makes one trace of it and the handler.
local function answer(request, phase)
  local chunk = request.handler[phase]
  if not chunk or phase == "access" and request.outer then return answer(request, PHASE_AFTER[phase]) end
  request.phase = phase
  if request.outer then return follow(request, run(chunk)) end
  -- If something ends the phase early, nothing returns here; see `go_on`.
  chunk()
  return follow(request, nil)
end

-- Continues with another handler, as `ngx.exec` says.
local function answer_by(request, target)
  request.execs = (request.execs or 0) + 1
  if request.execs > EXECS_MAX then
    error("ngx.exec has gone from one route to another more than " .. EXECS_MAX .. " times", 0)
  end
  core.change_handler(request, target)
  return answer(request, "rewrite")
end

-- Does what follows the phase that just ran; `value` is what ended it early.
function follow(request, value)
  local phase = request.phase
  if request.lights then
    if value == nil then value = core.finish_lights(request) end
    -- If a light thread ended the phase, it must not stay the running one, and what the others wait for must go.
    core.drop_lights(request)
    core.drop_nested(request)
    request.light = nil
  end
  if type(value) == "table" then return answer_by(request, value) end
  if value ~= nil and settle(request, value) then return end
  -- A response that began in an earlier phase is the response.
  if phase == "content" or request.is_sent then return end
  return answer(request, PHASE_AFTER[phase])
end

local function finish(request)
  if request.is_dropped then return end
  if not request.is_sent then send_headers(request) end
  core.end_body(request)
end

-- Changes nothing of what it follows: if it fails, that is a line in the log.
local function log_phase(request)
  local chunk = request.handler.log
  if not chunk then return end
  request.phase = "log"
  local ok, failure = xpcall(run, core.on_error, chunk)
  if not ok then core.log_failure(failure) end
end

-- Whatever a handler raises goes to the log: unlike in procedures, no status or code in it makes it a response.
local report_of, last_report = core.on_error, nil
function core.on_error(raised)
  -- Raised again, further out.
  if last_report ~= nil and rawequal(raised, last_report) then return raised end
  local report = report_of(raised)
  last_report = { message = report.message, traceback = report.traceback }
  return last_report
end

-- The client's request that another one is a part of.
local function outermost(request)
  while request.outer do request = request.outer end
  return request
end
core.outermost = outermost

-- A failed handler's page passes its filters, like any other. Without filters it is made where the failure is noted.
local function send_failure(request)
  local handler = request.handler
  if request.is_sent or request.has_failing_filter or not (handler.header_filter or handler.body_filter) then return end
  response_select(context, 0)
  core.enter(request)
  local ok, failure = xpcall(send_page, core.on_error, request, 500)
  if not ok then
    core.log_failure(failure)
  elseif native.response_tells_failure(context) ~= 1 then
    fail(3)
  end
end

local function fail_running(failure)
  local request, report = core.running, core.on_error(failure)
  outermost(request).is_over = true
  if request.is_timer then error(report, 0) end
  send_failure(outermost(request))
  if not request.is_sent then request.status = 500 end
  if request.phase ~= "log" then log_phase(request) end
  last_report = report
  error(report, 0)
end

-- The fields of a plain request. A request that gets any other field is no longer plain.
local request_meta = {
  __newindex = function(request, name, value)
    request.is_plain = false
    rawset(request, name, value)
  end,
}

-- The table of a finished plain request: the next request reuses it, which avoids garbage.
local spare

local function begin(handler)
  local request = spare
  if not request then
    return setmetatable({
      handler = handler, phase = "content", status = 0, is_body_read = false, is_sent = false, is_typed = false,
      is_bodiless = false, is_over = false, is_plain = true,
    }, request_meta)
  end
  spare = nil
  request.handler, request.phase, request.status, request.is_body_read = handler, "content", 0, false
  request.is_sent, request.is_typed, request.is_bodiless, request.is_over = false, false, false, false
  return request
end

-- The table of a request is kept somewhere, so no other request may reuse it.
function core.keep(request) request.is_plain = false end

-- A file is run for each request and makes its functions anew. LuaJIT compiles what it sees for that one function, until
-- it has seen several with the same code: from then on it compiles for all of them. What it compiled before is dropped,
-- since every later function would leave such code at once, and be compiled after it, again and again.
local RUNS_OF_ONE = 4
local flush = core.libraries.jit.flush
local function forget_first_functions(handler)
  for _, part in pairs(handler) do
    if type(part) == "function" then flush(part, true) end
  end
end

local function end_request(request)
  finish(request)
  log_phase(request)
  request.is_over = true
  if request.is_plain then spare = request end
end

-- Makes the parts of a handler the function of a procedure.
function core.handler(handler)
  core.add_route(handler)
  local runs = 0
  return function()
    if runs < RUNS_OF_ONE then
      runs = runs + 1
      if runs == RUNS_OF_ONE then forget_first_functions(handler) end
    end
    local request = begin(handler)
    core.running, core.request = request, request
    answer(request, "rewrite")
    end_request(request)
  end
end

-- Requests and timers that wait, by the slots that they are woken by.
local waiting = {}
local wait = native.wait

local is_cut_off = false

-- What follows a phase that was ended early, as a separate function: code that makes a function is not compiled.
local function following(request, value)
  return function()
    follow(request, value)
    end_request(request)
  end
end

local function go_on(thread, ok, signal, value)
  if signal ~= FINISHED then ok, signal, value = resume_to_signal(resume, thread, ok, signal, value) end
  if signal == EXIT then
    -- The coroutine that has yielded is left to the collector.
    local next_thread = take_thread()
    return go_on(next_thread, resume(next_thread, following(core.running, value)))
  end
  is_cut_off = false
  if signal == FINISHED then
    give_back(thread)
  elseif ok and signal == WAIT then
    if wait(context, value - core.clock_ms()) ~= 1 then fail(3) end
    local slot = reply.number
    waiting[slot] = { thread = thread, running = core.running }
    outermost(core.running).slot = slot
  else
    fail_running(not ok and signal or value)
  end
end

-- Called when the virtual machine continues with something. What ran last may have been cut off by a limit, with the
-- modules that it was loading: it is over.
local function begin_run()
  if is_cut_off and core.running then outermost(core.running).is_over = true end
  is_cut_off = true
  core.forget_loading()
end

-- Everything runs in a coroutine, so that all of it can wait.
function core.start(run, argument)
  begin_run()
  local thread = take_thread()
  go_on(thread, resume(thread, argument and function() return run(argument) end or run))
end
local start = core.start

local runs = core.runs
function core.dispatch(index) start(runs[index]) end

function core.wake(slot)
  local found = waiting[slot]
  if not found then error("the virtual machine of this request is another one by now", 0) end
  waiting[slot] = nil
  begin_run()
  core.enter(found.running)
  local request = outermost(found.running)
  request.slot, request.has_waited = nil, true
  go_on(found.thread, resume(found.thread))
end

function core.abandon(slot)
  local found = waiting[slot]
  if found then outermost(found.running).is_over = true end
  waiting[slot] = nil
end

local function answer_nested(request)
  core.enter(request)
  answer(request, "rewrite")
  finish(request)
end

-- Maximum depth of requests within requests.
local DEPTH_MAX = 20

-- Runs a request within another one, in a coroutine of its own. While it waits, the other one goes on where it can: its
-- light threads, or, if a light thread has made the request, everything else.
local function run_nested(request)
  local outer, thread = request.outer, create(loop)
  own[thread] = true
  local ok, signal, value, polls = bounded_resume(thread, function() answer_nested(request) end)
  while ok and signal == WAIT do
    response_select(context, outer.place or 0)
    core.enter(outer)
    core.wait_until(outer, value, polls)
    response_select(context, request.place)
    core.enter(request)
    ok, signal, value, polls = bounded_resume(thread)
  end
  if signal ~= FINISHED then return core.on_error(not ok and signal or value) end
  return nil
end

-- Drops the requests made by something that does not go on: `holder` is a request or a light thread.
function core.drop_nested(holder)
  local request = holder.nested
  if not request then return end
  holder.nested, request.is_over = nil, true
  response_unnest(context, request.place)
  if request.lights then core.drop_lights(request) end
  core.drop_nested(request)
end

-- Answers a request within the running one: gives its status, body and headers.
function core.nest(handler, overrides)
  local outer = core.request
  local request = begin(handler)
  for name, value in pairs(overrides) do request[name] = value end
  request.outer, request.depth = outer, (outer.depth or 0) + 1
  if request.depth > DEPTH_MAX then error("requests have called each other more than " .. DEPTH_MAX .. " deep", 3) end
  if response_nest(context) ~= 1 then fail(3) end
  request.place = reply.number
  local holder = outer.light or outer
  request.holder, holder.nested = holder, request
  local failure = run_nested(request)
  holder.nested = nil
  if failure then
    response_forget(context)
    core.log_failure(failure)
    request.status = 500
  end
  local headers = core.response_headers()
  response_unnest(context, request.place)
  local body = ffi_string(reply.data, reply.data_len)
  response_select(context, outer.place or 0)
  core.enter(outer)
  request.is_over = true
  return { status = request.status, header = headers, body = failure and "" or body, truncated = false }
end
