-- The database of Tokyo Tyrant's scripts, and how their functions fail.

local core = ...

local native, cabinet = core.native, core.cabinet
local context, reply = native.context, native.reply
local open, writable = native.open, native.writable
local error = error

local INDEX, NAME = core.INDEX, cabinet.NAME
local YES, NO, UNWRITTEN = 1, 0, 2

local tyrant = {
  -- The prefixes of each engine's native functions; `records.lua` is loaded once for each.
  prefixes = { "", "cache_" }, engines = {},
  PAGE = "docs/tokyo-tyrant-lua.md",
  -- The scripts' database.
  db = { [INDEX] = -1, [NAME] = "main" },
  -- What files find: functions by name.
  functions = {},
}
core.tyrant = tyrant

function cabinet.engine_of() return tyrant.engine end

-- Called by the function itself.
function tyrant.invalid(name)
  error(name .. ": invalid arguments", 3)
end

-- Raises for something that is not offered. Called by the function itself.
function tyrant.refuse(name, why)
  error(name .. " is not offered: " .. why .. "; see " .. tyrant.PAGE, 3)
end

-- What a native function refuses is not an error of the script, except outside a call.
function tyrant.failed()
  local code = writable(context)
  if code ~= YES and code ~= NO then
    error("the database can be used while a function is called, and not while its file is loaded")
  end
  return false
end
cabinet.failed = tyrant.failed

local db, is_settled = tyrant.db, false

-- Finds the database, at the beginning of a call.
function tyrant.settle()
  if is_settled then return end
  local name = db[NAME]
  local code = open(context, name, #name)
  if code ~= YES and code ~= UNWRITTEN then native.fail(2) end
  db[INDEX], is_settled = reply.number, code == YES
end

local forget_databases = core.forget_databases
function core.forget_databases()
  forget_databases()
  is_settled = false
end
