-- `ngx.sleep` and `ngx.thread`: a request waits as a whole, until the first of its light threads has to go on.

local core = ...

local ngx, native = core.ngx, core.native
local context, reply = native.context, native.reply
local may_wait, clock = native.may_wait, native.clock
local create, yield, status = coroutine.create, coroutine.yield, coroutine.status
local resume = core.bounded.coroutine.resume
local type, error, tonumber, select, unpack, xpcall = type, error, tonumber, select, unpack, xpcall
local setmetatable, huge, min = setmetatable, math.huge, math.min
local EXIT, WAIT, own = core.EXIT, core.WAIT, core.own_threads

-- Maximum number of light threads of a request.
local THREADS_MAX = 1000

function core.clock_ms()
  clock(context)
  return reply.number
end
local clock_ms = core.clock_ms

local WAITING = { rewrite = true, access = true, content = true, timer = true }

-- Whether a function of a tokaido.read runs, of this request or of one around it. A function that has yielded from its
-- coroutine does not run until it is resumed.
local function is_reading(request)
  repeat
    local reading = request.reading
    while reading do
      local state = status(reading.thread)
      if state == "running" or state == "normal" then return true end
      reading = reading.outer
    end
    request = request.outer
  until not request
  return false
end

-- Why the running code may not wait where it is; nil if it may.
local function why_not_wait(request)
  if may_wait(context) ~= 1 then
    return "is not for a handler that writes: it is a transaction, and all others would wait for it"
  end
  if is_reading(request) then return "is not for a function of tokaido.read: what it has read is of one moment" end
  if core.is_loading() then
    return "is not for a module that is being loaded: other requests would load it meanwhile"
  end
  return nil
end
core.why_not_wait = why_not_wait

-- The running request or timer, if it may wait.
function core.request_to_wait(name)
  local request = core.running
  if not request or not WAITING[request.phase] then core.disabled(3) end
  local why = why_not_wait(request)
  if why then error(name .. " " .. why .. "; see " .. core.PAGE, 3) end
  -- Waiting code, and a socket, refers to the request that it belongs to.
  core.keep(request)
  return request
end
local request_to_wait = core.request_to_wait

-- A light thread is {thread =, wake = when it goes on, polls =, results =}: results once it has ended. One that polls
-- waits for more than a time, and checks for that itself whenever its request goes on.
local DONE = {}

-- The light threads of a request that has none.
local NONE = {}

-- The coroutines of light threads whose results were taken, or that were killed: their requests no longer have them.
local settled = setmetatable({}, { __mode = "k" })

local function body(run, ...)
  return DONE, xpcall(run, core.keep_error, ...)
end

-- A thread has ended: those that wait for one check whether it is theirs.
function core.wake_waiting(request)
  local lights = request.lights or NONE
  for i = 1, #lights do
    if lights[i].wake == huge then lights[i].wake = 0 end
  end
end

local function noted(light, ok, signal, ...)
  if ok and signal == WAIT then
    light.wake, light.polls = ...
  elseif ok and signal == EXIT then
    yield(EXIT, ...)
  elseif ok and signal == DONE then
    light.results, light.count = { ... }, select("#", ...)
  elseif ok then
    light.wake, light.polls = 0, false
  else
    light.results, light.count = { false, signal }, 2
  end
  if not light.results then return end
  if light.results[1] == false then core.log_failure(light.results[2]) end
  core.wake_waiting(core.running)
end

local function step(request, light, ...)
  local outer = request.light
  request.light = light
  noted(light, resume(light.thread, ...))
  request.light = outer
end

-- When the next of these light threads goes on.
local function next_wake(lights)
  local wake = huge
  for i = 1, #lights do
    if not lights[i].results then wake = min(wake, lights[i].wake) end
  end
  return wake
end

-- Runs the light threads that are due, and those that poll.
local function run_due(request)
  local now, lights = clock_ms(), request.lights or NONE
  for i = 1, #lights do
    local light = lights[i]
    if not light.results and (light.polls or light.wake <= now) then step(request, light) end
  end
end

-- Waits. A light thread just yields, as the others are looked after elsewhere; anything else looks after them itself.
local function wait_until(request, wake, polls)
  if request.light or not request.lights then
    yield(WAIT, wake, polls)
    return
  end
  wake = min(wake, next_wake(request.lights))
  if wake == huge then error("light threads wait for each other", 3) end
  yield(WAIT, wake, true)
  run_due(request)
end
core.wait_until = wait_until

