-- The globals of scripts that clients send. All scripts share them, and no script can change any. Scripts
-- see empty tables that forward reads and refuse writes, since LuaJIT has no read-only
-- tables.

local core = ...

local sandbox = core.sandbox
local LIBRARIES, functions = sandbox.libraries, sandbox.copy(sandbox.functions)
local setmetatable, error, tostring, next, pairs = setmetatable, error, tostring, next, pairs
local rawget, rawset, select, type = rawget, rawset, select, type

local READ_ONLY = "Attempt to modify a readonly table"

-- The tables that the empty ones stand for.
local behind = {}

local function refuse() error(READ_ONLY, 2) end

function core.read_only(entries)
  local seen = setmetatable({}, { __index = entries, __newindex = refuse, __metatable = false })
  behind[seen] = entries
  return seen
end

function functions.rawset(table, key, value)
  if behind[table] then error(READ_ONLY, 0) end
  return rawset(table, key, value)
end

local set_metatable = setmetatable
function functions.setmetatable(table, meta)
  if behind[table] then error(READ_ONLY, 0) end
  return set_metatable(table, meta)
end

function functions.rawget(table, key) return rawget(behind[table] or table, key) end

local function next_of(table, key) return next(behind[table] or table, key) end
functions.next = next_of

function functions.pairs(table)
  if behind[table] then return next_of, table, nil end
  return pairs(table)
end

-- When pcall catches a command's error, it gives only the text.
local pcall = functions.pcall
local function caught(ok, raised, ...)
  if not ok and type(raised) == "table" then
    local message = rawget(raised, "err")
    if type(message) == "string" then return false, message end
  end
  return ok, raised, ...
end
function functions.pcall(...) return caught(pcall(...)) end

-- A script cannot control the collector: it shares the VM with others.
local collectgarbage = functions.collectgarbage
function functions.collectgarbage(what)
  if what == "count" then return collectgarbage "count" end
  return 0
end

function functions.gcinfo() return (collectgarbage "count") end

-- The functions of `table` that write.
local tables = sandbox.copy(LIBRARIES.table)
for _, name in next, { "insert", "remove", "sort" } do
  local write = tables[name]
  tables[name] = function(table, ...)
    if behind[table] then error(READ_ONLY, 0) end
    return write(table, ...)
  end
end

local globals = functions
core.redis_globals = setmetatable(globals, {
  __index = function(_, name)
    error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
  end,
})

core.redis_environment = core.read_only(globals)
globals._G = core.redis_environment
globals.string, globals.math = core.read_only(LIBRARIES.string), core.read_only(LIBRARIES.math)
globals.bit, globals.table = core.read_only(LIBRARIES.bit), core.read_only(tables)
globals.coroutine = core.read_only(LIBRARIES.coroutine)
globals.os = core.read_only { clock = LIBRARIES.os.clock }

local load = sandbox.make_load(core.redis_environment)
globals.load = load
function globals.loadstring(text, name) return load(text, name or text) end
