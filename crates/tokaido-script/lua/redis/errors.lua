-- How an error that a script did not catch is handled, and where it was raised.

local core = ...

local getinfo = core.libraries.debug.getinfo
local type, tostring, rawget = type, tostring, rawget
-- LuaJIT's own, not the bounded ones of patterns.lua: this runs when the stack is almost full.
local gsub = string.gsub

-- The source of the prelude's frames.
local PRELUDE = "=[tokaido]"

-- How many frames of the prelude and of C may be above the script's own.
local FRAMES_MAX = 20

-- The frame of the script. There is none if the script ended in the call that failed: `return f()` gives
-- its frame to f.
local function frame(level)
  for above = level, level + FRAMES_MAX do
    local info = getinfo(above, "Sl")
    if not info then return nil end
    if info.what ~= "C" and info.source ~= PRELUDE then return info end
  end
  return nil
end

-- The position if the script has one line: then it can only be that line. Set before each run.
core.position_of_tail_calls = ""

-- The position before the message of an error that a library raises.
function core.where()
  local info = frame(3)
  if info then return info.short_src .. ":" .. info.currentline .. ": " end
  return core.position_of_tail_calls
end

-- LuaJIT's errors that were raised within the prelude name the script's line, not the prelude's.
local OWN_POSITION = "^%[tokaido%]:%d+: "

-- The message handler of every script: the message, and where it was raised.
function core.on_error(raised)
  local failure = { traceback = "" }
  if type(raised) == "table" then
    local message = rawget(raised, "err")
    failure.message = type(message) == "string" and message or "ERR unknown error"
  elseif type(raised) == "string" then
    failure.message = "ERR " .. gsub(raised, OWN_POSITION, core.where)
  else
    failure.message = "ERR " .. tostring(raised)
  end
  local info = frame(3)
  if info then failure.traceback = info.source .. ":" .. info.currentline end
  return failure
end
