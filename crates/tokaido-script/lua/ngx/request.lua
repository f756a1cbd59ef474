-- The way of a request through its phases. Each phase runs in a coroutine, so that `ngx.exit` ends it from wherever
-- it is called: it yields, and nobody resumes.

local core = ...

local error, xpcall, type, pairs, setmetatable = error, xpcall, type, pairs, setmetatable
local rawequal, pcall = rawequal, pcall
local create, resume, yield = coroutine.create, coroutine.resume, coroutine.yield
local native = core.native
local context, fail = native.context, native.fail
local response_sent, response_header = native.response_sent, native.response_header
local response_nest, response_unnest = native.response_nest, native.response_unnest
local response_forget = native.response_forget

-- What runs: a request, or a timer, for which there is no request.
function core.enter(running)
  core.running = running
  core.request = not running.is_timer and running or nil
end

-- The coroutines that no handler resumes.
local own = setmetatable({}, { __mode = "k" })

-- What a coroutine yields first: the end of its phase, an error that nobody caught, `ngx.exit`, or that it waits, with
-- the time in ms at which it goes on and whether it is for more than that.
local FINISHED, FAILED, EXIT, WAIT = {}, {}, {}, {}
core.EXIT, core.WAIT, core.own_threads = EXIT, WAIT, own

-- Runs one phase after another, so that the next request need not make a coroutine.
local function loop(chunk)
  while true do
    local ok, failure = xpcall(chunk, core.keep_error)
    if ok then chunk = yield(FINISHED) else chunk = yield(FAILED, failure) end
  end
end

local idle, idle_count = {}, 0

local bounded_resume = core.bounded.coroutine.resume

-- What has become of a phase: a status, or what `ngx.exec` goes on with, if that ended it early.
local function left(ok, signal, value)
  if signal == FINISHED then return nil end
  if ok and signal == EXIT then return value end
  error(not ok and signal or value, 0)
end

-- Goes on with a phase for as often as it waits, which the request does with it, or yields for nobody.
local function resume_to_end(resume_one, thread, ok, signal, value, polls)
  while ok and signal ~= FINISHED and signal ~= FAILED and signal ~= EXIT do
    if signal == WAIT then yield(WAIT, value, polls) end
    ok, signal, value, polls = resume_one(thread)
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

-- Runs a chunk; gives what ended it early. Errors pass through.
local function run(chunk)
  if core.running.outer then
    -- Below other coroutines, which are counted.
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

-- Ends the phase that runs.
function core.leave(value)
  yield(EXIT, value)
end

-- The coroutines of scripts. What ends a phase passes through them, up to the phase's own.

local function passed(thread, ok, signal, ...)
  if ok and (signal == EXIT or signal == WAIT) then
    yield(signal, ...)
    return passed(thread, bounded_resume(thread))
  end
  return ok, signal, ...
end

local threads = {}
for name, entry in pairs(core.sandbox.libraries.coroutine) do threads[name] = entry end

function threads.resume(thread, ...)
  if own[thread] then return false, "the coroutine of a phase is not for a handler to resume" end
  return passed(thread, bounded_resume(thread, ...))
end
local resume_passing = threads.resume

local function resumed(ok, ...)
  if not ok then error(..., 0) end
  return ...
end

function threads.wrap(body)
  local thread = create(body)
  return function(...) return resumed(resume_passing(thread, ...)) end
end

core.coroutine = threads

-- Runs a file of a filter, which comes between; gives what ended it early.
function core.run_filter(request, phase, chunk)
  local before = request.phase
  request.phase = phase
  local ok, value = pcall(run, chunk)
  request.phase = before
  if not ok then error(value, 0) end
  return value
end

-- Begins to send, which is when the headers can no longer be another.
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
  request.is_sent = true
  if response_sent(context, status) ~= 1 then fail(3) end
end
core.send_headers = send_headers

-- What ends a request that no handler has answered: its page.
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
  local body = ""
  if status >= 300 and status ~= 304 then
    body = '{"error":{"message":"' .. (REASONS[status] or "status " .. status) .. '"}}\n'
    if response_header(context, "content-type", 12, "application/json", 16, 0) ~= 1 then fail(3) end
  end
  request.is_typed = request.is_typed or status ~= 201
  send_headers(request)
  if body ~= "" then core.send(request, body) end
end

-- Ends a request whose client gets no answer, unless that is complete already.
local function drop(request)
  if request.is_ended then return end
  request.is_dropped = true
  if native.response_drop(context) ~= 1 then fail(3) end
end

-- What becomes of a phase that `ngx.exit` has ended; tells whether the request is over.
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

