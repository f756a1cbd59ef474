-- Operations on texts and numbers that the Kyoto Tycoon and Tokyo Tyrant dialects have in common.

local core = ...

local find, sub, byte, char = core.patterns.find, string.sub, string.byte, string.char
local lower, concat, floor, tonumber = string.lower, table.concat, math.floor, tonumber

local type, tostring = type, tostring

-- `NAME` is the key under which a database has its name; no program can name it.
local cabinet = { NAME = function() end }

-- A string, or a number as Lua writes it; nil for anything else.
function cabinet.text_of(value)
  if type(value) == "string" then return value end
  if type(value) == "number" then return tostring(value) end
  return nil
end

local bits = core.sandbox.libraries.bit
local BITS = {
  ["and"] = function(number, other) return bits.band(number, other) end,
  ["or"] = function(number, other) return bits.bor(number, other) end,
  xor = function(number, other) return bits.bxor(number, other) end,
  ["not"] = function(number) return bits.bnot(number) end,
  -- LuaJIT shifts by the lowest five bits, and so do the processors that Kyoto Tycoon runs on.
  left = function(number, count) return bits.lshift(number, count) end,
  right = function(number, count) return bits.rshift(number, count) end,
}

-- The result of an operation on 32 bits; nil if there is no operation of that name.
function cabinet.bit(mode, number, other)
  local operate = BITS[lower(mode)]
  if not operate then return nil end
  return operate(number % 2 ^ 32, (tonumber(other) or 0) % 2 ^ 32) % 2 ^ 32
end

-- The text with each occurrence of `pattern` replaced by `alternative`.
function cabinet.replace(text, pattern, alternative)
  if pattern == "" then return text end
  local pieces, count, at = {}, 0, 1
  while true do
    local first, last = find(text, pattern, at, true)
    if not first then break end
    pieces[count + 1], pieces[count + 2] = sub(text, at, first - 1), alternative
    count, at = count + 2, last + 1
  end
  pieces[count + 1] = sub(text, at)
  return concat(pieces)
end

-- The pieces between separators, of which each character of `delims` is one.
function cabinet.split(text, delims)
  local is_delim = {}
  for i = 1, #delims do is_delim[byte(delims, i)] = true end
  local pieces, count, at = {}, 0, 1
  for i = 1, #text do
    if is_delim[byte(text, i)] then
      count = count + 1
      pieces[count] = sub(text, at, i - 1)
      at = i + 1
    end
  end
  pieces[count + 1] = sub(text, at)
  return pieces
end

-- A length in groups of seven bits, the highest first; all but the last have the eighth bit set.
function cabinet.var_number(number)
  local bytes = char(number % 128)
  number = floor(number / 128)
  while number > 0 do
    bytes = char(number % 128 + 128) .. bytes
    number = floor(number / 128)
  end
  return bytes
end

-- The number at a position, and the position after it; nil if there is none.
function cabinet.read_var_number(text, at)
  local number = 0
  for place = at, at + 9 do
    local group = byte(text, place)
    if not group then return nil end
    if group < 128 then return number * 128 + group, place + 1 end
    number = number * 128 + group - 128
  end
  return nil
end

core.cabinet = cabinet
