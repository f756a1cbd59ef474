-- Times a function: the loops that call it, the clock readings around them, and what the compiler does meanwhile. Loaded
-- only into a virtual machine that takes such measurements.

local core, now, main, is_compiled, in_transaction = ...

local jit = core.libraries.jit
local util = core.rust.preload["jit.util"] "jit.util"
local getinfo = core.libraries.debug.getinfo
local error, type, tostring, pcall, sub = error, type, tostring, pcall, string.sub

-- The source of every file of the prelude.
local PRELUDE = "[tokaido]"

-- Maximum number of events kept until they are fetched; further ones are dropped.
local EVENTS_MAX = 10000

-- The chunk name of the loops.
local LOOP = "(loop)"

-- Each loop is compiled from its text separately, so that no two share traces. The result is stored, since an unused
-- one would be optimised away. `run` is an upvalue that never changes, like a hoisted look-up.
local LOOP_TEXT = [[
local run, box, tx = ...
return function(count)
  for i = 1, count do box[1] = run(i, tx) end
end]]

local load_text = core.sandbox.make_load {}

-- A function that times a loop of `count` calls, in ns. It is not compiled itself: reading the clock is a call that
-- would end a trace. `before` is the number of untimed calls that come first.
local function timed(run)
  local loop = load_text(LOOP_TEXT, "=" .. LOOP)(run, {}, in_transaction and core.transaction or nil)
  local function sample(count, before)
    loop(before)
    local began = now()
    loop(count)
    return now() - began
  end
  jit.off(sample)
  return sample
end

-- In dialects whose scripts are transactions, a sample is one, too; in the native one, on request. The clock runs
-- within it.
local function around(sample)
  if core.script_of then return core.script_of(sample) end
  if not in_transaction then return sample end
  local transact = core.tokaido_entries.transact
  return function(count, before)
    return transact(function() return sample(count, before) end)
  end
end

local bench = {}

-- Gives a function that runs the chunk, and takes the function that the chunk returns.
function bench.prepare(chunk)
  return function(...)
    local run = chunk(...)
    if type(run) ~= "function" then
      error("the code must return the function that is to be timed, but it returned " .. core.text.described(run), 0)
    end
    if not is_compiled then
      jit.off()
      jit.flush()
    end
    bench.of_function = around(timed(run))
    bench.of_nothing = timed(load_text("return function(i) return i end", "=(empty)")())
  end
end

-- Why a trace was aborted, by LuaJIT's numbers (lj_traceerr.h). NYI is LuaJIT's word for things that its compiler does
-- not support.
local REASONS = {
  [0] = "an error was raised while the trace was recorded", "the trace is too short", "the trace is too long",
  "the stack is too deep", "too many snapshots", "blacklisted, since it was given up too often before", "recorded again",
  "NYI: bytecode", "the loop ended while it was recorded", "an inner loop that has no trace of its own yet",
  "a loop that was unrolled too often", "an argument of the wrong type", "the JIT is switched off for a function",
  "calls were unrolled too often", "recursion, recorded again from further down",
  "NYI: a built-in function, with these arguments", "NYI: return to a frame below the trace",
  "a store with a key that is nil or NaN", "a metamethod is missing", "an index look-up that goes in circles",
  "NYI: a table that is an array and a hash at once", "a C symbol that was not looked up before",
  "NYI: conversion between C types", "NYI: type of a C function", "a guard that would always fail",
  "too many variables change in the loop", "a variable changes its type in the loop", "no memory for machine code",
  "the machine code is too long", "the limit for machine code is reached", "too many values for the processor's registers",
  "registers cannot be assigned consistently", "NYI: an instruction cannot be assembled",
  "NYI: too many variables change places in the loop", "NYI: values cannot be kept in the same register",
}

-- Bytecodes that are not compiled, by number (lj_bc.h).
local BYTECODES = {
  [50] = "NYI: closing the upvalues of a closure (bytecode UCLO)",
  [51] = "NYI: making a closure (bytecode FNEW)",
  [71] = "NYI: passing on a variable number of arguments (bytecode VARG)",
}

local BYTECODE = 7

local function reason_of(code, detail)
  if type(code) ~= "number" then return tostring(code) end
  if code == BYTECODE and type(detail) == "number" then
    return BYTECODES[detail] or REASONS[code] .. " number " .. detail
  end
  return REASONS[code] or "reason number " .. code
end

-- Maximum number of frames searched for a line of user code.
local DEPTH_MAX = 50

-- The line being run within the timed function: the innermost one outside the prelude. Nil if the loop is not running.
-- The compiler's events run on a stack of their own, hence the thread.
local function place_in_loop()
  local found
  for level = 0, DEPTH_MAX do
    local info = getinfo(main, level, "Sl")
    if not info then return nil end
    if info.short_src == LOOP then return found or "the timed function" end
    if not found and info.currentline > 0 and info.short_src ~= PRELUDE then
      found = info.short_src .. ":" .. info.currentline
    end
  end
end

-- Where a function is at `pc`. For the prelude, the line that called it; nil if nothing timed did.
local function place(func, pc)
  local ok, info = pcall(util.funcinfo, func, pc)
  if not ok or not info.source then return "a built-in function" end
  if info.source == "=" .. PRELUDE then return place_in_loop() end
  return sub(info.source, 2) .. ":" .. info.currentline, info.source == "=" .. LOOP
end

local events, starts = {}, {}

local function keep(...)
  if #events < EVENTS_MAX then events[#events + 1] = { ... } end
end

-- A trace that begins where a C function returned, after another trace.
local STITCHED = -1

-- Leaves out what does not concern the timed function: the loop's own end, and what runs around it.
if is_compiled then
  jit.attach(function(what, trace, func, pc, code, detail)
    if what == "start" then
      local start, is_loop = place(func, pc)
      starts[trace] = start and { place = start, is_loop = is_loop }
      if start and detail == STITCHED then keep("stitched", start, start, "") end
    elseif what == "stop" then
      local start, link = starts[trace], util.traceinfo(trace).linktype
      if start and not (start.is_loop and link == "interpreter") then
        keep("compiled", start.place, start.place, link)
      end
    elseif what == "abort" then
      local at, is_loop = place(func, pc)
      if at and not is_loop then
        keep("aborted", starts[trace] and starts[trace].place or at, at, reason_of(code, detail))
      end
    elseif what == "flush" then
      keep("flushed", "", "", "")
    end
  end, "trace")
end

-- What the compiler has done since the last call: lists of what, where the trace began, the place, and more about it.
function bench.take_events()
  local taken = events
  events = {}
  return taken
end

core.bench = bench
