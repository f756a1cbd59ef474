-- Calls, which take a key and a value, and return bytes or nothing.

local core = ...

local tyrant, cabinet = core.tyrant, core.cabinet
local text_of = cabinet.text_of
local type, error, select, pairs = type, error, select, pairs

local function wrong_arguments()
  error({
    message = "a function of Tokyo Tyrant's takes a key and a value, which are strings or numbers",
    code = "INVALID", status = 400,
  }, 0)
end

-- A missing argument is empty.
local function argument(given)
  if given == nil then return "" end
  local text = text_of(given)
  if text == nil then wrong_arguments() end
  return text
end

-- The bytes of a string, of a number, or of true; nil for anything else.
local function bytes_of(result)
  if result == true then return "true" end
  return text_of(result)
end

local function shown(result)
  if type(result) == "table" then return bytes_of(result[1]) end
  return bytes_of(result)
end

-- Makes a procedure of a global function.
function tyrant.procedure(run)
  return function(_, ...)
    local key, value = ...
    if select("#", ...) > 2 then wrong_arguments() end
    key, value = argument(key), argument(value)
    tyrant.settle()
    return shown((run(key, value)))
  end
end

local function call(run, ...)
  tyrant.settle()
  return run(...)
end

local globals = {
  _version = "1.1.41",
  _sid = 0,
  -- Calls run one by one, whichever thread they run in.
  _thnum = 1, _thid = 1,
}
for name, run in pairs(tyrant.functions) do globals[name] = run end

core.guest = {
  page = tyrant.PAGE, procedure = tyrant.procedure, call = call, globals = globals,
  hooks = { _begin = "begin", _end = "end" },
}

-- By the engine's number, as in lua/transaction.lua.
local tree, cache = tyrant.engines[1], tyrant.engines[2]
local ENGINES = {
  [0] = { functions = tree.functions, record = tree.record, is_ordered = true },
  { functions = cache.functions, record = cache.record, is_ordered = false },
  { functions = tree.functions, record = tree.record, is_ordered = false },
}

-- Called once, before any file is loaded.
function core.configure(told)
  tyrant.db[cabinet.NAME] = told.tyrant_database
  tyrant.engine = ENGINES[told.tyrant_engine]
  globals._pid = told.process
  for name, run in pairs(tyrant.engine.functions) do
    globals[name], tyrant.functions[name] = run, run
  end
end
