-- `tokaido.json`. The work is done in Rust; integers are exact over 64 bits.

local core = ...

local rust, object_meta = core.rust, core.object_meta
local encode, decode, context_address = rust.json_encode, rust.json_decode, rust.context

local error, setmetatable, type = error, setmetatable, type

local json = {
  -- What `null` is in a table, where there cannot be a nil.
  null = core.null,
}

-- JSON of a value. An empty table is an array, unless `json.object` or `decode` made it.
function json.encode(value)
  local text, message = encode(context_address, value)
  if text == nil then error(message, 2) end
  return text
end

-- A value from JSON.
function json.decode(text)
  if type(text) ~= "string" then
    error("json.decode takes a string, this is " .. core.text.described(text), 2)
  end
  local value, message = decode(context_address, text)
  if message then error(message, 2) end
  return value
end

-- As `decode`, but gives nil and a message instead of raising.
function json.try_decode(text)
  if type(text) ~= "string" then return nil, "it is " .. core.text.described(text) end
  local value, message = decode(context_address, text)
  return value, message
end

-- Marks a table as an object, so that it is {} when it is empty.
function json.object(value)
  return setmetatable(value or {}, object_meta)
end

core.json = json
