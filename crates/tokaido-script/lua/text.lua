-- Keys, values and integers from procedures: what is accepted, and how it is converted.

local core = ...

local native = core.native
local context, reply, number_to_text = native.context, native.reply, native.number_text
local ffi_string, istype = native.string, core.ffi.istype
local int64, uint64 = core.ffi.typeof "int64_t", core.ffi.typeof "uint64_t"
local floor, format, sub = math.floor, string.format, string.sub
local type, tostring, error = type, tostring, error

-- Up to here a Lua number represents every integer exactly.
local EXACT_MAX = 2 ^ 53

local text = { NO_COLON = "call methods with a colon, as in db:get(key)" }

local function is_exact(number)
  return number == floor(number) and number >= -EXACT_MAX and number <= EXACT_MAX
end

-- The shortest decimal of a number, without an exponent, and without ".0" for an integer.
local function number_text(number, level)
  if is_exact(number) then return format("%d", number) end
  if number_to_text(context, number) ~= 1 then native.fail(level + 1) end
  return ffi_string(reply.data, reply.data_len)
end

-- A string or number as bytes; nil for anything else.
local function bytes_of(value, level)
  local kind = type(value)
  if kind == "string" then return value end
  if kind == "number" then return number_text(value, level + 1) end
  if kind == "cdata" then
    if istype(int64, value) then return sub(tostring(value), 1, -3) end
    if istype(uint64, value) then return sub(tostring(value), 1, -4) end
  end
  return nil
end

local function described(value)
  if type(value) == "nil" then return "nil" end
  return "a " .. type(value)
end

-- The bytes of a key. `self` is what the method was called on: the usual cause of a nil key is a
-- dot where a colon belongs.
function text.key(key, self)
  local bytes = bytes_of(key, 3)
  if bytes then return bytes end
  if type(self) ~= "table" then error(text.NO_COLON, 3) end
  error("a key is a string or a number, this one is " .. described(key), 3)
end

-- The bytes of a value; `self` as for a key.
function text.value(value, self)
  local bytes = bytes_of(value, 3)
  if bytes then return bytes end
  if type(self) ~= "table" then error(text.NO_COLON, 3) end
  error("a value is a string or a number, this one is " .. described(value)
    .. (type(value) == "table" and "; tokaido.json.encode makes a string of it" or ""), 3)
end

-- The bytes of an element of a collection; `self` as for a key.
function text.element(element, self, what)
  local bytes = bytes_of(element, 3)
  if bytes then return bytes end
  if type(self) ~= "table" then error(text.NO_COLON, 3) end
  error(what .. " is a string or a number, this one is " .. described(element), 3)
end

-- An integer as it is passed to a native function: an exact number, or an int64_t.
function text.integer(value, what)
  if type(value) == "number" then
    if is_exact(value) then return value end
    error(what .. " is an integer, this is " .. tostring(value), 3)
  end
  if istype(int64, value) then return value end
  if istype(uint64, value) and value <= 0x7fffffffffffffffULL then return int64(value) end
  error(what .. " is an integer, this is " .. described(value), 3)
end

-- An integer as procedures see it: a number if that is exact, else an int64_t.
function text.narrow(value)
  if value >= -9007199254740992LL and value <= 9007199254740992LL then return tonumber(value) end
  return value
end

-- A finite number.
function text.number(value, what, level)
  if type(value) ~= "number" or value ~= value or value - value ~= 0 then
    error(what .. " is a number, this is " .. tostring(value), (level or 2) + 1)
  end
  return value
end

-- For Rust: a 64-bit integer from its two halves, and back.
function text.integer_from_halves(high, low)
  return int64(high) * 4294967296LL + int64(low)
end

function text.integer_to_halves(value)
  if istype(uint64, value) then
    if value > 0x7fffffffffffffffULL then return nil end
    value = int64(value)
  end
  if not istype(int64, value) then return nil end
  local low = value % 4294967296LL
  if low < 0 then low = low + 4294967296LL end
  return tonumber((value - low) / 4294967296LL), tonumber(low)
end

-- A wrong value, for a message.
function text.shown(value)
  if type(value) == "number" then return tostring(value) end
  return described(value)
end

text.described = described
text.bytes_of = bytes_of
text.int64, text.istype = int64, istype
core.text = text
