-- Library functions that work in C, where no time limit reaches them, or that use up the C stack
-- when they call each other: reimplemented so that neither happens.

local core = ...

local error, type, setmetatable, select = error, type, setmetatable, select
local tostring, tonumber, unpack = tostring, tonumber, unpack
local getinfo = core.libraries.debug.getinfo

local bounded = { table = {}, coroutine = {} }

-- LuaJIT's own continues with whatever it finds as `__tostring`; if that is itself, it never ends,
-- and nothing stops it. A Lua function in between meets the time limit.
function bounded.tostring(...)
  return tostring(...)
end

-- string.format calls `__tostring` from C, and uses up the C stack if that formats, too. So tables
-- are converted to text first.
local format, getmetatable = string.format, getmetatable
local function format_shown(pattern, ...)
  local arguments, count = { ... }, select("#", ...)
  for i = 1, count do
    local argument = arguments[i]
    if type(argument) == "table" and getmetatable(argument) ~= nil then
      arguments[i] = tostring(argument)
    end
  end
  return format(pattern, unpack(arguments, 1, count))
end

local function has_table(a, b, c, d)
  return type(a) == "table" or type(b) == "table" or type(c) == "table" or type(d) == "table"
end

-- Up to eight arguments are checked without a loop, so that the caller's loop compiles with it.
function bounded.format(pattern, ...)
  local a, b, c, d, e, f, g, h = ...
  if select("#", ...) > 8 or has_table(a, b, c, d) or has_table(e, f, g, h) then
    return format_shown(pattern, ...)
  end
  return format(pattern, ...)
end

-- Up to this length, table.sort compares without a comparison in Lua.
local SORT_IN_C_MAX = 100

-- Comparisons in C cannot be stopped; those in Lua meet the time limit.
local sort = table.sort
local function is_less(a, b) return a < b end
function bounded.table.sort(list, less)
  if less == nil and type(list) == "table" and #list > SORT_IN_C_MAX then less = is_less end
  if type(less) == "function" and getinfo(less, "S").what == "C" then
    local less_in_c = less
    less = function(a, b) return (less_in_c(a, b)) end
  end
  sort(list, less)
end

-- From a position below the first, C moves every entry in between, whether it exists or not; and a
-- position that is not a 32-bit integer it takes for one.
local POSITION_MAX = 2 ^ 31 - 1

local insert = table.insert
function bounded.table.insert(list, ...)
  if select("#", ...) == 2 then
    local position = tonumber((...))
    if position and not (position >= 1 and position <= POSITION_MAX) then
      error("table.insert takes a position from 1 up, this is " .. position, 2)
    end
  end
  insert(list, ...)
end

-- Maximum number of coroutines that resume each other: each uses the C stack.
local COROUTINE_DEPTH_MAX = 150

local create, resume, running = coroutine.create, coroutine.resume, coroutine.running
local depths = setmetatable({}, { __mode = "k" })
local TOO_DEEP = "coroutines resume each other more than " .. COROUTINE_DEPTH_MAX .. " deep"

function bounded.coroutine.resume(thread, ...)
  local depth = (depths[running()] or 0) + 1
  if depth > COROUTINE_DEPTH_MAX then return false, TOO_DEEP end
  if type(thread) == "thread" then depths[thread] = depth end
  return resume(thread, ...)
end
local resume_checked = bounded.coroutine.resume

local function resumed(ok, ...)
  if not ok then error(..., 0) end
  return ...
end

function bounded.coroutine.wrap(run)
  local thread = create(run)
  return function(...) return resumed(resume_checked(thread, ...)) end
end

core.bounded = bounded
