-- Operations on one record, and on all: the functions that loops call. Each is one or two native calls, so that the
-- loop compiles.
--
-- The file is loaded once for each engine, like lua/database.lua: only functions that never change become
-- constants of a trace.

local core = ...

local tyrant, cabinet = core.tyrant, core.cabinet
local prefix = table.remove(tyrant.prefixes, 1)
local native = setmetatable({}, {
  __index = function(_, name) return core.native[prefix .. name] or core.native[name] end,
})
local context, reply, ffi_string = native.context, native.reply, native.string
local text_of, invalid, failed = cabinet.text_of, tyrant.invalid, tyrant.failed
local select, type, tonumber = select, type, tonumber
local floor, ceil = math.floor, math.ceil

local db, INDEX = tyrant.db, core.INDEX
local NO, YES, WIDE = 0, 1, 2
local IF_ABSENT, NEVER = 1, -1

local functions = {}
local get, record, put, put_with, delete = native.get, native.record, native.put, native.put_with, native.delete
tyrant.engines[#tyrant.engines + 1] = { functions = functions, record = record }

function functions._put(...)
  local key, value = ...
  if type(key) ~= "string" then key = text_of(key) end
  if type(value) ~= "string" then value = text_of(value) end
  if select("#", ...) ~= 2 or key == nil or value == nil then invalid("_put") end
  if put(context, db[INDEX], key, #key, value, #value) == YES then return true end
  return failed()
end

function functions._putkeep(...)
  local key, value = ...
  if type(key) ~= "string" then key = text_of(key) end
  if type(value) ~= "string" then value = text_of(value) end
  if select("#", ...) ~= 2 or key == nil or value == nil then invalid("_putkeep") end
  local code = put_with(context, db[INDEX], key, #key, value, #value, 0, NEVER, IF_ABSENT)
  if code == YES then return true end
  if code == NO then return false end
  return failed()
end

-- Whether the database is a table, according to the surrounding server; nil until it was asked.
local has_rows = nil
local function is_table()
  if has_rows == nil then
    local code = native.tyrant_is_table(context)
    if code ~= YES and code ~= NO then return false end
    has_rows = code == YES
  end
  return has_rows
end

-- For a row of a table, adds the columns that the row does not have.
local append = native.append
function functions._putcat(...)
  local key, value = ...
  if type(key) ~= "string" then key = text_of(key) end
  if type(value) ~= "string" then value = text_of(value) end
  if select("#", ...) ~= 2 or key == nil or value == nil then invalid("_putcat") end
  if is_table() then
    return tyrant.functions._misc("putcat", key, cabinet.split(value, "\0")) ~= nil
  end
  if append(context, db[INDEX], key, #key, value, #value) == YES then return true end
  return failed()
end

function functions._out(...)
  local key = ...
  if type(key) ~= "string" then key = text_of(key) end
  if select("#", ...) ~= 1 or key == nil then invalid("_out") end
  local code = delete(context, db[INDEX], key, #key)
  if code == YES then return true end
  if code == NO then return false end
  return failed()
end

function functions._get(...)
  local key = ...
  if type(key) ~= "string" then key = text_of(key) end
  if select("#", ...) ~= 1 or key == nil then invalid("_get") end
  local code = get(context, db[INDEX], key, #key)
  if code == YES then return ffi_string(reply.data, reply.data_len) end
  if code ~= NO then failed() end
  return nil
end

function functions._vsiz(...)
  local key = ...
  if type(key) ~= "string" then key = text_of(key) end
  if select("#", ...) ~= 1 or key == nil then invalid("_vsiz") end
  local code = get(context, db[INDEX], key, #key)
  if code == YES then return reply.data_len end
  if code ~= NO then failed() end
  return -1
end

local ffi, tobit = core.ffi, core.sandbox.libraries.bit.tobit
local copy = ffi.copy

-- Reads the number of `len` bytes under a key into `box`: 0 if there is none. Gives the code of the record with its
-- flags and its expiry, which stay; nil if it is not a number.
local function read_number(key, box, len)
  box[0] = 0
  local code = record(context, db[INDEX], key, #key)
  if code == NO then return NO, 0, NEVER end
  if code ~= YES and code ~= WIDE then
    failed()
    return nil
  end
  if reply.data_len ~= len then return nil end
  copy(box, reply.data, len)
  return YES, reply.flags, reply.expires_at_ms
end

local ROWS = "the database is a table, whose rows have numbers in columns: the commands addint and adddouble of the protocol add to _num"

local put_same = native.put_same

-- Makes the function of that name, which adds to numbers of a C type; `sum_of` gives the sum.
local function adder(name, ctype, sum_of)
  local number, old = ffi.new(ctype .. "[1]"), ffi.new(ctype .. "[1]")
  local bytes, old_bytes = ffi.cast("const char *", number), ffi.cast("const char *", old)
  local len = ffi.sizeof(ctype)
  return function(...)
    local key, by = ...
    if type(key) ~= "string" then key = text_of(key) end
    by = tonumber(by)
    if select("#", ...) ~= 2 or key == nil or by == nil then invalid(name) end
    if is_table() then tyrant.refuse(name, ROWS) end
    -- Other threads write to a cache meanwhile.
    while true do
      local code, flags, at_ms = read_number(key, old, len)
      if code == nil then return nil end
      local sum = sum_of(old[0], by)
      if sum ~= sum then return nil end
      if code == YES and sum == old[0] then return sum end
      number[0] = sum
      local old_len = code == YES and len or -1
      code = put_same(context, db[INDEX], key, #key, old_bytes, old_len, bytes, len, flags, at_ms)
      if code == YES then return sum end
      if code ~= NO then
        failed()
        return nil
      end
    end
  end
end

-- Both are little-endian; integers wrap around.
functions._addint = adder("_addint", "int32_t", function(old, by)
  return tobit(old + (by < 0 and ceil(by) or floor(by)))
end)
functions._adddouble = adder("_adddouble", "double", function(old, by) return old + by end)

local clear = native.clear
function functions._vanish(...)
  if select("#", ...) ~= 0 then invalid("_vanish") end
  if clear(context, db[INDEX]) == YES then return true end
  return failed()
end

local statistics = native.statistics
function functions._rnum(...)
  if select("#", ...) ~= 0 then invalid("_rnum") end
  if statistics(context, db[INDEX]) == YES then return reply.number end
  failed()
  return 0
end

function functions._size(...)
  if select("#", ...) ~= 0 then invalid("_size") end
  if statistics(context, db[INDEX]) == YES then return reply.flags end
  failed()
  return 0
end
