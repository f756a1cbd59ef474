-- Operations on one record: the methods that loops call. Each is one or two native calls, so that the loop
-- compiles; rare cases branch off first.
--
-- The file is loaded once for each engine, like lua/database.lua: only functions that never change become
-- constants of a trace.

local core = ...

local kyoto = core.kyoto
local prefix = table.remove(kyoto.prefixes, 1)
local native = setmetatable({}, {
  __index = function(_, name) return core.native[prefix .. name] or core.native[name] end,
})
local context, reply, ffi_string = native.context, native.reply, native.string
local text_of, expiry, xt_of = kyoto.text_of, kyoto.expiry, kyoto.xt_of
local fail, missing, failed, invalid = kyoto.fail, kyoto.missing, kyoto.failed, kyoto.invalid
local select, type, tonumber = select, type, tonumber
local huge = math.huge

local INDEX, UNDO = core.INDEX, kyoto.UNDO
local NO, YES, WIDE = 0, 1, 2
local ALWAYS, IF_ABSENT, IF_PRESENT = 0, 1, 2
local NEVER = -1
local INVALID, DUPREC, LOGIC = 2, 6, 8

local DB = {}

local record, put, put_with, delete = native.record, native.put, native.put_with, native.delete

-- What other files need for databases of this engine.
local engine = {
  DB = DB, record = record, put_with = put_with, delete = delete, clear = native.clear,
}

