-- Numbers as bytes, for `pack` and `unpack`.

local core = ...

local cabinet, ffi = core.cabinet, core.ffi
local tonumber = tonumber
local floor, sub, concat, gmatch = math.floor, string.sub, table.concat, string.gmatch
local reverse, find = string.reverse, string.find
local var_number, read_var_number = cabinet.var_number, cabinet.read_var_number

-- Maximum number of items in one call, which a count in the format could otherwise make endless.
local ITEMS_MAX = 2 ^ 20

local function kind(c_type, size, is_network)
  return { c_type = ffi.typeof(c_type .. "[1]"), size = size, is_network = is_network }
end

-- In the machine's byte order, except for those in network byte order.
local KINDS = {
  c = kind("int8_t", 1), C = kind("uint8_t", 1), s = kind("int16_t", 2), S = kind("uint16_t", 2),
  i = kind("int32_t", 4), I = kind("uint32_t", 4), l = kind("int64_t", 8), L = kind("uint64_t", 8),
  f = kind("float", 4), d = kind("double", 8),
  n = kind("uint16_t", 2, true), N = kind("uint32_t", 4, true), M = kind("uint64_t", 8, true),
}
local IS_REAL = { f = true, d = true }

local int64 = ffi.typeof "int64_t"

local function bytes_of(letter, number)
  if letter == "w" then return var_number(floor(number) % 2 ^ 53) end
  local made = KINDS[letter]
  local box = made.c_type()
  -- Converts to 64 bits first, so that a number that does not fit loses its highest bits.
  box[0] = IS_REAL[letter] and number or number >= 2 ^ 63 and ffi.cast("uint64_t", number) or int64(number)
  local bytes = ffi.string(box, made.size)
  return made.is_network and reverse(bytes) or bytes
end

local function number_of(letter, text, at)
  if letter == "w" then return read_var_number(text, at) end
  local made = KINDS[letter]
  if at + made.size - 1 > #text then return nil end
  local bytes = sub(text, at, at + made.size - 1)
  if made.is_network then bytes = reverse(bytes) end
  local box = made.c_type()
  ffi.copy(box, bytes, made.size)
  return tonumber(box[0]), at + made.size
end

-- The letters of a format, each with its count: a number, or as many as there are.
local function letters(format)
  return gmatch(format, "([cCsSiIlLfFdDnNMwW])([%d*]*)")
end

-- Letters that mean the same.
local SAME = { F = "f", D = "d", W = "w" }

local function count_of(text)
  if find(text, "*", 1, true) then return ITEMS_MAX end
  return math.min(tonumber(text) or 1, ITEMS_MAX)
end

-- Packs the first `count` numbers of a list into bytes. Anything that is not a number counts as 0.
function cabinet.pack(format, numbers, count)
  local pieces, place = {}, 0
  for letter, times in letters(format) do
    letter = SAME[letter] or letter
    for _ = 1, count_of(times) do
      if place == count then break end
      place = place + 1
      pieces[place] = bytes_of(letter, tonumber(numbers[place]) or 0)
    end
  end
  return concat(pieces)
end

-- The numbers that the bytes stand for, as a list.
function cabinet.unpack(format, text)
  local numbers, at = {}, 1
  for letter, times in letters(format) do
    letter = SAME[letter] or letter
    for _ = 1, count_of(times) do
      local number, behind = number_of(letter, text, at)
      -- An incomplete number ends the list.
      if not number or #numbers == ITEMS_MAX then return numbers end
      numbers[#numbers + 1], at = number, behind
    end
  end
  return numbers
end
