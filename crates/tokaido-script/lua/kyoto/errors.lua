-- The errors of databases, as objects, and what the other files of the dialect share.

local core = ...

local native = core.native
local context, reply, ffi_string = native.context, native.reply, native.string
local writable = native.writable
local error, type, setmetatable = error, type, setmetatable
local tonumber, floor = tonumber, math.floor
local match = string.match

local YES, NO = 1, 0

local kyoto = {
  -- The prefixes of each engine's native functions; `database.lua` is loaded once for each.
  prefixes = { "", "cache_" }, engines = {},
  PAGE = "docs/kyoto-tycoon-lua.md",
}
core.kyoto = kyoto

-- The keys under which a database has its name, its last error, and what its own transaction has to restore.
-- No program can name them: strings are the keys of records.
kyoto.NAME, kyoto.ENGINE = core.cabinet.NAME, function() end
local CODE, MESSAGE = function() end, function() end
kyoto.CODE, kyoto.MESSAGE, kyoto.UNDO = CODE, MESSAGE, function() end

-- The engine behind a database. The database holds only its number, since a program can find what its fields
-- hold, and must not get at native functions.
local ENGINE = kyoto.ENGINE
function kyoto.engine_of(db) return kyoto.kinds[db[ENGINE]] end
core.cabinet.engine_of = kyoto.engine_of

local INVALID, NOREC, LOGIC = 2, 7, 8

local CODES = {
  SUCCESS = 0, NOIMPL = 1, INVALID = INVALID, NOREPOS = 3, NOPERM = 4, BROKEN = 5, DUPREC = 6,
  NOREC = NOREC, LOGIC = LOGIC, SYSTEM = 9, MISC = 15,
}

local NAMES = {
  [0] = "success", "not implemented", "invalid operation", "no repository", "no permission",
  "broken file", "record duplication", "no record", "logical inconsistency", "system error",
  [15] = "miscellaneous error",
}

local Error = {}
for name, code in pairs(CODES) do Error[name] = code end

local error_meta = {
  __index = Error,
  __tostring = function(self) return self:name() .. ": " .. self:message() end,
}

function Error.new(_, code, message)
  return setmetatable({ code_ = tonumber(code) or 0, message_ = message or "no error" }, error_meta)
end

function Error.set(self, code, message)
  if type(self) ~= "table" or tonumber(code) == nil or type(message) ~= "string" then
    error("err_set: invalid arguments", 2)
  end
  self.code_, self.message_ = tonumber(code), message
end

function Error.code(self) return self.code_ end
function Error.name(self) return NAMES[self.code_] or "unknown error" end
function Error.message(self) return self.message_ end

kyoto.Error = Error

-- Raises for a wrong number of arguments. Called by the method itself.
function kyoto.invalid(name)
  error(name .. ": invalid arguments", 3)
end

-- Raises for something that is not offered. Called by the method itself.
function kyoto.refuse(name, why)
  error(name .. " is not offered: " .. why .. "; see " .. kyoto.PAGE, 3)
end

-- Notes why a method of a database did nothing; gives false, as most of these methods do.
function kyoto.fail(self, code, message)
  self[CODE], self[MESSAGE] = code, message
  return false
end

-- The same for a missing record.
function kyoto.missing(self)
  if self[core.INDEX] < 0 then
    self[CODE], self[MESSAGE] = INVALID, "not opened"
  else
    self[CODE], self[MESSAGE] = NOREC, "no record"
  end
  return false
end

-- The same for the answer of a native function. Outside a call it is an error of the script, whose line
-- lua/errors.lua finds.
function kyoto.failed(self)
  local message = ffi_string(reply.data, reply.data_len)
  local of_kind = match(message, "^WRONGTYPE (.*)")
  if of_kind then return kyoto.fail(self, LOGIC, of_kind) end
  if self[core.INDEX] < 0 and self[kyoto.NAME] == false then
    return kyoto.fail(self, INVALID, "not opened")
  end
  local code = writable(context)
  if code ~= YES and code ~= NO then
    error("databases can be used while a procedure runs, and not while its file is loaded")
  end
  return kyoto.fail(self, INVALID, message)
end

core.cabinet.failed = kyoto.failed
kyoto.text_of = core.cabinet.text_of

-- An `xt` further away than this counts as none.
local XT_MAX = 2 ^ 40 - 1
kyoto.XT_MAX = XT_MAX

-- When a record written now with this `xt` expires, in ms; negative is never.
local now = native.now
function kyoto.expiry(xt)
  xt = tonumber(xt) or 0
  local at
  if xt < 0 then
    at = floor(-xt)
  else
    now(context)
    at = floor(reply.number / 1000) + floor(xt)
  end
  if at >= XT_MAX then return -1 end
  return at * 1000
end

-- The `xt` of a record that expires at that time.
function kyoto.xt_of(at_ms)
  if at_ms < 0 then return XT_MAX end
  return floor(at_ms / 1000)
end

-- The text for a number in maps and arrays: its digits, with six of them after the point of a fraction. Anything
-- that is neither string nor number gives nil.
local format = string.format
function kyoto.item_text(value)
  if type(value) == "string" then return value end
  if type(value) ~= "number" then return nil end
  if value == floor(value) and value >= -2 ^ 63 and value < 2 ^ 63 then
    return format("%d", value)
  end
  return format("%.6f", value)
end
