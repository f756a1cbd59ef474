-- The pattern functions of `string`, with a bound: LuaJIT's matcher works in C, where no time limit
-- reaches it. What could take too long is refused before it begins.

local core = ...

local find, gmatch, gsub, match = string.find, string.gmatch, string.gsub, string.match
local type, error = type, error

-- Most that the lengths of pattern and subject may be when multiplied.
local WORK_MAX = 2 ^ 28

local function check(subject, pattern, name)
  if type(subject) == "string" and type(pattern) == "string"
    and #subject * #pattern > WORK_MAX then
    error("string." .. name .. ": a pattern of " .. #pattern .. " bytes over a string of " .. #subject
      .. " could take too long; take the string apart first", 3)
  end
end

local patterns = {}

function patterns.find(subject, pattern, init, plain)
  if not plain then check(subject, pattern, "find") end
  return find(subject, pattern, init, plain)
end

function patterns.match(subject, pattern, init)
  check(subject, pattern, "match")
  return match(subject, pattern, init)
end

function patterns.gmatch(subject, pattern)
  check(subject, pattern, "gmatch")
  return gmatch(subject, pattern)
end

function patterns.gsub(subject, pattern, replacement, limit)
  check(subject, pattern, "gsub")
  return gsub(subject, pattern, replacement, limit)
end

core.patterns = patterns
