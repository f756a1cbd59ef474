-- The modules `cjson` and `cjson.safe`, which nearly every handler uses, with what OpenResty's lua-cjson adds to the
-- original: tables whose metatable says that they are arrays.

local core = ...

local codec, context, decode_json = core.rust.codec, core.rust.context, core.rust.codecs.json_decode
local buffers = core.rust.preload["string.buffer"]()
local getmetatable_raw = core.libraries.debug.getmetatable
local type, error, next, rawget, setmetatable, pcall, ipairs = type, error, next, rawget, setmetatable, pcall, ipairs
local floor, format = math.floor, string.format
local find, gsub = string.find, string.gsub
local null = core.null

local ARRAY, EMPTY_ARRAY = {}, {}

-- Used in place of a value: an array without elements.
local empty_array = setmetatable({}, { __metatable = false, __newindex = function()
  error("cjson.empty_array cannot be changed", 2)
end })

local ESCAPES = {
  ['"'] = '\\"', ["\\"] = "\\\\", ["/"] = "\\/", ["\b"] = "\\b", ["\f"] = "\\f", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t",
}
for code = 0, 127 do
  local char = string.char(code)
  if (code < 32 or code == 127) and not ESCAPES[char] then ESCAPES[char] = format("\\u%04x", code) end
end

local function put_string(out, text, set)
  -- A slash is escaped unless that is switched off.
  local escaped = set.escapes_slashes == "on" and '[%c"\\/]' or '[%c"\\]'
  if find(text, escaped) then text = gsub(text, escaped, ESCAPES) end
  out:put('"', text, '"')
end

-- The text of a number, or nil and why it has none.
local function number_text(number, set)
  if number ~= number or number == 1 / 0 or number == -1 / 0 then
    if set.encode_invalid == "null" then return "null" end
    if set.encode_invalid == "off" then return nil, "Cannot serialise number: must not be NaN or Inf" end
    if number ~= number then return "nan" end
  end
  return format(set.number_format, number)
end

-- The length of a table as an array; nil if it is none, and then why it may not be written as an object either.
local function array_len(value, set)
  local len, count = 0, 0
  for key in next, value do
    if type(key) ~= "number" or key < 1 or key ~= floor(key) then return nil end
    if key > len then len = key end
    count = count + 1
  end
  if set.sparse_ratio > 0 and len > count * set.sparse_ratio and len > set.sparse_safe then
    if set.sparse_converts == "on" then return nil end
    return nil, "Cannot serialise table: excessively sparse array"
  end
  return len
end

local put_value

local function put_array(out, value, len, set, depth)
  out:put("[")
  for i = 1, len do
    if i > 1 then out:put(",") end
    local message = put_value(out, rawget(value, i), set, depth)
    if message then return message end
  end
  out:put("]")
end

local function put_object(out, value, set, depth)
  out:put("{")
  local is_first = true
  for key, item in next, value do
    if not is_first then out:put(",") end
    is_first = false
    if type(key) == "string" then
      put_string(out, key, set)
    elseif type(key) == "number" then
      local text, message = number_text(key, set)
      if not text then return message end
      out:put('"', text, '"')
    else
      return "Cannot serialise " .. type(key) .. ": table key must be a number or string"
    end
    out:put(":")
    local message = put_value(out, item, set, depth)
    if message then return message end
  end
  out:put("}")
end

local function put_table(out, value, set, depth)
  if depth > set.encode_depth then
    return format("Cannot serialise, excessive nesting (%d)", depth)
  end
  if value == empty_array then
    out:put("[]")
    return
  end
  local meta = getmetatable_raw(value)
  if meta == ARRAY then return put_array(out, value, #value, set, depth) end
  local len, message = array_len(value, set)
  if message then return message end
  if len and (len > 0 or set.empty_tables_are_objects == "off") or meta == EMPTY_ARRAY then
    return put_array(out, value, len or #value, set, depth)
  end
  return put_object(out, value, set, depth)
end

-- Appends the JSON of a value; gives an error message if that is impossible.
function put_value(out, value, set, depth)
  local kind = type(value)
  if kind == "string" then
    put_string(out, value, set)
  elseif kind == "number" then
    local text, message = number_text(value, set)
    if not text then return message end
    out:put(text)
  elseif kind == "table" then
    return put_table(out, value, set, depth + 1)
  elseif value == nil or value == null then
    out:put("null")
  elseif kind == "boolean" then
    out:put(value and "true" or "false")
  else
    return "Cannot serialise " .. kind .. ": type not supported"
  end
end

local function encode(value, set)
  set.number_format = "%." .. set.digits .. "g"
  local out = buffers.new()
  local message = put_value(out, value, set, 0)
  if message then return nil, message end
  return out:get()
end

local function decode(text, set)
  local ok, result = codec(context, decode_json, text, set.decode_depth, set.decode_invalid)
  if not ok then return nil, result end
  return result
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
