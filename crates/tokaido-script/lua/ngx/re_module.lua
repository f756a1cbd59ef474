-- The module `ngx.re`: splitting by a regular expression, and its options.

local core = ...

local regexes = core.regexes
local get, run, settle, start_of = regexes.get, regexes.run, regexes.settle, regexes.start_of
local NOMATCH, after_character = regexes.NOMATCH, regexes.after_character
local text_of = core.text_of
local error, tonumber = error, tonumber
local sub = string.sub

-- The pieces of a text between matches; the first group of the expression becomes a piece as well. If no maximum is
-- given, empty pieces at the end are left out.
local function split(subject, pattern, options, ctx, max, res)
  subject = text_of(subject)
  local first, wrong = 0, nil
  if ctx then first, wrong = start_of(ctx) end
  local regex, why = get(pattern, options)
  if not regex then return nil, why end
  if not first then return nil, wrong end
  max = tonumber(max) or 0
  local pieces, start, len = {}, first, #subject
  -- Where the piece begins; how many pieces there are, and how many of them are between matches.
  local piece, count, parts = start, 0, 0
  while start < len and (max <= 0 or parts < max - 1) do
    local found = run(regex.address, subject, len, start)
    if found < 0 then
      found, why = settle(regex, subject, start, found)
      if not found then return nil, why end
      if found == NOMATCH then break end
    end
    local offsets = regex.offsets
    local from, to = offsets[0], offsets[2]
    if to == from and to == len then break end
    if to == from and to == piece then
      -- Nothing would be split off.
      start = after_character(regex, subject, to)
    else
      count, parts = count + 1, parts + 1
      pieces[count] = sub(subject, piece + 1, from)
      if regex.groups > 0 and offsets[4] >= 0 then
        count = count + 1
        pieces[count] = sub(subject, offsets[4] + 1, offsets[6])
      end
      start, piece = to, to
    end
  end
  if first < len then
    count = count + 1
    pieces[count] = sub(subject, piece + 1)
  end
  if max <= 0 then
    while count > 0 and pieces[count] == "" do
      pieces[count] = nil
      count = count - 1
    end
  end
  if not res then return pieces end
  -- This may be the script's table with metamethods, which run only now.
  for i = 1, count do res[i] = pieces[i] end
  res[count + 1] = nil
  return res
end

core.modules["ngx.re"] = function()
  return {
    version = "0.1.25",
    split = split,
    opt = function(option, value)
      if option ~= "jit_stack_size" then error("unrecognized option name", 2) end
      value = tonumber(value)
      if not value then error("bad value of jit_stack_size", 2) end
      regexes.set_stack(value)
    end,
  }
end
