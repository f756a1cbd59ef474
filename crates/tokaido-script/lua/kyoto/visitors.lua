-- Visitors: functions, or tables with methods, that see records and decide what happens to them.

local core = ...

local kyoto, native = core.kyoto, core.native
local context, reply, ffi_string = native.context, native.reply, native.string
local text_of, expiry, xt_of = kyoto.text_of, kyoto.expiry, kyoto.xt_of
local fail, failed, invalid = kyoto.fail, kyoto.failed, kyoto.invalid
local type, pcall, select, setmetatable, ipairs = type, pcall, select, setmetatable, ipairs

local INDEX, UNDO, engine_of = core.INDEX, kyoto.UNDO, kyoto.engine_of
local NO, YES, WIDE = 0, 1, 2
local ALWAYS, NEVER, INVALID = 0, -1, 2

local function magic(name)
  return setmetatable({}, { __tostring = function() return "Visitor." .. name end })
end
local NOP, REMOVE = magic "NOP", magic "REMOVE"

local Visitor = { NOP = NOP, REMOVE = REMOVE }
local visitor_meta = { __index = Visitor }
function Visitor.new() return setmetatable({}, visitor_meta) end
function Visitor.visit_full() return NOP end
function Visitor.visit_empty() return NOP end
function Visitor.visit_before() end
function Visitor.visit_after() end
kyoto.Visitor = Visitor

-- What the visitor says. An error in it counts as saying nothing.
local function ask(visitor, key, value, xt)
  local ok, said, new_xt
  if type(visitor) == "function" then
    ok, said, new_xt = pcall(visitor, key, value, xt)
  else
    local method = value == nil and visitor.visit_empty or value ~= nil and visitor.visit_full
    if not method then return NOP end
    ok, said, new_xt = pcall(method, visitor, key, value, xt)
  end
  if not ok then return NOP end
  return said, new_xt
end

-- Shows a record to a visitor, and does what it says; tells whether that was possible.
local function visit(self, key, value, at_ms, visitor, is_writable)
  local said, xt
  if value == nil then
    said, xt = ask(visitor, key, nil, nil)
  else
    said, xt = ask(visitor, key, value, xt_of(at_ms))
  end
  if said == NOP or not is_writable then return true end
  local engine = engine_of(self)
  if said == REMOVE then
    if value == nil then return true end
    if self[UNDO] and not engine.remember(self, key) then return false end
    local code = engine.delete(context, self[INDEX], key, #key)
    return code == YES or code == NO or failed(self)
  end
  said = text_of(said)
  if said == nil then return true end
  if self[UNDO] and not engine.remember(self, key) then return false end
  local new_at_ms = value ~= nil and at_ms or NEVER
  if xt ~= nil then new_at_ms = expiry(xt) end
  local code = engine.put_with(context, self[INDEX], key, #key, said, #said, 0, new_at_ms, ALWAYS)
  if code ~= YES then return failed(self) end
  return true
end
kyoto.visit = visit

local function is_visitor(visitor) return type(visitor) == "function" or type(visitor) == "table" end
kyoto.is_visitor = is_visitor

local function accept_key(self, key, visitor, is_writable)
  key = text_of(key)
  if key == nil then return fail(self, INVALID, "keys are strings or numbers") end
  local code = engine_of(self).record(context, self[INDEX], key, #key)
  if code == NO then return visit(self, key, nil, nil, visitor, is_writable) end
  if code ~= YES and code ~= WIDE then return failed(self) end
  local value, at_ms = ffi_string(reply.data, reply.data_len), reply.expires_at_ms
  return visit(self, key, value, at_ms, visitor, is_writable)
end

-- Calls `visit_before` or `visit_after` of a visitor, if it has that method.
local function tell(visitor, method)
  local told = type(visitor) == "table" and visitor[method]
  if told then pcall(told, visitor) end
end

local shared = {}

function shared.accept(...)
  local self, key, visitor, is_writable = ...
  local count = select("#", ...)
  if count < 3 or count > 4 or not is_visitor(visitor) then invalid("db_accept") end
  return accept_key(self, key, visitor, is_writable ~= false)
end

function shared.accept_bulk(...)
  local self, keys, visitor, is_writable = ...
  local count = select("#", ...)
  if count < 3 or count > 4 or type(keys) ~= "table" or not is_visitor(visitor) then
    invalid("db_accept_bulk")
  end
  tell(visitor, "visit_before")
  local is_done = true
  for _, key in ipairs(keys) do
    is_done = accept_key(self, key, visitor, is_writable ~= false) and is_done
  end
  tell(visitor, "visit_after")
  return is_done
end

function shared.iterate(...)
  local self, visitor, is_writable = ...
  local count = select("#", ...)
  if count < 2 or count > 3 or not is_visitor(visitor) then invalid("db_iterate") end
  tell(visitor, "visit_before")
  local is_done = true
  local step, walk = core.cabinet.records(self)
  for key, value, at_ms in step, walk do
    is_done = visit(self, key, value, at_ms, visitor, is_writable ~= false) and is_done
  end
  tell(visitor, "visit_after")
  return is_done
end

kyoto.shared = shared
