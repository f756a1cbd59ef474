-- Encodings and digests: base64, URIs and their arguments, md5, SHA-1, CRC-32, SQL.

local core = ...

local ngx, native = core.ngx, core.native
local context, reply, ffi_string = native.context, native.reply, native.string
local type, tostring, error, pairs, select = type, tostring, error, pairs, select
local gsub, format, floor = string.gsub, string.format, math.floor

local YES = 1

-- Converts the argument of a function that takes one text: nil is the empty text.
local function text_of(value)
  if type(value) == "string" then return value end
  if value == nil then return "" end
  return core.text_of(value)
end

-- The same for the functions that OpenResty has left as they were in C.
local function strict_text(value, place)
  if type(value) == "string" then return value end
  if type(value) == "number" then return tostring(value) end
  error("bad argument #" .. place .. " to '?' (string expected, got "
    .. (value == nil and "nil" or type(value)) .. ")", 3)
end

local encode_base64, decode_base64 = native.ngx_encode_base64, native.ngx_decode_base64

function ngx.encode_base64(text, no_padding)
  text = text_of(text)
  local padded = 1
  if no_padding then
    if type(no_padding) ~= "boolean" then
      error("bad no_padding: boolean expected, got " .. type(no_padding), 2)
    end
    padded = 0
  end
  if encode_base64(context, text, #text, 0, padded) ~= YES then native.fail() end
  return ffi_string(reply.data, reply.data_len)
end

function ngx.decode_base64(text)
  if type(text) ~= "string" then error("string argument only", 2) end
  if decode_base64(context, text, #text, 0) ~= YES then return nil end
  return ffi_string(reply.data, reply.data_len)
end

core.modules["ngx.base64"] = function()
  local base64 = { version = "0.1.25" }

  function base64.encode_base64url(text)
    if type(text) ~= "string" then return nil, "must provide a string" end
    if encode_base64(context, text, #text, 1, 0) ~= YES then native.fail() end
    return ffi_string(reply.data, reply.data_len)
  end

  function base64.decode_base64url(text)
    if type(text) ~= "string" then return nil, "must provide a string" end
    if decode_base64(context, text, #text, 1) ~= YES then return nil, "invalid input" end
    return ffi_string(reply.data, reply.data_len)
  end

  return base64
end

local escape_uri, unescape_uri = native.ngx_escape_uri, native.ngx_unescape_uri

local COMPONENT, KIND_MAX = 2, 6

function ngx.escape_uri(text, kind)
  text = text_of(text)
  if kind == nil then
    kind = COMPONENT
  elseif type(kind) ~= "number" then
    error([["type" is not a number]], 2)
  elseif kind < 0 or kind > KIND_MAX then
    error([["type" ]] .. kind .. " out of range", 2)
  end
  if escape_uri(context, text, #text, kind) ~= YES then native.fail() end
  return ffi_string(reply.data, reply.data_len)
end

function ngx.unescape_uri(text)
  text = text_of(text)
  if unescape_uri(context, text, #text) ~= YES then native.fail() end
  return ffi_string(reply.data, reply.data_len)
end

function ngx.encode_args(arguments)
  if type(arguments) ~= "table" then
    error("bad argument #1 to '?' (table expected, got "
      .. (arguments == nil and "nil" or type(arguments)) .. ")", 2)
  end
  for key in pairs(arguments) do
    if type(key) ~= "string" then
      error([[attempt to use a non-string key in the "args" option table]], 2)
    end
  end
  return (core.join_args(arguments))
end

local ARGUMENTS_MAX = 100

function ngx.decode_args(text, max)
  text = strict_text(text, 1)
  if max ~= nil and type(max) ~= "number" then
    error("bad argument #2 to '?' (number expected, got " .. type(max) .. ")", 2)
  end
  if max and max < 0 then max = 0 end
  local arguments, why = core.parse_args(text, max and floor(max) or ARGUMENTS_MAX)
  if why then return arguments, why end
  return arguments
end

local digest = native.ngx_digest

-- The digest of that name.
local function digest_of(name, text)
  if digest(context, name, #name, text, #text) ~= YES then native.fail(4) end
  return ffi_string(reply.data, reply.data_len)
end
core.digest_of = digest_of

local function hex_of(bytes)
  return (gsub(bytes, ".", function(char) return format("%02x", char:byte()) end))
end
core.hex_of = hex_of

function ngx.md5(text) return (hex_of(digest_of("md5", text_of(text)))) end
function ngx.md5_bin(text) return (digest_of("md5", text_of(text))) end
function ngx.sha1_bin(text) return (digest_of("sha1", text_of(text))) end

local crc32 = native.ngx_crc32
local function crc(text)
  text = text_of(text)
  crc32(context, text, #text)
  return reply.number
end
ngx.crc32_short, ngx.crc32_long = crc, crc

local hmac_sha1 = native.ngx_hmac_sha1
function ngx.hmac_sha1(...)
  if select("#", ...) ~= 2 then error("expecting 2 arguments, but got " .. select("#", ...), 2) end
  local key, text = ...
  key, text = strict_text(key, 1), strict_text(text, 2)
  if hmac_sha1(context, key, #key, text, #text) ~= YES then native.fail() end
  return ffi_string(reply.data, reply.data_len)
end

local quote_sql = native.ngx_quote_sql
function ngx.quote_sql_str(...)
  if select("#", ...) ~= 1 then error("expecting one argument", 2) end
  local text = strict_text((...), 1)
  if quote_sql(context, text, #text) ~= YES then native.fail() end
  return ffi_string(reply.data, reply.data_len)
end