-- Saves what is under a key before it is written to, for a transaction of the database's own; tells whether
-- that was possible.
local function remember(self, key)
  local undo = self[UNDO]
  if undo[key] ~= nil then return true end
  local code = record(context, self[INDEX], key, #key)
  if code == NO then
    undo[key] = false
  elseif code == YES or code == WIDE then
    undo[key] = {
      value = ffi_string(reply.data, reply.data_len), flags = reply.flags,
      at_ms = reply.expires_at_ms,
    }
  else
    return failed(self)
  end
  return true
end
engine.remember = remember

local function unusable(self)
  return fail(self, INVALID, "keys and values are strings or numbers")
end

function DB.set(...)
  local self, key, value, xt = ...
  local count = select("#", ...)
  if count < 3 or count > 4 then invalid("db_set") end
  if type(key) ~= "string" then key = text_of(key) end
  if type(value) ~= "string" then value = text_of(value) end
  if key == nil or value == nil then return unusable(self) end
  if self[UNDO] and not remember(self, key) then return false end
  local code
  if xt == nil then
    code = put(context, self[INDEX], key, #key, value, #value)
  else
    code = put_with(context, self[INDEX], key, #key, value, #value, 0, expiry(xt), ALWAYS)
  end
  if code ~= YES then return failed(self) end
  return true
end

function DB.add(...)
  local self, key, value, xt = ...
  local count = select("#", ...)
  if count < 3 or count > 4 then invalid("db_add") end
  if type(key) ~= "string" then key = text_of(key) end
  if type(value) ~= "string" then value = text_of(value) end
  if key == nil or value == nil then return unusable(self) end
  if self[UNDO] and not remember(self, key) then return false end
  local at_ms = NEVER
  if xt ~= nil then at_ms = expiry(xt) end
  local code = put_with(context, self[INDEX], key, #key, value, #value, 0, at_ms, IF_ABSENT)
  if code == YES then return true end
  if code == NO then return fail(self, DUPREC, "record duplication") end
  return failed(self)
end

function DB.replace(...)
  local self, key, value, xt = ...
  local count = select("#", ...)
  if count < 3 or count > 4 then invalid("db_replace") end
  if type(key) ~= "string" then key = text_of(key) end
  if type(value) ~= "string" then value = text_of(value) end
  if key == nil or value == nil then return unusable(self) end
  if self[UNDO] and not remember(self, key) then return false end
  local at_ms = NEVER
  if xt ~= nil then at_ms = expiry(xt) end
  local code = put_with(context, self[INDEX], key, #key, value, #value, 0, at_ms, IF_PRESENT)
  if code == YES then return true end
  if code == NO then return missing(self) end
  return failed(self)
end

-- The expiry is the new one, as with `set`. If there is none, before or after, the store appends.
local append = native.append
function DB.append(...)
  local self, key, value, xt = ...
  local count = select("#", ...)
  if count < 3 or count > 4 then invalid("db_append") end
  if type(key) ~= "string" then key = text_of(key) end
  if type(value) ~= "string" then value = text_of(value) end
  if key == nil or value == nil then return unusable(self) end
  if self[UNDO] and not remember(self, key) then return false end
  local code = record(context, self[INDEX], key, #key)
  if code ~= NO and code ~= YES and code ~= WIDE then return failed(self) end
  if xt == nil and (code == NO or reply.expires_at_ms < 0) then
    code = append(context, self[INDEX], key, #key, value, #value)
  else
    if code ~= NO then value = ffi_string(reply.data, reply.data_len) .. value end
    local at_ms = NEVER
    if xt ~= nil then at_ms = expiry(xt) end
    code = put_with(context, self[INDEX], key, #key, value, #value, 0, at_ms, ALWAYS)
  end
  if code ~= YES then return failed(self) end
  return true
end

function DB.get(...)
  local self, key = ...
  if select("#", ...) ~= 2 then invalid("db_get") end
  if type(key) ~= "string" then key = text_of(key) end
  if key == nil then
    unusable(self)
    return nil
  end
  local code = record(context, self[INDEX], key, #key)
  if code == YES or code == WIDE then
    return ffi_string(reply.data, reply.data_len), xt_of(reply.expires_at_ms)
  end
  if code == NO then missing(self) else failed(self) end
  return nil
end

function DB.check(...)
  local self, key = ...
  if select("#", ...) ~= 2 then invalid("db_check") end
  if type(key) ~= "string" then key = text_of(key) end
  if key == nil then
    unusable(self)
    return -1
  end
  local code = record(context, self[INDEX], key, #key)
  if code == YES or code == WIDE then return reply.data_len end
  if code == NO then missing(self) else failed(self) end
  return -1
end

function DB.remove(...)
  local self, key = ...
  if select("#", ...) ~= 2 then invalid("db_remove") end
  if type(key) ~= "string" then key = text_of(key) end
  if key == nil then return unusable(self) end
  if self[UNDO] and not remember(self, key) then return false end
  local code = delete(context, self[INDEX], key, #key)
  if code == YES then return true end
  if code == NO then return missing(self) end
  return failed(self)
end

function DB.seize(...)
  local self, key = ...
  if select("#", ...) ~= 2 then invalid("db_seize") end
  local value, xt = self:get(key)
  if value and self:remove(key) then return value, xt end
  return nil
end

local swap = native.swap
function DB.cas(...)
  local self, key, old, new, xt = ...
  local count = select("#", ...)
  if count < 4 or count > 5 then invalid("db_cas") end
  if type(key) ~= "string" then key = text_of(key) end
  if key == nil then return unusable(self) end
  local old_len, new_len = -1, -1
  if type(old) ~= "string" then old = text_of(old) end
  if type(new) ~= "string" then new = text_of(new) end
  if old == nil then old = "" else old_len = #old end
  if new == nil then new = "" else new_len = #new end
  if self[UNDO] and not remember(self, key) then return false end
  local code = swap(context, self[INDEX], key, #key, old, old_len, new, new_len)
  if code == NO then return fail(self, LOGIC, "status conflict") end
  if code ~= YES then return failed(self) end
  if xt ~= nil and new_len >= 0 then
    code = put_with(context, self[INDEX], key, #key, new, new_len, 0, expiry(xt), ALWAYS)
    if code ~= YES then return failed(self) end
  end
  return true
end

-- Integers of 8 bytes, big-endian, in place.
local ffi = core.ffi
local int64, bswap = ffi.typeof "int64_t", core.sandbox.libraries.bit.bswap
local box = ffi.new "int64_t[1]"
local box_bytes, copy = ffi.cast("const char *", box), ffi.copy
local EXACT_INTEGER = 2 ^ 63

local function integer(number)
  number = tonumber(number) or 0
  if number >= EXACT_INTEGER then return 0x7fffffffffffffffLL end
  if number < -EXACT_INTEGER or number ~= number then return -0x8000000000000000LL end
  return int64(number)
end

local function inconsistent(self)
  fail(self, LOGIC, "logical inconsistency")
  return nil
end

function DB.increment(...)
  local self, key, by, origin, xt = ...
  local count = select("#", ...)
  if count < 2 or count > 5 then invalid("db_increment") end
  if type(key) ~= "string" then key = text_of(key) end
  if key == nil then
    unusable(self)
    return nil
  end
  if self[UNDO] and not remember(self, key) then return nil end
  by = integer(by)
  local code = record(context, self[INDEX], key, #key)
  local old
  if code == YES or code == WIDE then
    if reply.data_len ~= 8 then return inconsistent(self) end
    copy(box, reply.data, 8)
    old = bswap(box[0])
    if tonumber(origin) == huge then old = 0LL end
  elseif code == NO then
    origin = tonumber(origin) or 0
    if origin == -huge then return inconsistent(self) end
    old = origin == huge and 0LL or integer(origin)
  else
    failed(self)
    return nil
  end
  local new = old + by
  -- Overflow: both numbers have the same sign, and their sum has the other.
  if (old < 0) == (by < 0) and (new < 0) ~= (old < 0) then return inconsistent(self) end
  if not (by == 0 and code ~= NO and new == old and tonumber(origin) ~= huge) then
    box[0] = bswap(new)
    local at_ms = NEVER
    if xt ~= nil then at_ms = expiry(xt) end
    code = put_with(context, self[INDEX], key, #key, box_bytes, 8, 0, at_ms, ALWAYS)
    if code ~= YES then
      failed(self)
      return nil
    end
  end
  return tonumber(new)
end

local cabinet_sum, put_same = native.cabinet_sum, native.put_same
-- Adds to a double, and retries if another thread has written to it meanwhile, as it can to a cache. The retry
-- is a call and not a loop, so that the loop of a script that adds is compiled as one.
local function add_double(self, key, by, origin, at_ms)
  local code = record(context, self[INDEX], key, #key)
  local found, found_len, old = "", -1, ""
  if code == YES or code == WIDE then
    if reply.data_len ~= 16 then return inconsistent(self) end
    found, found_len = ffi_string(reply.data, reply.data_len), reply.data_len
    if origin ~= huge then old = found end
  elseif code ~= NO then
    failed(self)
    return nil
  elseif origin == -huge then
    return inconsistent(self)
  end
  local first = origin
  if origin == huge or origin == -huge then first = 0 end
  if cabinet_sum(context, old, #old, first, by) ~= YES then return inconsistent(self) end
  local sum, new = reply.number, ffi_string(reply.data, reply.data_len)
  if new == old then return sum end
  code = put_same(context, self[INDEX], key, #key, found, found_len, new, #new, 0, at_ms)
  if code == YES then return sum end
  if code == NO then return add_double(self, key, by, origin, at_ms) end
  failed(self)
  return nil
end

function DB.increment_double(...)
  local self, key, by, origin, xt = ...
  local count = select("#", ...)
  if count < 2 or count > 5 then invalid("db_increment_double") end
  if type(key) ~= "string" then key = text_of(key) end
  if key == nil then
    unusable(self)
    return nil
  end
  if self[UNDO] and not remember(self, key) then return nil end
  local at_ms = NEVER
  if xt ~= nil then at_ms = expiry(xt) end
  return add_double(self, key, tonumber(by) or 0, tonumber(origin) or 0, at_ms)
end

local statistics = native.statistics
function DB.count(self)
  if statistics(context, self[INDEX]) ~= YES then
    failed(self)
    return -1
  end
  return reply.number
end

function DB.size(self)
  if statistics(context, self[INDEX]) ~= YES then
    failed(self)
    return -1
  end
  return reply.flags
end

kyoto.engines[#kyoto.engines + 1] = engine
