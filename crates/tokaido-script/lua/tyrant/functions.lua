-- The functions that touch no database: texts, numbers, lists, the log and the time; and the ones that are refused.

local core = ...

local tyrant, cabinet, native = core.tyrant, core.cabinet, core.native
local context, reply, ffi_string = native.context, native.reply, native.string
local text_of, invalid, refuse = cabinet.text_of, tyrant.invalid, tyrant.refuse
local type, tonumber, select = type, tonumber, select
local lower, byte, char, concat = string.lower, string.byte, string.char, table.concat
local floor, find = math.floor, core.patterns.find

local YES, NO, NO_EXPRESSION = 1, 0, 2

local functions = tyrant.functions

-- Tokyo Tyrant's levels: debug, information, error, system. The other numbers are the server's.
local LEVELS = { [0] = 3, 2, 0, 2 }

function functions._log(message, level)
  message = text_of(message)
  if message == nil then invalid("_log") end
  native.log(context, LEVELS[tonumber(level) or 1] or 2, message, #message)
end

function functions._time(...)
  if select("#", ...) ~= 0 then invalid("_time") end
  native.cabinet_time(context)
  return reply.number
end

-- Calls run one by one, so a call that slept would hold up all writes.
function functions._sleep(...)
  local seconds = tonumber((...))
  if select("#", ...) ~= 1 or seconds == nil then invalid("_sleep") end
  if seconds > 0 then
    refuse("_sleep", "a call is a transaction, and while it slept no other could write")
  end
  return true
end

-- All numbers in lists among the arguments, and single ones.
function functions._pack(format, ...)
  format = text_of(format)
  if format == nil then invalid("_pack") end
  local numbers, count = {}, 0
  for i = 1, select("#", ...) do
    local argument = (select(i, ...))
    if type(argument) == "table" then
      for j = 1, #argument do
        count = count + 1
        numbers[count] = argument[j]
      end
    else
      count = count + 1
      numbers[count] = tonumber(argument) or 0
    end
  end
  return cabinet.pack(format, numbers, count)
end

function functions._unpack(...)
  local format, text = ...
  format = text_of(format)
  if select("#", ...) ~= 2 or format == nil then invalid("_unpack") end
  return cabinet.unpack(format, text_of(text) or "")
end

function functions._split(text, delims)
  text = text_of(text)
  if text == nil then invalid("_split") end
  return cabinet.split(text, text_of(delims) or "\0")
end

local codec = native.tyrant_codec
function functions._codec(...)
  local mode, text = ...
  mode, text = text_of(mode), text_of(text)
  if select("#", ...) ~= 2 or mode == nil or text == nil then invalid("_codec") end
  local name = lower(mode)
  if name == "tcbs" or name == "~tcbs" then
    refuse("_codec with tcbs", "that is an encoding of Tokyo Cabinet alone; bzip is of its kind")
  end
  local code = codec(context, mode, #mode, text, #text)
  if code == YES then return ffi_string(reply.data, reply.data_len) end
  if code ~= NO then native.fail(3) end
  return nil
end

-- As in src/bridge/tyrant.rs.
local HASHES = { md5 = 0, md5raw = 1, crc32 = 2 }

function functions._hash(...)
  local mode, text = ...
  mode, text = text_of(mode), text_of(text)
  if select("#", ...) ~= 2 or mode == nil or text == nil then invalid("_hash") end
  local kind = HASHES[lower(mode)]
  if not kind then return nil end
  native.tyrant_hash(context, kind, text, #text)
  if kind == HASHES.crc32 then return reply.number end
  return ffi_string(reply.data, reply.data_len)
end

function functions._bit(mode, number, other)
  mode = text_of(mode)
  local result = mode and cabinet.bit(mode, tonumber(number) or 0, other)
  if not result then invalid("_bit") end
  return result
end

function functions._strstr(text, pattern, alternative)
  text, pattern, alternative = text_of(text), text_of(pattern), text_of(alternative)
  if text == nil or pattern == nil then invalid("_strstr") end
  if alternative ~= nil then return cabinet.replace(text, pattern, alternative) end
  return find(text, pattern, 1, true) or 0
end

local regex = native.tyrant_regex
function functions._regex(text, pattern, alternative)
  text, pattern, alternative = text_of(text), text_of(pattern), text_of(alternative)
  if text == nil or pattern == nil then invalid("_regex") end
  local by, by_len = alternative or "", alternative and #alternative or -1
  local code = regex(context, text, #text, pattern, #pattern, by, by_len)
  if code ~= YES and code ~= NO and code ~= NO_EXPRESSION then native.fail(3) end
  -- An invalid expression matches nothing.
  if by_len < 0 then return code == YES end
  if code == YES then return ffi_string(reply.data, reply.data_len) end
  return text
end

local function is_tail(group) return group ~= nil and group >= 0x80 and group < 0xc0 end

-- The code points of the characters of a UTF-8 text, without those of more than 16 bits. A byte that is not part of a
-- character is skipped.
local function codes_of(text)
  local codes, count, at, len = {}, 0, 1, #text
  while at <= len do
    local first, second, third, fourth = byte(text, at, at + 3)
    local code, width = nil, 1
    if first < 0x80 then
      code = first
    elseif first >= 0xc0 and first < 0xe0 and is_tail(second) then
      code, width = first % 0x20 * 0x40 + second % 0x40, 2
    elseif first >= 0xe0 and first < 0xf0 and is_tail(second) and is_tail(third) then
      code, width = first % 0x10 * 0x1000 + second % 0x40 * 0x40 + third % 0x40, 3
    elseif first >= 0xf0 and is_tail(second) and is_tail(third) and is_tail(fourth) then
      width = 4
    end
    at = at + width
    if code then
      count = count + 1
      codes[count] = code
    end
  end
  return codes
end

local function text_of_codes(codes)
  local pieces = {}
  for i = 1, #codes do
    local code = floor(tonumber(codes[i]) or 0) % 0x10000
    if code < 0x80 then
      pieces[i] = char(code)
    elseif code < 0x800 then
      pieces[i] = char(0xc0 + floor(code / 0x40), 0x80 + code % 0x40)
    else
      pieces[i] = char(
        0xe0 + floor(code / 0x1000), 0x80 + floor(code / 0x40) % 0x40, 0x80 + code % 0x40)
    end
  end
  return concat(pieces)
end

function functions._ucs(...)
  local given = ...
  if select("#", ...) ~= 1 then invalid("_ucs") end
  if type(given) == "table" then return text_of_codes(given) end
  given = text_of(given)
  if given == nil then invalid("_ucs") end
  return codes_of(given)
end

local distance = native.cabinet_distance
function functions._dist(a, b, is_utf8)
  a, b = text_of(a), text_of(b)
  if a == nil or b == nil then invalid("_dist") end
  if distance(context, a, #a, b, #b, is_utf8 and 1 or 0) ~= YES then native.fail(3) end
  return reply.number
end

-- The lists among the arguments; for a single list, the lists that it begins with, if it does.
local function lists_of(...)
  local lists = {}
  local first = ...
  if select("#", ...) == 1 and type(first) == "table" and type(first[1]) == "table" then
    for i = 1, #first do
      if type(first[i]) ~= "table" then break end
      lists[i] = first[i]
    end
    return lists
  end
  for i = 1, select("#", ...) do
    local list = (select(i, ...))
    if type(list) == "table" then lists[#lists + 1] = list end
  end
  return lists
end

-- How many of the lists contain each text, and the texts in order.
local function counted(lists)
  local counts, order = {}, {}
  for place = 1, #lists do
    local list, seen = lists[place], {}
    for i = 1, #list do
      local text = text_of(list[i])
      if text ~= nil and not seen[text] then
        seen[text] = true
        if not counts[text] then order[#order + 1] = text end
        counts[text] = (counts[text] or 0) + 1
      end
    end
  end
  return counts, order
end

function functions._isect(...)
  local lists = lists_of(...)
  local counts, order = counted(lists)
  local common = {}
  for i = 1, #order do
    if counts[order[i]] == #lists then common[#common + 1] = order[i] end
  end
  return common
end

function functions._union(...)
  local _, order = counted(lists_of(...))
  return order
end

function functions._eval()
  refuse("_eval", "a script changes what it has at a reload, in all threads at once")
end

local FILES = "a script does not touch files"
function functions._stat() refuse("_stat", FILES) end
function functions._glob() refuse("_glob", FILES) end
function functions._remove() refuse("_remove", FILES) end
function functions._mkdir() refuse("_mkdir", FILES) end
