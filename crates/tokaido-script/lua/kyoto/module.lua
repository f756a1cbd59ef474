-- `__kyototycoon__`, and calls, which take a map, and return a code and a map.

local core = ...

local kyoto = core.kyoto
local type, tostring, tonumber, error, pairs, select = type, tostring, tonumber, error, pairs, select
local setmetatable, xpcall = setmetatable, xpcall
local floor, format, ceil = math.floor, string.format, math.ceil

local module = {
  VERSION = "0.9.56",
  -- Calls run one by one, in the thread that writes.
  thid = 0,
  RVSUCCESS = 0, RVENOIMPL = 1, RVEINVALID = 2, RVELOGIC = 3, RVETIMEOUT = 4, RVEINTERNAL = 5,
  Error = kyoto.Error, Visitor = kyoto.Visitor, Cursor = kyoto.Cursor, DB = kyoto.DB,
}
for name, entry in pairs(kyoto.functions) do module[name] = entry end

local FileProcessor = {}
local processor_meta = { __index = FileProcessor }
function FileProcessor.new() return setmetatable({}, processor_meta) end
function FileProcessor.process() return true end
module.FileProcessor = FileProcessor

kyoto.module = module

-- Called once, before any file is loaded; `kyoto_databases` are the numbered databases.
function core.configure(told)
  module.dbs = {}
  for place, name in ipairs(told.kyoto_databases) do
    local db = kyoto.database(name)
    module.dbs[place], module.dbs[name] = db, db
  end
  module.db = module.dbs[1]
end

-- What a procedure has refused with: its name, and its status in HTTP.
local REFUSALS = {
  { "RVENOIMPL", 501 }, { "RVEINVALID", 400 }, { "RVELOGIC", 450 }, { "RVETIMEOUT", 503 },
  { "RVEINTERNAL", 500 },
}

-- What was written before is kept, as in Kyoto Tycoon; see src/failure.rs.
local function refuse(code)
  local refusal = REFUSALS[code] or REFUSALS[module.RVEINTERNAL]
  error(setmetatable({
    message = "the procedure gave " .. refusal[1], code = refusal[1], status = refusal[2],
  }, core.KEPT), 0)
end

-- A value in a map, as seen outside Lua; nil if it has no place there.
local function shown(value)
  local kind = type(value)
  if kind == "string" then return value end
  if kind == "number" then
    if value == floor(value) and value >= -2 ^ 63 and value < 2 ^ 63 then return format("%d", value) end
    return format("%f", value)
  end
  if kind == "boolean" then return tostring(value) end
  return nil
end

-- The map that a procedure gets: from a table, or from alternating names and values.
local function inputs(first, ...)
  local map, count = {}, select("#", ...)
  if type(first) == "table" and count == 0 then
    for name, value in pairs(first) do
      name, value = shown(name), shown(value)
      if name and value then map[name] = value end
    end
    return map
  end
  if first == nil and count == 0 then return map end
  if count % 2 == 0 then
    error({
      message = "a procedure of Kyoto Tycoon takes names and values in turn, or one map of them",
      code = "RVEINVALID", status = 400,
    }, 0)
  end
  local given = { first, ... }
  for i = 1, count, 2 do
    local name, value = shown(given[i]), shown(given[i + 1])
    if name and value then map[name] = value end
  end
  return map
end

local function outputs(map)
  local shown_map = setmetatable({}, core.object_meta)
  for name, value in pairs(map) do
    name, value = shown(name), shown(value)
    if name and value then shown_map[name] = value end
  end
  return shown_map
end

-- The code for a result, as C reads it: anything that is not a number is a success.
local function code_of(result)
  local code = tonumber(result) or 0
  return code < 0 and ceil(code) or floor(code)
end

-- Calls a function with the databases available.
local function call(run, ...)
  kyoto.settle()
  local ok, result = xpcall(run, core.keep_error, ...)
  kyoto.unsettle()
  if not ok then error(result, 0) end
  return result
end

-- Makes a procedure of a global function.
function kyoto.procedure(run)
  return function(_, ...)
    local inmap, outmap = inputs(...), {}
    local code = code_of(call(run, inmap, outmap))
    if code ~= module.RVSUCCESS then refuse(code) end
    return outputs(outmap)
  end
end

core.guest = {
  page = kyoto.PAGE, procedure = kyoto.procedure, call = call, globals = { __kyototycoon__ = module }, hooks = {},
}
