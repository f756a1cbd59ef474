-- The functions of `__kyototycoon__`: numbers and texts.

local core = ...

local kyoto, native, cabinet = core.kyoto, core.native, core.cabinet
local context, reply, ffi_string = native.context, native.reply, native.string
local text_of, invalid = kyoto.text_of, kyoto.invalid
local type, tonumber, pairs, select = type, tonumber, pairs, select
local floor, match, sub, lower = math.floor, string.match, string.sub, string.lower
local find = core.patterns.find
local concat = table.concat

local YES, NO, NO_EXPRESSION = 1, 0, 2

local functions = {}

local LEVELS = { debug = 3, info = 2, system = 2, error = 0 }

function functions.log(kind, message)
  kind, message = text_of(kind), text_of(message)
  if kind == nil or message == nil then invalid("kt_log") end
  native.log(context, LEVELS[lower(kind)] or 2, message, #message)
end

-- The number that a text begins with, as text; nil if it begins with none. None of the patterns backtracks
-- over what it has matched, so they take no longer than the text is long.
local function number_text(text)
  local whole, at = match(text, "^[%c ]*([-+]?%d*)()")
  local fraction, behind = match(text, "^(%.?%d*)()", at)
  local number = whole .. fraction
  if not match(number, "%d") then return nil end
  return number .. (match(text, "^[eE][-+]?%d+", behind) or "")
end

function functions.atoi(text)
  text = text_of(text)
  if text == nil then invalid("kt_atoi") end
  return tonumber(match(text, "^[%c ]*([-+]?%d+)") or 0)
end

local UNITS = { k = 2 ^ 10, m = 2 ^ 20, g = 2 ^ 30, t = 2 ^ 40, p = 2 ^ 50, e = 2 ^ 60 }

-- A number with a unit, as an integer of at most 64 bits.
function functions.atoix(text)
  text = text_of(text)
  if text == nil then invalid("kt_atoix") end
  local number, unit = match(text, "^[%c ]*([-+]?%d+%.?%d*)[%c ]*(%a?)")
  if not number then return 0 end
  local value = tonumber(number) * (UNITS[lower(unit)] or 1)
  value = value < 0 and -floor(-value) or floor(value)
  if value > 2 ^ 63 then return 2 ^ 63 end
  if value < -2 ^ 63 then return -2 ^ 63 end
  return value
end

function functions.atof(text)
  text = text_of(text)
  if text == nil then invalid("kt_atof") end
  local word = lower(match(text, "^[%c ]*([-+]?%a*)"))
  if word == "inf" or word == "+inf" then return math.huge end
  if word == "-inf" then return -math.huge end
  if word == "nan" then return 0 / 0 end
  return tonumber(number_text(text)) or 0
end

local hash = native.cabinet_hash
function functions.hash_murmur(text)
  text = text_of(text)
  if text == nil then invalid("kt_hash_murmur") end
  hash(context, 0, text, #text)
  return reply.number
end

function functions.hash_fnv(text)
  text = text_of(text)
  if text == nil then invalid("kt_hash_fnv") end
  hash(context, 1, text, #text)
  return reply.number
end

local distance = native.cabinet_distance
function functions.levdist(a, b, is_utf8)
  a, b = text_of(a), text_of(b)
  if a == nil or b == nil then invalid("kt_levdist") end
  if distance(context, a, #a, b, #b, is_utf8 and 1 or 0) ~= YES then native.fail(3) end
  return reply.number
end

local cabinet_time = native.cabinet_time
function functions.time()
  cabinet_time(context)
  return reply.number
end

-- The writer runs calls of this dialect one by one, so a call that slept would hold up all writes.
function functions.sleep(seconds)
  if seconds ~= nil and tonumber(seconds) == nil then invalid("kt_sleep") end
  if (tonumber(seconds) or 0) <= 0 then return end
  kyoto.refuse("sleep", "a call is a transaction, and while it slept no other could write")
end

local codec = native.cabinet_codec
function functions.codec(mode, text)
  mode, text = text_of(mode), text_of(text)
  if mode == nil or text == nil then invalid("kt_codec") end
  local code = codec(context, mode, #mode, text, #text)
  if code == YES then return ffi_string(reply.data, reply.data_len) end
  if code ~= NO then native.fail(3) end
  return nil
end

function functions.bit(mode, number, other)
  mode, number = text_of(mode), tonumber(number)
  if mode == nil or number == nil then invalid("kt_bit") end
  return cabinet.bit(mode, number, other) or number % 2 ^ 32
end

function functions.strstr(text, pattern, alternative)
  text, pattern = text_of(text), text_of(pattern)
  if text == nil or pattern == nil then invalid("kt_strstr") end
  if alternative == nil then return find(text, pattern, 1, true) or 0 end
  alternative = text_of(alternative)
  if alternative == nil then invalid("kt_strstr") end
  return cabinet.replace(text, pattern, alternative)
end

function functions.strfwm(text, pattern)
  text, pattern = text_of(text), text_of(pattern)
  if text == nil or pattern == nil then invalid("kt_strfwm") end
  return sub(text, 1, #pattern) == pattern
end

function functions.strbwm(text, pattern)
  text, pattern = text_of(text), text_of(pattern)
  if text == nil or pattern == nil then invalid("kt_strbwm") end
  return pattern == "" or sub(text, -#pattern) == pattern
end

local regex = native.cabinet_regex
function functions.regex(text, pattern, alternative)
  text, pattern = text_of(text), text_of(pattern)
  if text == nil or pattern == nil then invalid("kt_regex") end
  local by, by_len = "", -1
  if alternative ~= nil then
    by = text_of(alternative)
    if by == nil then invalid("kt_regex") end
    by_len = #by
  end
  local code = regex(context, text, #text, pattern, #pattern, by, by_len)
  if code ~= YES and code ~= NO and code ~= NO_EXPRESSION then native.fail(3) end
  -- An invalid expression matches nothing.
  if by_len < 0 then return code == YES end
  if code == YES then return ffi_string(reply.data, reply.data_len) end
  return text
end

function functions.split(text, delims)
  text, delims = text_of(text), delims == nil and "\0" or text_of(delims)
  if text == nil or delims == nil then invalid("kt_split") end
  return cabinet.split(text, delims)
end

local item_text, var_number, read_var_number = kyoto.item_text, cabinet.var_number, cabinet.read_var_number

function functions.arraydump(items)
  if type(items) ~= "table" then invalid("kt_arraydump") end
  local pieces = {}
  for i = 1, #items do
    local text = item_text(items[i])
    if text then
      pieces[#pieces + 1] = var_number(#text)
      pieces[#pieces + 1] = text
    end
  end
  return concat(pieces)
end

-- The text whose length is stored at a position, and the position after it.
local function read_text(text, at)
  local len, from = read_var_number(text, at)
  if not len or from + len - 1 > #text then return nil end
  return sub(text, from, from + len - 1), from + len
end

function functions.arrayload(text)
  text = text_of(text)
  if text == nil then invalid("kt_arrayload") end
  local items, count = {}, 0
  local item, at = read_text(text, 1)
  while item do
    count = count + 1
    items[count] = item
    item, at = read_text(text, at)
  end
  return items
end

function functions.mapdump(map)
  if type(map) ~= "table" then invalid("kt_mapdump") end
  local pieces = {}
  for key, value in pairs(map) do
    key, value = item_text(key), item_text(value)
    if key and value then
      pieces[#pieces + 1] = var_number(#key) .. var_number(#value)
      pieces[#pieces + 1] = key
      pieces[#pieces + 1] = value
    end
  end
  return concat(pieces)
end

function functions.mapload(text)
  text = text_of(text)
  if text == nil then invalid("kt_mapload") end
  local map, at = {}, 1
  while true do
    local key_len, value_len
    key_len, at = read_var_number(text, at)
    if not key_len then return map end
    value_len, at = read_var_number(text, at)
    if not value_len or at + key_len + value_len - 1 > #text then return map end
    map[sub(text, at, at + key_len - 1)] = sub(text, at + key_len, at + key_len + value_len - 1)
    at = at + key_len + value_len
  end
end

function functions.pack(format, items, ...)
  if type(format) ~= "string" then invalid("kt_pack") end
  local numbers, count = {}, 0
  if type(items) == "table" then
    for i = 1, #items do numbers[i] = items[i] end
    count = #items
  elseif items ~= nil then
    numbers[1], count = items, 1
  end
  for i = 1, select("#", ...) do
    count = count + 1
    numbers[count] = (select(i, ...))
  end
  return cabinet.pack(format, numbers, count)
end

function functions.unpack(format, text)
  if type(format) ~= "string" or type(text) ~= "string" then invalid("kt_unpack") end
  return cabinet.unpack(format, text)
end

kyoto.functions = functions