-- Makes the light threads that poll check again at once.
function core.rouse(request)
  repeat
    local lights = request.lights or NONE
    for i = 1, #lights do
      if lights[i].polls then lights[i].wake = 0 end
    end
    request = request.outer
  until not request
end

function ngx.sleep(seconds)
  local request = request_to_wait("ngx.sleep")
  seconds = tonumber(seconds)
  if not seconds or not (seconds >= 0) then error("invalid sleep duration", 2) end
  local wake = clock_ms() + seconds * 1000
  repeat wait_until(request, wake) until clock_ms() >= wake
end

ngx.thread = {}

function ngx.thread.spawn(run, ...)
  local request = request_to_wait("ngx.thread.spawn")
  if type(run) ~= "function" then error("bad argument #1 to 'spawn' (function expected, got " .. type(run) .. ")", 2) end
  local lights = request.lights or {}
  if #lights == THREADS_MAX then error("a request has at most " .. THREADS_MAX .. " light threads", 2) end
  request.lights = lights
  local light = { thread = create(body), wake = 0 }
  own[light.thread] = true
  lights[#lights + 1] = light
  step(request, light, run, ...)
  return light.thread
end

local function find(request, thread)
  local lights = request.lights or NONE
  for i = 1, #lights do
    if lights[i].thread == thread then return lights[i] end
  end
  return nil
end

-- Makes a new list, since something may be iterating over the old one.
local function without(lights, is_gone)
  local others = {}
  for i = 1, #lights do
    if not is_gone(lights[i]) then others[#others + 1] = lights[i] end
  end
  return others[1] and others or nil
end

local function settle(request, light)
  settled[light.thread] = true
  request.lights = without(request.lights or NONE, function(other) return other == light end)
end

-- The results of the first of these threads that ends.
function ngx.thread.wait(...)
  local request = request_to_wait("ngx.thread.wait")
  local awaited = {}
  for i = 1, select("#", ...) do
    local thread = select(i, ...)
    if thread ~= nil and settled[thread] then return nil, "already waited or killed" end
    awaited[i] = find(request, thread)
    if not awaited[i] then error("attempt to wait on a coroutine that is not a user thread", 2) end
  end
  if #awaited == 0 then error("at least one coroutine should be specified", 2) end
  while true do
    for i = 1, #awaited do
      local light = awaited[i]
      if light.results then
        settle(request, light)
        return unpack(light.results, 1, light.count)
      end
    end
    wait_until(request, huge)
  end
end

-- Runs functions concurrently, each as a light thread of its own, until all have ended; gives a list of what each
-- has returned.
function core.run_together(request, runs)
  local lights, together = request.lights or {}, {}
  if #lights + #runs > THREADS_MAX then error("a request has at most " .. THREADS_MAX .. " light threads", 3) end
  request.lights = lights
  if request.light then request.light.together = together end
  for i = 1, #runs do
    local light = { thread = create(body), wake = 0, group = together }
    own[light.thread] = true
    lights[#lights + 1], together[i] = light, light
    step(request, light, runs[i])
  end
  for i = 1, #together do
    while not together[i].results do wait_until(request, huge) end
  end
  request.lights = without(request.lights, function(light) return light.group == together end)
  if request.light then request.light.together = nil end
  local results = {}
  for i = 1, #together do
    local result = together[i].results
    if not result[1] then error(result[2], 0) end
    results[i] = result[2]
  end
  return results
end

-- Ends a light thread, and what it has begun.
local function drop(light)
  if light.results then return end
  light.results, light.count = { false, "killed" }, 2
  if light.socket then core.close_killed(light.socket) end
  core.drop_nested(light)
  local together = light.together or {}
  for i = 1, #together do drop(together[i]) end
end

function ngx.thread.kill(thread)
  local request = request_to_wait("ngx.thread.kill")
  if thread ~= nil and settled[thread] then return nil, "already waited or killed" end
  local light = find(request, thread)
  if not light then error("attempt to kill a coroutine that is not a user thread", 2) end
  if light.results then return nil, "already terminated" end
  if light.nested or light.together then return nil, "pending subrequests" end
  drop(light)
  core.wake_waiting(request)
  settle(request, light)
  return 1
end

-- A phase ends when its light threads have ended.
function core.finish_lights(request)
  return core.run_chunk(function()
    while next_wake(request.lights or NONE) < huge do wait_until(request, huge) end
  end)
end

-- Ends all of them.
function core.drop_lights(request)
  local lights = request.lights or NONE
  for i = 1, #lights do drop(lights[i]) end
  request.lights = nil
end
