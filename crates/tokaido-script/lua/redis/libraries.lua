-- `cjson`, `cmsgpack` and `struct`. The work is done in Rust, on values. Settings of cjson last until the
-- script ends, as does a seed of `math.random`.

local core = ...

local seeded, context = core.native.seeded, core.native.context
local codec, context_address, CODECS = core.rust.codec, core.rust.context, core.rust.codecs
local encode_json, decode_json = core.rust.cjson_encode, core.rust.cjson_decode
local error, select, unpack = error, select, unpack
local format = string.format

local function fail(message) error(core.where() .. message, 0) end

local function run(place, ...)
  local ok, result = codec(context_address, place, ...)
  if not ok then fail(result) end
  return result
end

local bad, text, integer = core.call_arguments.bad, core.call_arguments.text, core.call_arguments.integer
local INTEGER_MAX = core.call_arguments.INTEGER_MAX

core.fail_call = fail

local cjson, reset = core.new_cjson {
  changed = function() seeded(context) end,
  encode = function(value, set)
    return encode_json(context_address, value, set.sparse_converts == "on", set.sparse_ratio, set.sparse_safe,
      set.encode_depth, set.digits, set.encode_invalid, true, true)
  end,
  decode = function(given, set)
    return decode_json(context_address, given, set.decode_depth, set.decode_invalid == "on")
  end,
}

-- Called before the next script if `seeded` was called.
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

-- The first two items of the list are the number of values, and where the next one begins.
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