local function run_phase(request, phase, chunk)
  request.phase = phase
  local value = run(chunk)
  if value == nil and request.lights then value = core.finish_lights(request) end
  if request.lights then core.drop_lights(request) end
  -- What has begun to answer in an earlier phase is the answer.
  local is_answered = phase ~= "content" and request.is_sent
  if type(value) == "number" then return settle(request, value) or is_answered end
  if value ~= nil then
    core.change_handler(request, value)
    return nil
  end
  return is_answered
end

-- Runs the phases up to the content; goes on with another handler where `ngx.exec` says so.
local EXECS_MAX = 10
local function answer(request, is_nested)
  for _ = 0, EXECS_MAX do
    local handler = request.handler
    local over = false
    if handler.rewrite then over = run_phase(request, "rewrite", handler.rewrite) end
    if over == false and handler.access and not is_nested then
      over = run_phase(request, "access", handler.access)
    end
    if over == false then over = run_phase(request, "content", handler.content) end
    if over ~= nil then return end
  end
  error("ngx.exec has gone from one route to another more than " .. EXECS_MAX .. " times", 0)
end

local function finish(request)
  if request.is_dropped then return end
  if not request.is_sent then send_headers(request) end
  core.end_body(request)
end

-- Changes nothing of what it comes after: if it fails, that is a line in the log.
local function log_phase(request)
  local chunk = request.handler.log
  if not chunk then return end
  request.phase = "log"
  local ok, failure = xpcall(run, core.on_error, chunk)
  if not ok then core.log_failure(failure) end
end

-- What a handler raises is for the log, whatever it is: no status or code in it makes it an answer, as in procedures.
local report_of, last_report = core.on_error, nil
function core.on_error(raised)
  -- Raised again, further out.
  if last_report ~= nil and rawequal(raised, last_report) then return raised end
  local report = report_of(raised)
  last_report = { message = report.message, traceback = report.traceback }
  return last_report
end

-- The request of a client that another one is a part of.
local function outermost(request)
  while request.outer do request = request.outer end
  return request
end
core.outermost = outermost

local function fail_running(failure)
  local request, report = core.running, core.on_error(failure)
  outermost(request).is_over = true
  if request.is_timer then error(report, 0) end
  if not request.is_sent then request.status = 500 end
  if request.phase ~= "log" then log_phase(request) end
  last_report = report
  error(report, 0)
end

local function begin(handler)
  return { handler = handler, phase = "content", status = 0, is_sent = false, is_typed = false }
end

-- A file is run for each request and makes its functions anew. LuaJIT compiles what it sees for that one function, until it
-- has seen some of the same code: from then on it compiles for all of them. What it has compiled before is dropped, as
-- every later function would leave such code at once, and be compiled behind it, again and again.
local RUNS_OF_ONE = 4
local flush = core.libraries.jit.flush
local function forget_first_functions(handler)
  for _, part in pairs(handler) do
    if type(part) == "function" then flush(part, true) end
  end
end

-- What a handler is made of becomes the function of a procedure.
function core.handler(handler)
  core.add_route(handler)
  local runs = 0
  return function()
    if runs < RUNS_OF_ONE then
      runs = runs + 1
      if runs == RUNS_OF_ONE then forget_first_functions(handler) end
    end
    local request = begin(handler)
    core.enter(request)
    answer(request, false)
    finish(request)
    log_phase(request)
    request.is_over = true
  end
end

-- Requests and timers that wait, by the numbers that they are woken by.
local waiting = {}
local wait, reply = native.wait, native.reply

local is_cut_off = false

local function go_on(thread, ok, signal, value)
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

-- The virtual machine goes on with something. What ran last may have been cut off by a limit, with the modules that it
-- was loading: it is over.
local function begin_run()
  if is_cut_off and core.running then outermost(core.running).is_over = true end
  is_cut_off = true
  core.forget_loading()
end

-- What runs is a coroutine around those of its phases, so that all of it can wait.
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
  outermost(found.running).slot = nil
  go_on(found.thread, resume(found.thread))
end

function core.abandon(slot)
  local found = waiting[slot]
  if found then outermost(found.running).is_over = true end
  waiting[slot] = nil
end

local function answer_nested(request)
  answer(request, true)
  finish(request)
end

-- Answers a request within the request that runs: its status, body and headers.
function core.nest(handler, overrides)
  local outer = core.request
  local request = begin(handler)
  for name, value in pairs(overrides) do request[name] = value end
  request.outer = outer
  if response_nest(context) ~= 1 then fail(3) end
  core.enter(request)
  local ok, failure = xpcall(answer_nested, core.on_error, request)
  if not ok then
    response_forget(context)
    core.log_failure(failure)
    request.status = 500
  end
  local headers = core.response_headers()
  response_unnest(context)
  local body = native.string(native.reply.data, native.reply.data_len)
  core.enter(outer)
  -- Its light threads have missed what was for them meanwhile.
  core.rouse(outer)
  return { status = request.status, header = headers, body = ok and body or "", truncated = false }
end
