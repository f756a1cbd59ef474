-- The modules `cjson` and `cjson.safe`, which nearly every handler uses, with what OpenResty's lua-cjson adds to the
-- original: tables whose metatable says that they are arrays.

local core = ...

local context, encode_json, decode_json = core.rust.context, core.rust.cjson_encode, core.rust.cjson_decode
local error, next, setmetatable, pcall, ipairs = error, next, setmetatable, pcall, ipairs

local ARRAY, EMPTY_ARRAY = {}, {}

-- Used in place of a value: an array without elements.
local empty_array = setmetatable({}, { __metatable = false, __newindex = function()
  error("cjson.empty_array cannot be changed", 2)
end })

local function encode(value, set)
  return encode_json(context, value, set.sparse_converts == "on", set.sparse_ratio, set.sparse_safe, set.encode_depth,
    set.digits, set.encode_invalid, set.empty_tables_are_objects == "on", set.escapes_slashes == "on", empty_array,
    ARRAY, EMPTY_ARRAY)
end

local function decode(text, set)
  return decode_json(context, text, set.decode_depth, set.decode_invalid == "on")
end

local how = {
  encode = encode, decode = decode, changed = function() end, has_newer_settings = true, digits_max = 16,
}

-- Gives nil and a message where the plain module raises.
local function make_safe(json)
  local safe = {}
  for name, value in next, json do safe[name] = value end
  for _, name in ipairs { "encode", "decode" } do
    local call = json[name]
    safe[name] = function(...)
      local ok, result = pcall(call, ...)
      if ok then return result end
      return nil, result
    end
  end
  function safe.new() return make_safe(json.new()) end
  return safe
end

local function complete(json)
  json.array_mt, json.empty_array_mt, json.empty_array = ARRAY, EMPTY_ARRAY, empty_array
  local new = json.new
  function json.new() return complete(new()) end
  return json
end

core.modules["cjson"] = function() return complete((core.new_cjson(how))) end
core.modules["cjson.safe"] = function() return make_safe(complete((core.new_cjson(how)))) end
