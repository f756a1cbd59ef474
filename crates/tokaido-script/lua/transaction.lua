-- The transaction that a procedure gets as its first argument, with its databases as fields.
--
-- One table serves every call of the VM: a database, once used, is a plain field of it. Only the
-- native side knows whether a transaction is running, and whether it may write.

local core = ...

local native = core.native
local context, reply, fail = native.context, native.reply, native.fail
local open, now, writable = native.open, native.now, native.writable
local native_drop = native.drop_database
local type, error, rawset, setmetatable = type, error, rawset, setmetatable
local pairs = pairs

local INDEX = core.INDEX
local YES, NO, UNWRITTEN = 1, 0, 2
local UNMADE = -1

local function refuse_field(_, name)
  error("a database has no field '" .. tostring(name) .. "'; write with db:put(key, value)", 2)
end

local function no_method(_, name)
  error("a database has no method '" .. tostring(name) .. "'", 2)
end

local function meta_of(class)
  setmetatable(class, { __index = no_method })
  return {
    __index = class,
    __newindex = refuse_field,
    __tostring = function(self) return "database " .. self.name end,
    __metatable = core.OURS,
  }
end

-- By the engine that `open` gives; src/bridge/databases.rs has the same numbers.
local METAS = { [0] = meta_of(core.Database), meta_of(core.Cache), meta_of(core.Cdb) }

local Transaction = {}

-- Opens a database by name, and keeps it as a field if it exists. A missing one is empty, and is
-- looked up again next time.
local function database(self, name, level)
  if type(name) ~= "string" then
    error("a database has a string as its name, this is " .. core.text.described(name), level)
  end
  local code = open(context, name, #name)
  if code ~= YES and code ~= NO and code ~= UNWRITTEN then fail(level + 1) end
  local index, engine = UNMADE, 0
  if code ~= NO then index, engine = reply.number, reply.flags end
  local made = setmetatable({ [INDEX] = index, name = name }, METAS[engine])
  if code == YES and Transaction[name] == nil then rawset(self, name, made) end
  return made
end

function Transaction:database(name)
  if self ~= core.transaction then
    error("call tx:database with a colon, as in tx:database(name)", 2)
  end
  local made = database(core.transaction, name, 3)
  return made
end

-- Deletes a database with all its records, and frees its name; tells whether there was one.
function Transaction:drop_database(name)
  if self ~= core.transaction then
    error("call tx:drop_database with a colon, as in tx:drop_database(name)", 2)
  end
  if type(name) ~= "string" then
    error("a database has a string as its name, this is " .. core.text.described(name), 2)
  end
  local code = native_drop(context, name, #name)
  if code ~= YES and code ~= NO then fail() end
  rawset(core.transaction, name, nil)
  return code == YES
end

function Transaction:now_ms()
  if now(context) ~= YES then fail() end
  return reply.number
end

function Transaction:is_writable()
  local code = writable(context)
  if code == YES then return true end
  if code ~= NO then fail() end
  return false
end

core.Transaction = Transaction
core.transaction = setmetatable({}, {
  __index = function(self, name)
    local method = Transaction[name]
    if method then return method end
    local made = database(self, name, 3)
    return made
  end,
  __newindex = function(_, name)
    error("tx." .. tostring(name) .. " is a database; write with tx."
      .. tostring(name) .. ":put(key, value)", 2)
  end,
  __tostring = function() return "transaction" end,
  __metatable = core.OURS,
})

-- After a database is dropped anywhere, another one may get its number.
function core.forget_databases()
  for name in pairs(core.transaction) do rawset(core.transaction, name, nil) end
end
