-- `ngx.timer`: functions that run after a delay, outside any request. A running timer is a table like that of a request,
-- in the phase `timer`, with light threads and an `ngx.ctx` of its own.

local core = ...

local ngx, native = core.ngx, core.native
local context, reply, may_wait = native.context, native.reply, native.may_wait
local timer_make, timer_run, timer_counts = native.timer_make, native.timer_run, native.timer_counts
local type, error, tonumber, select, unpack, floor = type, error, tonumber, select, unpack, math.floor
local getinfo = core.libraries.debug.getinfo

-- Pending timers by number: {run =, arguments =, count =, delay_ms =, is_repeated =, is_last =}.
local pending = {}

-- Makes a timer; tells whether there was room. It belongs to the worker that has this virtual machine.
local function make(timer)
  if timer_make(context, timer.delay_ms) ~= 1 then return false end
  pending[reply.number] = timer
  return true
end

local function check_caller(name)
  if core.phase == "init_worker" then return end
  if not core.running then core.disabled(3) end
  if may_wait(context) ~= 1 then
    error(name .. " is not for a handler that writes, whose transaction is over before a timer runs; see "
      .. core.PAGE, 3)
  end
end

-- Called by a tail call, so that its caller is the script.
local function add(name, is_repeated, ...)
  local count = select("#", ...)
  if count < 2 then error("expecting at least 2 arguments but got " .. count, 2) end
  local delay, run = ...
  local seconds = tonumber(delay)
  if not seconds then error("bad argument #1 to '" .. name .. "' (number expected, got " .. type(delay) .. ")", 2) end
  -- Anything that is not a time, or is before now, means now.
  local delay_ms = seconds > 0 and floor(seconds * 1000) or 0
  if is_repeated and delay_ms == 0 then error("delay cannot be zero", 2) end
  if type(run) ~= "function" or getinfo(run, "S").what == "C" then
    error("bad argument #2 to '" .. name .. "' (Lua function expected)", 2)
  end
  check_caller("ngx.timer." .. name)
  -- During the exit only timers without delay are made, and what these run makes none.
  if core.is_exiting and (delay_ms ~= 0 or core.running and core.running.is_last) then return nil, "process exiting" end
  local timer = {
    run = run, arguments = { select(3, ...) }, count = count - 2, delay_ms = delay_ms, is_repeated = is_repeated,
    is_last = core.is_exiting,
  }
  if not make(timer) then return nil, "too many pending timers" end
  return 1
end

ngx.timer = {
  at = function(...) return add("at", false, ...) end,
  every = function(...) return add("every", true, ...) end,
  pending_count = function()
    timer_counts(context)
    return reply.number
  end,
  running_count = function()
    timer_counts(context)
    return reply.flags
  end,
}

-- Forgets a timer that will not run any more, and what it holds.
function core.forget_timer(number) pending[number] = nil end

local NO_HANDLER = {}

local function begin(timer)
  local running = { phase = "timer", is_timer = true, is_last = timer.is_last, handler = NO_HANDLER }
  core.enter(running)
  local is_premature = core.is_exiting == true
  local left = core.run_chunk(function() timer.run(is_premature, unpack(timer.arguments, 1, timer.count)) end)
  -- `ngx.exit` ends its light threads, too.
  if left == nil and running.lights then core.finish_lights(running) end
  running.is_over = true
end

-- Runs the function of a timer, which is due unless the virtual machine is about to go.
function core.fire(number)
  local timer = pending[number]
  pending[number] = nil
  if timer.is_repeated and not core.is_exiting and not make(timer) then
    core.log_failure("a timer that is repeated ends: too many pending timers")
  end
  if timer_run(context, number) ~= 1 then
    core.log_failure("a timer is not run, since too many run already; see limits.ngx_timers_running_max")
    return
  end
  core.start(begin, timer)
end
