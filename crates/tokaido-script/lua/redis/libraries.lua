-- `cjson`, `cmsgpack` and `struct`. The work is done in Rust, on values; what is set of cjson holds until
-- the script ends, as a seed does.

local core = ...

local seeded, context = core.native.seeded, core.native.context
local codec, context_address, CODECS = core.rust.codec, core.rust.context, core.rust.codecs
local error, type, select, unpack = error, type, select, unpack
local tostring, tonumber = tostring, tonumber
local floor, format = math.floor, string.format

-- Maximum number of digits of a number in JSON.
local DIGITS_MAX = 14
-- Maximum of any other setting.
local INTEGER_MAX = 2 ^ 31 - 1

local function fail(message) error(core.where() .. message, 0) end

local function run(place, ...)
  local ok, result = codec(context_address, place, ...)
  if not ok then fail(result) end
  return result
end

local function bad(place, name, why)
  fail(format("bad argument #%d to '%s' (%s)", place, name, why))
end

local function described(value)
  if value == nil then return "no value" end
  return type(value)
end

-- A text, or a number as one.
local function text(value, place, name)
  if type(value) == "string" then return value end
  if type(value) == "number" then return tostring(value) end
  bad(place, name, "string expected, got " .. described(value))
end

-- A setting that is on or off, or another of its words.
local function word(value, current, place, name, words)
  if value == nil then return current end
  if type(value) == "boolean" then return value and "on" or "off" end
  if type(value) ~= "string" and type(value) ~= "number" then
    bad(place, name, "string expected, got " .. type(value))
  end
  if not words[value] then bad(place, name, format("invalid option '%s'", tostring(value))) end
  return value
end

local function shown(word)
  if word == "on" then return true end
  if word == "off" then return false end
  return word
end

local ON_OFF = { on = true, off = true }
local ON_OFF_NULL = { on = true, off = true, null = true }

local function integer(value, current, place, name, least, most)
  if value == nil then return current end
  local number = tonumber(value)
  if not number then bad(place, name, "number expected, got " .. type(value)) end
  number = number < 0 and -floor(-number) or floor(number)
  if number < least or number > most then
    bad(1, name, format("expected integer between %d and %d", least, most))
  end
  return number
end

local function check_count(count, most, name)
  if count > most then bad(most + 1, name, "found too many arguments") end
end

-- A cjson with settings of its own, as `cjson.new()` makes it.
local function new_cjson()
  local set, json = {}, { _NAME = "cjson", _VERSION = "2.1.0", null = core.null }

  function set.reset()
    set.sparse_converts, set.sparse_ratio, set.sparse_safe = "off", 2, 10
    set.encode_depth, set.decode_depth, set.digits = 1000, 1000, DIGITS_MAX
    set.encode_invalid, set.decode_invalid, set.keeps = "off", "on", "on"
  end
  set.reset()

  function json.encode(...)
    if select("#", ...) ~= 1 then bad(1, "encode", "expected 1 argument") end
    return run(CODECS.json_encode, (...), set.sparse_converts == "on", set.sparse_ratio,
      set.sparse_safe, set.encode_depth, set.digits, set.encode_invalid)
  end

  function json.decode(...)
    if select("#", ...) ~= 1 then bad(1, "decode", "expected 1 argument") end
    local given = text((...), 1, "decode")
    return run(CODECS.json_decode, given, set.decode_depth, set.decode_invalid)
  end

  function json.encode_sparse_array(...)
    local name = "encode_sparse_array"
    check_count(select("#", ...), 3, name)
    local converts, ratio, safe = ...
    seeded(context)
    set.sparse_converts = word(converts, set.sparse_converts, 1, name, ON_OFF)
    set.sparse_ratio = integer(ratio, set.sparse_ratio, 2, name, 0, INTEGER_MAX)
    set.sparse_safe = integer(safe, set.sparse_safe, 3, name, 0, INTEGER_MAX)
    return shown(set.sparse_converts), set.sparse_ratio, set.sparse_safe
  end

  -- A setting of one integer.
  local function number_setting(name, field, most)
    json[name] = function(...)
      check_count(select("#", ...), 1, name)
      seeded(context)
      set[field] = integer((...), set[field], 1, name, 1, most)
      return set[field]
    end
  end
  number_setting("encode_max_depth", "encode_depth", INTEGER_MAX)
  number_setting("decode_max_depth", "decode_depth", INTEGER_MAX)
  number_setting("encode_number_precision", "digits", DIGITS_MAX)

  -- A setting of one word.
  local function word_setting(name, field, words)
    json[name] = function(...)
      check_count(select("#", ...), 1, name)
      seeded(context)
      set[field] = word((...), set[field], 1, name, words)
      return shown(set[field])
    end
  end
  word_setting("encode_keep_buffer", "keeps", ON_OFF)
  word_setting("encode_invalid_numbers", "encode_invalid", ON_OFF_NULL)
  word_setting("decode_invalid_numbers", "decode_invalid", ON_OFF)

  function json.new() return (new_cjson()) end
  return json, set.reset
end

local cjson, reset = new_cjson()

-- Called before the next script if `seeded` was.
local reseed = core.reseed
function core.reseed(seed)
  reseed(seed)
  reset()
end

local cmsgpack = {
  _NAME = "cmsgpack", _VERSION = "lua-cmsgpack 0.4.0",
  _COPYRIGHT = "Copyright (C) 2012, Redis Ltd.", _DESCRIPTION = "MessagePack C implementation for Lua",
}

function cmsgpack.pack(...)
  if select("#", ...) == 0 then bad(0, "pack", "MessagePack pack needs input.") end
  return run(CODECS.pack, ...)
end

-- The first two of the list are the number of values, and where the next one begins.
local function unpacked(given, offset, limit, name)
  given = text(given, 1, name)
  if offset < 0 or limit < 0 then
    fail(format("Invalid request to unpack with offset of %d and limit of %d.", offset, #given))
  end
  if offset > #given then
    fail(format("Start offset %d greater than input length %d.", offset, #given))
  end
  if offset == 0 and limit == 0 then limit = INTEGER_MAX end
  return run(CODECS.unpack, given, offset, limit), #given
end

local function after(list, len)
  return list[2] == len and -1 or list[2], unpack(list, 3, list[1] + 2)
end

function cmsgpack.unpack(given)
  local list = unpacked(given, 0, 0, "unpack")
  return unpack(list, 3, list[1] + 2)
end

function cmsgpack.unpack_one(given, offset)
  return after(unpacked(given, integer(offset, 0, 2, "unpack_one", -INTEGER_MAX, INTEGER_MAX), 1,
    "unpack_one"))
end

function cmsgpack.unpack_limit(given, limit, offset)
  local name = "unpack_limit"
  limit = integer(limit, nil, 2, name, -INTEGER_MAX, INTEGER_MAX)
  if not limit then bad(2, name, "number expected, got no value") end
  offset = integer(offset, 0, 3, name, -INTEGER_MAX, INTEGER_MAX)
  if limit == 0 and offset == 0 then return cmsgpack.unpack(given) end
  return after(unpacked(given, offset, limit, name))
end

local struct = {}

function struct.pack(...) return run(CODECS.struct_pack, ...) end

function struct.unpack(...)
  local list = run(CODECS.struct_unpack, ...)
  return unpack(list, 1, #list)
end

function struct.size(...) return run(CODECS.struct_size, ...) end

local globals = core.redis_globals
globals.cjson, globals.cmsgpack = core.read_only(cjson), core.read_only(cmsgpack)
globals.struct = core.read_only(struct)
