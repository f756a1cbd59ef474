-- What `require` finds besides the operator's files: parts of LuaJIT, and the modules of the lua-resty world
-- that handlers rely on.

local core = ...

local modules, native = core.modules, core.native
local context, reply, ffi_string = native.context, native.reply, native.string
local preload = core.rust.preload
local type, error, next, pairs, ipairs, floor = type, error, next, pairs, ipairs, math.floor
local tonumber, setmetatable, getmetatable, concat = tonumber, setmetatable, getmetatable, table.concat
local VERSION = "0.1.25"

local function check_table(value)
  if type(value) ~= "table" then
    error("bad argument #1 to '?' (table expected, got " .. (value == nil and "no value" or type(value)) .. ")", 3)
  end
end

-- Gives the same value whenever a name is required.
local function provide(name, value) modules[name] = function() return value end end

for _, name in ipairs { "table", "string", "math", "bit", "os", "coroutine" } do
  modules[name] = function() return core.globals[name] end
end

provide("table.new", preload["table.new"]())

-- If one handler cleared a handle, its fields would be gone for all others.
local clear = preload["table.clear"]()
provide("table.clear", function(list)
  check_table(list)
  if getmetatable(list) == core.OURS then error("table.clear is not for what tokaido has made", 2) end
  clear(list)
end)

provide("table.nkeys", function(list)
  check_table(list)
  local count = 0
  for _ in pairs(list) do count = count + 1 end
  return count
end)

provide("table.isempty", function(list)
  check_table(list)
  return next(list) == nil
end)

provide("table.isarray", function(list)
  check_table(list)
  for key in pairs(list) do
    if type(key) ~= "number" or key ~= floor(key) then return false end
  end
  return true
end)

provide("table.clone", function(list)
  check_table(list)
  local copy = {}
  for key, value in pairs(list) do copy[key] = value end
  return copy
end)

-- Checks a decoded value. An encoded one may be forged, and contain a pointer; null is one that everybody has.
local function without_pointers(value)
  if type(value) == "userdata" and value ~= core.ngx.null then
    error("the encoded value has a pointer in it", 3)
  end
  if type(value) == "table" then
    for key, field in pairs(value) do
      without_pointers(key)
      without_pointers(field)
    end
  end
  return value
end

-- Leaves out what gives or takes pointers. In LuaJIT the metatable of buffers is also that of their methods: whoever
-- had it could give them a finalizer, which no limit stops, and a length that is not theirs.
modules["string.buffer"] = function()
  local buffers = preload["string.buffer"]()
  local meta = core.libraries.debug.getmetatable(buffers.new())
  local methods = {}
  for name, method in pairs(meta) do
    if type(name) == "string" and name:sub(1, 2) ~= "__" then methods[name] = method end
  end
  for _, name in ipairs { "ref", "reserve", "commit", "putcdata" } do methods[name] = nil end
  function methods.set(buffer, text)
    if type(text) ~= "string" then error("a buffer is set to a string here", 2) end
    return meta.set(buffer, text)
  end
  function methods.decode(buffer) return without_pointers(meta.decode(buffer)) end
  meta.__index = methods
  local decode = buffers.decode
  buffers.decode = function(text) return without_pointers(decode(text)) end
  meta.__metatable = core.OURS
  return buffers
end

-- It makes nginx's functions fast; here they always are.
provide("resty.core", { version = VERSION })

local function refuse(name, why)
  modules[name] = core.refused('require "' .. name .. '"', why, 3)
end
refuse("ffi", "a handler reaches no memory but its own")
refuse("jit", "a handler does not control the compiler")
refuse("io", "a handler reaches no files")
refuse("debug", "a handler reaches no other code's variables")
refuse("package", "modules come from the procedures directory")
refuse("ngx.errlog", "the log is the server's own; it is read where that writes it")
refuse("ngx.ssl", "TLS is the server's affair")
refuse("ngx.ocsp", "TLS is the server's affair")
refuse("ngx.balancer", "there are no upstreams")
refuse("ngx.pipe", "a handler starts no programs")
refuse("resty.aes", "there are no ciphers")
refuse("thread.exdata", "a handler has no pointers")

-- Bytes as hexadecimal text, and a number from the digits that a text begins with.
provide("resty.string", {
  _VERSION = "0.15",
  to_hex = function(bytes) return (core.hex_of(bytes)) end,
  atoi = function(text) return tonumber(text:match "^%s*([+-]?%d+)") or 0 end,
})

modules["resty.random"] = function()
  local random_bytes = native.random_bytes
  return {
    _VERSION = "0.15",
    bytes = function(len)
      if random_bytes(context, len) ~= 1 then native.fail(3) end
      return ffi_string(reply.data, reply.data_len)
    end,
  }
end

-- Digests that get their text in pieces.
for _, name in ipairs { "md5", "sha1", "sha224", "sha256", "sha384", "sha512" } do
  modules["resty." .. name] = function()
    local Digest = { _VERSION = "0.15" }
    local meta = { __index = Digest }

    function Digest.new() return setmetatable({ pieces = {} }, meta) end

    function Digest:update(text, len)
      self.pieces[#self.pieces + 1] = len and text:sub(1, len) or text
      return true
    end

    function Digest:final() return (core.digest_of(name, concat(self.pieces))) end

    function Digest:reset()
      self.pieces = {}
      return true
    end

    return Digest
  end
end
