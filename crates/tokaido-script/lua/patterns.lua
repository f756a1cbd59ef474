-- The pattern functions of `string`. LuaJIT's matcher works in C, where no time limit reaches it,
-- so potentially long matches go to Tokaido's own matcher, which counts its steps and gives up.

local core = ...

local match_counted, steps_max = core.rust.match_counted, core.rust.pattern_steps_max
local find_plain, weigh_pattern = core.rust.find_plain, core.rust.weigh_pattern

local find, gmatch, gsub, match = string.find, string.gmatch, string.gsub, string.match
local format, sub = string.format, string.sub
local type, error, select, tostring = type, error, select, tostring
local getmetatable, tonumber = getmetatable, tonumber

-- Up to this many steps LuaJIT's matcher is used even in the worst case: some milliseconds.
local STEPS_MAX = 2 ^ 22

-- The cost of patterns: how many items may match any number of characters, and the factor by which
-- optional items multiply the ways to match. Cached, since a program has few patterns; a program
-- that makes them from data restarts the cache now and then. Patterns longer than this are made
-- from data, too, and are not kept.
local CACHED_MAX, CACHED_LEN_MAX = 1000, 256
local repeats, choices, cached = {}, {}, 0

local function weigh(pattern)
  local count, optional = weigh_pattern(pattern)
  if #pattern <= CACHED_LEN_MAX then
    if cached == CACHED_MAX then repeats, choices, cached = {}, {}, 0 end
    repeats[pattern], choices[pattern], cached = count, 2 ^ optional, cached + 1
  end
  return count, 2 ^ optional
end

-- Whether the worst case is too much for C: each repeat may try each length, from each start.
local function is_risky(subject, pattern)
  if type(subject) ~= "string" or type(pattern) ~= "string" then return false end
  local count, ways = repeats[pattern], choices[pattern]
  if not count then count, ways = weigh(pattern) end
  return #pattern * (#subject) ^ (count + 1) * ways > STEPS_MAX
end

-- Subject and pattern may be numbers. They are converted to text here, so that C gets none that
-- was not checked.
local function text_of(argument)
  if type(argument) == "number" then return tostring(argument) end
  return argument
end

-- The results of a counted match: first, last, captures. Never a tail call, for the error level.
local function checked(name, first, last, ...)
  if first == false then error("string." .. name .. ": " .. last, 3) end
  return first, last, ...
end

-- `init` as a position in the subject; nil if it is after the end.
local function start_of(subject, init)
  init = tonumber(init) or 1
  if init < 0 then init = #subject + init + 1 end
  -- NaN is not 1 or more either.
  if not (init >= 1) then init = 1 end
  if init > #subject + 1 then return nil end
  return init
end

local patterns = {}

local function is_literal(pattern)
  return find(pattern, "[%^%$%*%+%?%.%(%[%%%-]") == nil
end

local function has_captures(pattern)
  return find(gsub(pattern, "%%.", "x"), "(", 1, true) ~= nil
end

function patterns.find(subject, pattern, init, plain)
  subject, pattern = text_of(subject), text_of(pattern)
  if not is_risky(subject, pattern) then return find(subject, pattern, init, plain) end
  local start = start_of(subject, init)
  if not start then return nil end
  if plain or is_literal(pattern) then return find_plain(subject, pattern, start) end
  if has_captures(pattern) then
    return select(1, checked("find", match_counted(subject, pattern, start, steps_max)))
  end
  local first, last = checked("find", match_counted(subject, pattern, start, steps_max))
  return first, last
end

function patterns.match(subject, pattern, init)
  subject, pattern = text_of(subject), text_of(pattern)
  if not is_risky(subject, pattern) then return match(subject, pattern, init) end
  local start = start_of(subject, init)
  if not start then return nil end
  return select(3, checked("match", match_counted(subject, pattern, start, steps_max)))
end

function patterns.gmatch(subject, pattern)
  subject, pattern = text_of(subject), text_of(pattern)
  if not is_risky(subject, pattern) then return gmatch(subject, pattern) end
  local start = 1
  local function step(first, last, ...)
    if first == nil then
      start = #subject + 2
      return nil
    end
    -- Steps over an empty match, or the next match would be the same.
    start = last >= first and last + 1 or first + 1
    return ...
  end
  -- In a gmatch a caret just stands for itself.
  if sub(pattern, 1, 1) == "^" then pattern = "%" .. pattern end
  return function()
    if start > #subject + 1 then return nil end
    return step(checked("gmatch", match_counted(subject, pattern, start, steps_max)))
  end
end

-- The replacement of a match.
local function replaced(whole, replacement, ...)
  local kind, value = type(replacement), nil
  if kind == "table" then
    value = replacement[(...)]
  elseif kind == "function" then
    value = replacement(...)
  else
    local captures = { [0] = whole, ... }
    value = gsub(replacement, "%%(.)", function(digit)
      local capture = captures[tonumber(digit)]
      if digit == "%" then return "%" end
      if capture == nil then error("invalid capture index in replacement string", 0) end
      return tostring(capture)
    end)
  end
  if value == nil or value == false then return whole end
  if type(value) ~= "string" and type(value) ~= "number" then
    error(format("invalid replacement value (a %s)", type(value)), 0)
  end
  return value
end

-- Whether a replacement may call functions. If C called them, they would use up the C stack if they
-- replace, too.
local function may_call(replacement)
  local kind = type(replacement)
  return kind == "function" or kind == "table" and getmetatable(replacement) ~= nil
end

function patterns.gsub(subject, pattern, replacement, limit)
  subject, pattern = text_of(subject), text_of(pattern)
  if type(subject) ~= "string" or type(pattern) ~= "string"
    or not (may_call(replacement) or is_risky(subject, pattern)) then
    return gsub(subject, pattern, replacement, limit)
  end
  local pieces, count, start = {}, 0, 1
  local function step(first, last, ...)
    if first == nil then return false end
    pieces[#pieces + 1] = sub(subject, start, first - 1)
    pieces[#pieces + 1] = replaced(sub(subject, first, last), replacement, ...)
    count = count + 1
    if last >= first then
      start = last + 1
    else
      pieces[#pieces + 1] = sub(subject, first, first)
      start = first + 1
    end
    return true
  end
  while count < (limit or math.huge) and start <= #subject + 1 do
    if not step(checked("gsub", match_counted(subject, pattern, start, steps_max))) then break end
    if sub(pattern, 1, 1) == "^" then break end
  end
  pieces[#pieces + 1] = sub(subject, start)
  return table.concat(pieces), count
end

core.patterns = patterns
