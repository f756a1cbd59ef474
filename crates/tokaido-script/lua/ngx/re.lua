-- `ngx.re.match`, `find` and `gmatch`.

local core = ...

local regexes = core.regexes
local get, run, settle, start_of = regexes.get, regexes.run, regexes.settle, regexes.start_of
local message_of = regexes.message_of
local NOMATCH, BAD_OFFSET = regexes.NOMATCH, regexes.BAD_OFFSET
local text_of = core.text_of
local type, error, pairs, floor = type, error, pairs, math.floor
local sub = string.sub
local described = core.text.described
local new_table = core.rust.preload["table.new"]()

local re = {}

-- Adds the named groups. Several groups of one name give a list, if that was asked for.
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

-- What the last match found, in a table: the whole at 0, groups by number and by name.
local function captures(regex, subject)
  local offsets, groups = regex.offsets, regex.groups
  local res = new_table(groups, regex.names and #regex.names or 0)
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
  subject = text_of(subject)
  local start, why = 0, nil
  if ctx then start, why = start_of(ctx) end
  local regex, fault = get(pattern, options)
  if not regex then return nil, fault end
  if not start then return nil, why end
  if start > #subject then return nil, message_of(BAD_OFFSET) end
  local found = run(regex.address, subject, #subject, start)
  if found < 0 then
    found, why = settle(regex, subject, start, found)
    if found == NOMATCH then return nil end
    if not found then return nil, why end
  end
  local to, made = regex.offsets[2], captures(regex, subject)
  -- Both may be the script's tables with metamethods, which run only now.
  if ctx then ctx.pos = to + 1 end
  if not res then return made end
  for key, value in pairs(made) do res[key] = value end
  return res
end

function re.find(subject, pattern, options, ctx, nth)
  subject = text_of(subject)
  if nth and type(nth) ~= "number" then
    error("the number of a group is a number, this is " .. described(nth), 2)
  end
  local start, why = 0, nil
  if ctx then start, why = start_of(ctx) end
  local regex, fault = get(pattern, options)
  if not regex then return nil, nil, fault end
  if not start then return nil, nil, why end
  if start > #subject then return nil, nil, message_of(BAD_OFFSET) end
  local found = run(regex.address, subject, #subject, start)
  if found < 0 then
    found, why = settle(regex, subject, start, found)
    if found == NOMATCH then return nil end
    if not found then return nil, nil, why end
  end
  local offsets = regex.offsets
  local from, to, group_from, group_to = offsets[0], offsets[2], nil, nil
  local has_group = nth and nth > 0 and nth <= regex.groups
  if has_group then
    local group = 4 * floor(nth)
    group_from, group_to = offsets[group], offsets[group + 2]
  end
  -- This may be the script's table with metamethods, which run only now.
  if ctx then ctx.pos = to + 1 end
  if has_group then
    if group_from < 0 then return nil, nil end
    return group_from + 1, group_to
  end
  if nth and nth > 0 then return nil, nil, "nth out of bound" end
  return from + 1, to
end

-- Where the search continues after an empty match: at the next character, which may take several bytes in UTF-8.
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
  subject = text_of(subject)
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
