-- `ngx.shared`: dictionaries that all workers share. Each is the cache of that name.

local core = ...

local native, ffi = core.native, core.ffi
local context, reply, ffi_string, fail = native.context, native.reply, native.string, native.fail
local type, tonumber, error, setmetatable = type, tonumber, error, setmetatable
local floor = math.floor
local INDEX = core.INDEX

-- The same as in src/bridge/openresty/dictionary.rs.
local NO, YES, FORCED = 0, 1, 2
local STRING, NUMBER, BOOLEAN, LIST = 1, 2, 3, 4
local SET, ADD, REPLACE, SAFE = 0, 1, 2, 4

-- As in the store.
local KEY_LEN_MAX = 4096

local KEYS_MAX = 1024
local FLAGS_MAX = 2 ^ 32 - 1

local Dictionary = {}

local function index_of(self)
  local index = type(self) == "table" and self[INDEX]
  if not index then error([[bad "zone" argument]], 3) end
  return index
end

-- A key as a string; or nil, and why it is invalid.
local function key_of(key)
  if key == nil then return nil, "nil key" end
  if type(key) ~= "string" then key = core.text_of(key) end
  if #key == 0 then return nil, "empty key" end
  if #key > KEY_LEN_MAX then return nil, "key too long" end
  return key
end

-- The value that `dict_get` or `dict_pop` has found.
local function value_of(form)
  if form == STRING then return ffi_string(reply.data, reply.data_len) end
  if form == NUMBER then return reply.number end
  return reply.data_len == 4
end

