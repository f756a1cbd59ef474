-- A database, as `tx.main` gives it. Every method is one native call, so that a loop over it
-- compiles; rare cases (numbers as keys, options, errors) branch off first.
--
-- Errors are raised at level 3 from a helper called by the method, or 2 in the method itself: both
-- name the line in the procedure. No call to a helper may be a tail call, or the level is wrong.

-- The file is loaded once for each class of databases with native functions of its own: only
-- functions that never change become constants of a trace. Such a class has a prefix, and takes
-- the common functions where there is none with its prefix.

local core, class, prefix = ...

local native = setmetatable({}, {
  __index = function(_, name) return core.native[prefix .. name] or core.native[name] end,
})
local text = core.text
local context, reply, ffi_string, fail = native.context, native.reply, native.string, native.fail
local key_text, value_text, integer = text.key, text.value, text.integer
local NO_COLON, INDEX = text.NO_COLON, core.INDEX
local type, pairs, error = type, pairs, error

-- The codes of src/bridge/context.rs.
local NO, YES, WIDE = 0, 1, 2

-- The conditions of src/bridge/write.rs.
local ALWAYS, IF_ABSENT, IF_PRESENT = 0, 1, 2

local NEVER = -1
local FLAGS_MAX = 2 ^ 32 - 1

local Database = {}

