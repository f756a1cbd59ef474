-- `ngx.re.sub` and `gsub`.

local core = ...

local regexes, ffi = core.regexes, core.ffi
local get, run, settle = regexes.get, regexes.run, regexes.settle
local text_of, captures, after_character = core.text_of, regexes.captures, regexes.after_character
local NOMATCH = regexes.NOMATCH
-- Not the one that scripts have, which has no pointers.
local buffers = core.rust.preload["string.buffer"]()
local type, tostring, tonumber = type, tostring, tonumber
local find, match, sub = string.find, string.match, string.sub

-- Maximum number of replacements that are kept parsed; one more, and all are dropped.
local TEMPLATES_MAX = 500

local templates, template_count = {}, 0

-- A parsed replacement: texts, and numbers of groups. Nil if it is malformed.
local function parse(text)
  local parts, place = {}, 1
  while true do
    local dollar = find(text, "$", place, true)
    if not dollar then break end
    if dollar > place then parts[#parts + 1] = sub(text, place, dollar - 1) end
    local digits, behind = match(text, "^(%d+)()", dollar + 1)
    if not digits then digits, behind = match(text, "^{(%d+)}()", dollar + 1) end
    if digits then
      parts[#parts + 1] = tonumber(digits)
    elseif sub(text, dollar + 1, dollar + 1) == "$" then
      parts[#parts + 1], behind = "$", dollar + 2
    else
      return nil
    end
    place = behind
  end
  if place <= #text then parts[#parts + 1] = sub(text, place) end
  return parts
end

local function template_of(text)
  local template = templates[text]
  if template then return template end
  template = parse(text)
  if not template then return nil end
  if template_count == TEMPLATES_MAX then templates, template_count = {}, 0 end
  templates[text], template_count = template, template_count + 1
  return template
end

local const_char = ffi.typeof "const char *"

-- Appends what a template makes of the last match.
local function expand(made, template, regex, chars)
  local offsets = regex.offsets
  for i = 1, #template do
    local part = template[i]
    if type(part) == "string" then
      made:put(part)
    elseif part <= regex.groups then
      local from = offsets[4 * part]
      if from >= 0 then made:putcdata(chars + from, offsets[4 * part + 2] - from) end
    end
  end
end

-- Replaces the first match, or all. Gives the new text and how many there were, or nil, nil and why.
local function replace(subject, pattern, replacement, options, is_global)
  subject = text_of(subject)
  local by_function = type(replacement) == "function"
  -- It may have a metamethod, which runs before there is an expression.
  if not by_function then replacement = text_of(replacement) end
  local regex, why = get(pattern, options)
  if not regex then return nil, nil, why end
  local template
  if not by_function then
    template = template_of(replacement)
    if not template then return nil, nil, "failed to compile the replacement template" end
  end
  local chars, len = const_char(subject), #subject
  local made
  local start, copied, count = 0, 0, 0
  repeat
    local found = run(regex.address, subject, len, start)
    if found < 0 then
      found, why = settle(regex, subject, start, found)
      if not found then return nil, nil, why end
      if found == NOMATCH then break end
    end
    made = made or buffers.new()
    local from, to = regex.offsets[0], regex.offsets[2]
    if from > copied then made:putcdata(chars + copied, from - copied) end
    count, copied = count + 1, to
    start = to > from and to or after_character(regex, subject, to)
    if by_function then
      made:put(tostring(replacement(captures(regex, subject))))
      regex, why = get(pattern, options)
      if not regex then return nil, nil, why end
    else
      expand(made, template, regex, chars)
    end
  until start > len or not is_global
  if count == 0 then return subject, 0 end
  if copied < len then made:putcdata(chars + copied, len - copied) end
  return made:tostring(), count
end

local re = core.ngx.re

function re.sub(subject, pattern, replacement, options)
  return replace(subject, pattern, replacement, options, false)
end

function re.gsub(subject, pattern, replacement, options)
  return replace(subject, pattern, replacement, options, true)
end