local dict_get = native.dict_get
function Dictionary:get(key)
  local index, why = index_of(self), nil
  if type(key) ~= "string" or #key == 0 or #key > KEY_LEN_MAX then
    key, why = key_of(key)
    if not key then return nil, why end
  end
  local form = dict_get(context, index, key, #key)
  if form == NO then return nil end
  if form < 0 then fail() end
  if form == LIST then return nil, "value is a list" end
  local value, flags = value_of(form), reply.flags
  if flags ~= 0 then return value, flags end
  return value
end

-- Expired values are gone here, so none is ever stale.
function Dictionary:get_stale(key)
  local value, flags = Dictionary.get(self, key)
  if value ~= nil then return value, flags, false end
  if flags then return nil, flags end
  return nil
end

-- A time in seconds, as milliseconds.
local function milliseconds(time, name, level)
  if time == nil then return 0 end
  time = tonumber(time)
  if not time or time < 0 or time ~= time then error("bad \"" .. name .. "\" argument", level + 1) end
  -- So that a very short time does not become forever.
  local ms = floor(time * 1000 + 0.5)
  if ms == 0 and time > 0 then ms = 1 end
  return ms
end

local dict_put = native.dict_put
local dict_delete = native.dict_delete

-- Methods call these three as their last step, by tail calls, and so have no frames of their own.
local function put(self, key, value, exptime, flags, how)
  local index, why = index_of(self), nil
  if type(key) ~= "string" or #key == 0 or #key > KEY_LEN_MAX then
    key, why = key_of(key)
    if not key then return nil, why end
  end
  local ms = 0
  if exptime ~= nil and exptime ~= 0 then ms = milliseconds(exptime, "exptime", 2) end
  if flags == nil then
    flags = 0
  else
    flags = tonumber(flags)
    if not flags or flags < 0 or flags > FLAGS_MAX then error([[bad "flags" argument]], 2) end
  end
  local form, text, number
  local kind = type(value)
  if kind == "string" then
    form, text, number = STRING, value, 0
  elseif kind == "number" then
    form, text, number = NUMBER, "", value
  elseif kind == "boolean" then
    form, text, number = BOOLEAN, value and "true" or "false", 0
  elseif value == nil then
    if how ~= SET and how ~= SET + SAFE then
      return false, "attempt to add or replace nil values", false
    end
    if dict_delete(context, index, key, #key) ~= YES then fail() end
    return true, nil, false
  else
    return nil, "bad value type"
  end
  local code = dict_put(context, index, key, #key, form, text, #text, number, ms, flags, how)
  if code == YES then return true, nil, false end
  if code == FORCED then return true, nil, true end
  if code < 0 then fail() end
  return false, ffi_string(reply.data, reply.data_len), false
end

function Dictionary:set(key, value, exptime, flags)
  return put(self, key, value, exptime, flags, SET)
end

function Dictionary:safe_set(key, value, exptime, flags)
  return put(self, key, value, exptime, flags, SET + SAFE)
end

function Dictionary:add(key, value, exptime, flags)
  return put(self, key, value, exptime, flags, ADD)
end

function Dictionary:safe_add(key, value, exptime, flags)
  return put(self, key, value, exptime, flags, ADD + SAFE)
end

function Dictionary:replace(key, value, exptime, flags)
  return put(self, key, value, exptime, flags, REPLACE)
end

function Dictionary:delete(key)
  return put(self, key, nil, nil, nil, SET)
end

local dict_incr = native.dict_incr
function Dictionary:incr(key, by, init, init_ttl)
  local index, why = index_of(self), nil
  if type(key) ~= "string" or #key == 0 or #key > KEY_LEN_MAX then
    key, why = key_of(key)
    if not key then return nil, why end
  end
  if type(by) ~= "number" then
    local given = by
    by = tonumber(by)
    if not by then error("bad value arg: number expected, got " .. type(given), 2) end
  end
  local has_init, ms = 0, 0
  if init ~= nil then
    local given = init
    init = tonumber(init)
    if not init then error("bad init arg: number expected, got " .. type(given), 2) end
    has_init = 1
  end
  if init_ttl ~= nil then
    local given = init_ttl
    init_ttl = tonumber(init_ttl)
    if not init_ttl then error("bad init_ttl arg: number expected, got " .. type(given), 2) end
    ms = milliseconds(init_ttl, "init_ttl", 2)
    if has_init == 0 then error([[must provide "init" when providing "init_ttl"]], 2) end
  end
  local code = dict_incr(context, index, key, #key, by, has_init, init or 0, ms)
  if has_init == 0 then
    if code == YES or code == FORCED then return reply.number end
  elseif code == YES or code == FORCED then
    return reply.number, nil, code == FORCED
  end
  if code < 0 then fail() end
  return nil, ffi_string(reply.data, reply.data_len)
end

local dict_push = native.dict_push
local function push(self, key, value, is_left)
  local index = index_of(self)
  local why
  key, why = key_of(key)
  if not key then return nil, why end
  local form, text, number = STRING, value, 0
  if type(value) == "number" then
    form, text, number = NUMBER, "", value
  elseif type(value) ~= "string" then
    return nil, "bad value type"
  end
  local code = dict_push(context, index, key, #key, is_left, form, text, #text, number)
  if code == YES then return reply.number end
  if code < 0 then fail() end
  return nil, ffi_string(reply.data, reply.data_len)
end

function Dictionary:lpush(key, value)
  return push(self, key, value, 1)
end

function Dictionary:rpush(key, value)
  return push(self, key, value, 0)
end

local dict_pop = native.dict_pop
local function pop(self, key, is_left)
  local index = index_of(self)
  local why
  key, why = key_of(key)
  if not key then return nil, why end
  local form = dict_pop(context, index, key, #key, is_left)
  if form == NO then return nil end
  if form < 0 then fail() end
  if form == LIST then return nil, ffi_string(reply.data, reply.data_len) end
  return (value_of(form))
end

function Dictionary:lpop(key)
  return pop(self, key, 1)
end

function Dictionary:rpop(key)
  return pop(self, key, 0)
end

local dict_len = native.dict_len
function Dictionary:llen(key)
  local index = index_of(self)
  local why
  key, why = key_of(key)
  if not key then return nil, why end
  local code = dict_len(context, index, key, #key)
  if code == YES then return reply.number end
  if code < 0 then fail() end
  return nil, ffi_string(reply.data, reply.data_len)
end

local dict_ttl = native.dict_ttl
function Dictionary:ttl(key)
  local index = index_of(self)
  local why
  key, why = key_of(key)
  if not key then return nil, why end
  local code = dict_ttl(context, index, key, #key)
  if code == YES then return reply.number / 1000 end
  if code < 0 then fail() end
  return nil, ffi_string(reply.data, reply.data_len)
end

local dict_expire = native.dict_expire
function Dictionary:expire(key, exptime)
  local index = index_of(self)
  if exptime == nil then error([[bad "exptime" argument]], 2) end
  local why
  key, why = key_of(key)
  if not key then return nil, why end
  if type(exptime) ~= "number" then error([[bad "exptime" argument]], 2) end
  -- A time in the past expires with the next millisecond.
  local ms = exptime < 0 and 1 or milliseconds(exptime, "exptime", 2)
  local code = dict_expire(context, index, key, #key, ms)
  if code == YES then return true end
  if code < 0 then fail() end
  return nil, "not found"
end

local dict_flush_all, dict_flush_expired = native.dict_flush_all, native.dict_flush_expired
function Dictionary:flush_all()
  if dict_flush_all(context, index_of(self)) ~= YES then fail() end
end

-- An optional count.
local function count_of(given, else_count, level)
  if given == nil then return else_count end
  local count = tonumber(given)
  if not count then
    error("bad argument #2 to '?' (number expected, got " .. type(given) .. ")", level + 1)
  end
  -- Fractions are rounded down, and NaN is 0.
  return count == count and floor(count) or 0
end

function Dictionary:flush_expired(max)
  if dict_flush_expired(context, index_of(self), (count_of(max, 0, 2))) ~= YES then fail() end
  return reply.number
end

local dict_keys = native.dict_keys
local length = ffi.typeof "const uint32_t *"
function Dictionary:get_keys(max)
  if dict_keys(context, index_of(self), (count_of(max, KEYS_MAX, 2))) ~= YES then fail() end
  local keys, at = {}, reply.data
  for i = 1, reply.number do
    local len = ffi.cast(length, at)[0]
    keys[i] = ffi_string(at + 4, len)
    at = at + 4 + len
  end
  return keys
end

local dict_size = native.dict_size
function Dictionary:capacity()
  if dict_size(context, index_of(self)) ~= YES then fail() end
  return reply.number
end

function Dictionary:free_space()
  if dict_size(context, index_of(self)) ~= YES then fail() end
  return reply.number - reply.flags
end

local dictionary_meta = { __index = Dictionary, __metatable = core.OURS }

local dict_open = native.dict_open
local function open(shared, name)
  if type(name) ~= "string" then return nil end
  local code = dict_open(context, name, #name)
  if code == NO then return nil end
  if code < 0 then fail() end
  local dictionary = setmetatable({ [INDEX] = reply.number }, dictionary_meta)
  shared[name] = dictionary
  return dictionary
end

local shared = setmetatable({}, { __index = open, __metatable = core.OURS })
-- All that exist, so that `pairs` shows them.
if native.dict_names(context) == YES then
  for name in string.gmatch(ffi_string(reply.data, reply.data_len), "([^\n]+)\n") do open(shared, name) end
end
core.ngx.shared = shared