local get = native.get
function Database:get(key)
  if type(key) ~= "string" then key = key_text(key, self) end
  local code = get(context, self[INDEX], key, #key)
  if code == YES then return ffi_string(reply.data, reply.data_len) end
  if code ~= NO then fail() end
  return nil
end

local exists = native.exists
function Database:exists(key)
  if type(key) ~= "string" then key = key_text(key, self) end
  local code = exists(context, self[INDEX], key, #key)
  if code == YES then return true end
  if code ~= NO then fail() end
  return false
end

local record = native.record
function Database:record(key)
  if type(key) ~= "string" then key = key_text(key, self) end
  local code = record(context, self[INDEX], key, #key)
  if code == NO then return nil end
  if code ~= YES and code ~= WIDE then fail() end
  local expires_at_ms = reply.expires_at_ms
  local found = {
    value = ffi_string(reply.data, reply.data_len),
    flags = reply.flags,
    version = reply.number,
    expires_at_ms = nil,
  }
  if expires_at_ms >= 0 then found.expires_at_ms = expires_at_ms end
  if code == WIDE then found.version = reply.integer end
  return found
end

local many_begin, many_add = native.many_begin, native.many_add
local many_run, many_next = native.many_run, native.many_next
function Database:get_many(keys)
  if type(self) ~= "table" then error(NO_COLON, 2) end
  if type(keys) ~= "table" then
    error("get_many takes a table of keys, this is " .. text.described(keys), 2)
  end
  many_begin(context)
  for i = 1, #keys do
    local key = keys[i]
    if type(key) ~= "string" then key = key_text(key, self) end
    if many_add(context, key, #key) ~= YES then fail() end
  end
  if many_run(context, self[INDEX]) ~= YES then fail() end
  local found = {}
  for i = 1, #keys do
    if many_next(context) == YES then
      found[keys[i]] = ffi_string(reply.data, reply.data_len)
    end
  end
  return found
end

local all_run = native.all_run
function Database:get_all(key)
  if type(key) ~= "string" then key = key_text(key, self) end
  if all_run(context, self[INDEX], key, #key) ~= YES then fail() end
  local found = {}
  for i = 1, reply.number do
    many_next(context)
    found[i] = ffi_string(reply.data, reply.data_len)
  end
  return found
end

-- Flags and expiry of the options table of a put.
local now = native.now
local function put_options(options)
  if type(options) ~= "table" then
    error("the options are a table, as {ttl_ms = 60000}, these are " .. text.described(options), 3)
  end
  local flags, expires_at_ms = 0, NEVER
  for name, option in pairs(options) do
    if name == "ttl_ms" then
      text.number(option, "ttl_ms", 3)
      if now(context) ~= YES then fail(4) end
      expires_at_ms = math.max(0, reply.number + option)
    elseif name == "expires_at_ms" then
      expires_at_ms = math.max(0, text.number(option, "expires_at_ms", 3))
    elseif name == "flags" then
      flags = text.number(option, "flags", 3)
      if flags ~= math.floor(flags) or flags < 0 or flags > FLAGS_MAX then
        error("flags are an integer from 0 to 4294967295", 3)
      end
    else
      error("no option '" .. tostring(name) .. "'; there are ttl_ms, expires_at_ms, flags", 3)
    end
  end
  return flags, expires_at_ms
end

local put, put_with = native.put, native.put_with
function Database:put(key, value, options)
  if type(key) ~= "string" then key = key_text(key, self) end
  if type(value) ~= "string" then value = value_text(value, self) end
  local code
  if options == nil then
    code = put(context, self[INDEX], key, #key, value, #value)
  else
    local flags, expires_at_ms = put_options(options)
    code = put_with(context, self[INDEX], key, #key, value, #value, flags, expires_at_ms, ALWAYS)
  end
  if code ~= YES then fail() end
end

function Database:add(key, value, options)
  if type(key) ~= "string" then key = key_text(key, self) end
  if type(value) ~= "string" then value = value_text(value, self) end
  local flags, expires_at_ms = 0, NEVER
  if options ~= nil then flags, expires_at_ms = put_options(options) end
  local code =
    put_with(context, self[INDEX], key, #key, value, #value, flags, expires_at_ms, IF_ABSENT)
  if code == YES then return true end
  if code ~= NO then fail() end
  return false
end

function Database:replace(key, value, options)
  if type(key) ~= "string" then key = key_text(key, self) end
  if type(value) ~= "string" then value = value_text(value, self) end
  local flags, expires_at_ms = 0, NEVER
  if options ~= nil then flags, expires_at_ms = put_options(options) end
  local code =
    put_with(context, self[INDEX], key, #key, value, #value, flags, expires_at_ms, IF_PRESENT)
  if code == YES then return true end
  if code ~= NO then fail() end
  return false
end

local swap = native.swap
function Database:compare_and_set(key, expected, value)
  if type(key) ~= "string" then key = key_text(key, self) end
  local expected_len, value_len = -1, -1
  if expected == nil then
    expected = ""
  else
    if type(expected) ~= "string" then expected = value_text(expected, self) end
    expected_len = #expected
  end
  if value == nil then
    value = ""
  else
    if type(value) ~= "string" then value = value_text(value, self) end
    value_len = #value
  end
  local code = swap(context, self[INDEX], key, #key, expected, expected_len, value, value_len)
  if code == YES then return true end
  if code ~= NO then fail() end
  return false
end

local delete = native.delete
function Database:delete(key)
  if type(key) ~= "string" then key = key_text(key, self) end
  local code = delete(context, self[INDEX], key, #key)
  if code == YES then return true end
  if code ~= NO then fail() end
  return false
end

local increment = native.increment
function Database:increment(key, by)
  if type(self) ~= "table" then error(NO_COLON, 2) end
  if type(key) ~= "string" then key = key_text(key, self) end
  if by == nil then by = 1 else by = integer(by, "the increment") end
  local code = increment(context, self[INDEX], key, #key, by)
  if code == YES then return reply.number end
  if code ~= WIDE then fail() end
  return reply.integer
end

local increment_float = native.increment_float
function Database:increment_float(key, by)
  if type(self) ~= "table" then error(NO_COLON, 2) end
  if type(key) ~= "string" then key = key_text(key, self) end
  text.number(by, "the increment")
  if increment_float(context, self[INDEX], key, #key, by) ~= YES then fail() end
  return reply.number
end

local append = native.append
function Database:append(key, suffix)
  if type(key) ~= "string" then key = key_text(key, self) end
  if type(suffix) ~= "string" then suffix = value_text(suffix, self) end
  if append(context, self[INDEX], key, #key, suffix, #suffix) ~= YES then fail() end
  return reply.number
end

local expire = native.expire
function Database:expire(key, ttl_ms)
  if type(self) ~= "table" then error(NO_COLON, 2) end
  if type(key) ~= "string" then key = key_text(key, self) end
  text.number(ttl_ms, "ttl_ms")
  if now(context) ~= YES then fail() end
  local at = reply.number + ttl_ms
  if at < 0 then at = 0 end
  local code = expire(context, self[INDEX], key, #key, at)
  if code == YES then return true end
  if code ~= NO then fail() end
  return false
end

function Database:persist(key)
  if type(key) ~= "string" then key = key_text(key, self) end
  local code = expire(context, self[INDEX], key, #key, NEVER)
  if code == YES then return true end
  if code ~= NO then fail() end
  return false
end

function Database:ttl(key)
  if type(key) ~= "string" then key = key_text(key, self) end
  local code = record(context, self[INDEX], key, #key)
  if code == NO then return nil end
  if code ~= YES and code ~= WIDE then fail() end
  local at = reply.expires_at_ms
  if at < 0 then return math.huge end
  if now(context) ~= YES then fail() end
  return at - reply.number
end

local statistics = native.statistics
function Database:count()
  if statistics(context, self[INDEX]) ~= YES then fail() end
  return reply.number
end

function Database:size()
  if statistics(context, self[INDEX]) ~= YES then fail() end
  return reply.flags
end

local clear = native.clear
function Database:clear()
  if clear(context, self[INDEX]) ~= YES then fail() end
end

core[class] = Database
