-- `ngx.re.match`, `find` and `gmatch`.

local core = ...

local regexes = core.regexes
local get, run, settle, message_of = regexes.get, regexes.run, regexes.settle, regexes.message_of
local NOMATCH, BAD_OFFSET = regexes.NOMATCH, regexes.BAD_OFFSET
local type, tostring, floor = type, tostring, math.floor
local sub = string.sub
local new_table = core.rust.preload["table.new"]()

local re = {}

-- The place, from 0, at which a context has the search begin.
local function start_of(ctx)
  local pos = ctx.pos
  if not pos or pos <= 0 then return 0 end
  return floor(pos) - 1
end

-- Adds the groups that have names. Several groups of one name give a list, where that was asked for.
local function add_names(regex, res)
  local names, last, list = regex.names, nil, nil
  for i = 1, #names do
    local name, value = names[i].name, res[names[i].group]
    if not regex.joins_names then
      res[name] = value
    elseif value then
      if name == last then
        list[#list + 1] = value
      else
        last, list = name, { value }
        res[name] = list
      end
    end
  end
end

-- What the last match has found, in a table: the whole at 0, groups at their numbers and under their names.
local function captures(regex, subject, res)
  local offsets, groups = regex.offsets, regex.groups
  res = res or new_table(groups, regex.names and #regex.names or 0)
  for group = 0, groups do
    local from = offsets[4 * group]
    if from >= 0 then
      res[group] = sub(subject, from + 1, offsets[4 * group + 2])
    else
      res[group] = false
    end
  end
  if regex.names then add_names(regex, res) end
  return res
end
regexes.captures = captures

function re.match(subject, pattern, options, ctx, res)
  if type(subject) ~= "string" then subject = tostring(subject) end
  local regex, why = get(pattern, options)
  if not regex then return nil, why end
  local start = 0
  if ctx then
    start = start_of(ctx)
    if start > #subject then return nil, message_of(BAD_OFFSET) end
  end
  local found = run(regex.address, subject, #subject, start)
  if found < 0 then
    found, why = settle(regex, subject, start, found)
    if found == NOMATCH then return nil end
    if not found then return nil, why end
  end
  if ctx then ctx.pos = regex.offsets[2] + 1 end
  return captures(regex, subject, res)
end

function re.find(subject, pattern, options, ctx, nth)
  if type(subject) ~= "string" then subject = tostring(subject) end
  local regex, why = get(pattern, options)
  if not regex then return nil, nil, why end
  local start = 0
  if ctx then
    start = start_of(ctx)
    if start > #subject then return nil, nil, message_of(BAD_OFFSET) end
  end
  local found = run(regex.address, subject, #subject, start)
  if found < 0 then
    found, why = settle(regex, subject, start, found)
    if found == NOMATCH then return nil end
    if not found then return nil, nil, why end
  end
  local offsets = regex.offsets
  if ctx then ctx.pos = offsets[2] + 1 end
  if nth and nth > 0 then
    if nth > regex.groups then return nil, nil, "nth out of bound" end
    nth = floor(nth)
    local from = offsets[4 * nth]
    if from < 0 then return nil, nil end
    return from + 1, offsets[4 * nth + 2]
  end
  return offsets[0] + 1, offsets[2]
end

-- Where the search goes on behind an empty match: at the next character, which UTF-8 may write in several bytes.
local byte = string.byte
local function after_character(regex, subject, place)
  place = place + 1
  if regex.is_utf then
    while place < #subject do
      local following = byte(subject, place + 1)
      if following < 0x80 or following > 0xbf then break end
      place = place + 1
    end
  end
  return place
end
regexes.after_character = after_character

function re.gmatch(subject, pattern, options)
  if type(subject) ~= "string" then subject = tostring(subject) end
  local regex, why = get(pattern, options)
  if not regex then return nil, why end
  local start = 0
  return function()
    if start > #subject then return nil end
    regex, why = get(pattern, options)
    if not regex then return nil, why end
    local found = run(regex.address, subject, #subject, start)
    if found < 0 then
      found, why = settle(regex, subject, start, found)
      if not found or found == NOMATCH then start = #subject + 1 end
      if found == NOMATCH then return nil end
      if not found then return nil, why end
    end
    local from, to = regex.offsets[0], regex.offsets[2]
    start = to > from and to or after_character(regex, subject, to)
    return captures(regex, subject)
  end
end

core.ngx.re = re
