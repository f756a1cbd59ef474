-- The coroutines of scripts. A signal that ends a phase or makes it wait passes through them, up to the phase's coroutine.

local core = ...

local error, pairs = error, pairs
local create, yield = coroutine.create, coroutine.yield
local bounded_resume = core.bounded.coroutine.resume
local EXIT, WAIT, own = core.EXIT, core.WAIT, core.own_threads

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
