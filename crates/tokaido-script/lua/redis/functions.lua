-- Libraries of functions: the globals of their code while it is loaded (only `redis`), and
-- `redis.register_function`.

local core = ...

local globals, redis = core.redis_globals, core.redis_globals.redis
local pairs, select, type, tostring = pairs, select, type, tostring
local error, setmetatable, find = error, setmetatable, string.find

-- What scripts have and functions do not: in Redis, these exist for old scripts.
for _, name in pairs { "replicate_commands", "breakpoint", "debug" } do core.redis_entries[name] = nil end

-- What a library's code has registered so far; nil unless one is being loaded.
local registered

-- What `globals` has besides `redis` when no library is being loaded.
local whole

local function refuse(message) error({ err = "ERR " .. message }, 0) end

local NAME_RULE = "Library names can only contain letters, numbers, or underscores(_) and must be at least one "
  .. "character long"

local FLAGS = {
  ["no-writes"] = true, ["allow-oom"] = true, ["allow-stale"] = true, ["no-cluster"] = true,
  ["allow-cross-slot-keys"] = true,
}

local function is_text(value) return type(value) == "string" or type(value) == "number" end

local function text_of(value, what)
  if not is_text(value) then
    refuse(what .. " argument given to redis.register_function must be a string")
  end
  return tostring(value)
end

local function flags_of(value)
  if type(value) ~= "table" then
    refuse "flags argument to redis.register_function must be a table representing function flags"
  end
  local flags, place = {}, 1
  while value[place] ~= nil do
    if not FLAGS[value[place]] then refuse "unknown flag given" end
    flags[value[place]], place = true, place + 1
  end
  return flags
end

-- How each named argument is converted.
local ARGUMENTS = {
  function_name = function(value) return text_of(value, "function_name") end,
  description = function(value) return text_of(value, "description") end,
  callback = function(value)
    if type(value) ~= "function" then
      refuse "callback argument given to redis.register_function must be a function"
    end
    return value
  end,
  flags = flags_of,
}

local function named(given)
  if type(given) ~= "table" then
    refuse("calling redis.register_function with a single argument is only applicable to Lua table "
      .. "(representing named arguments).")
  end
  local arguments = {}
  for name, value in pairs(given) do
    if not is_text(name) then
      refuse "named argument key given to redis.register_function is not a string"
    end
    local read = ARGUMENTS[name]
    if not read then refuse "unknown argument given to redis.register_function" end
    arguments[name] = read(value)
  end
  if not arguments.function_name then
    refuse "redis.register_function must get a function name argument"
  end
  if not arguments.callback then
    refuse "redis.register_function must get a callback argument"
  end
  return arguments
end

local function positional(name, callback)
  if not is_text(name) then
    refuse "first argument to redis.register_function must be a string"
  end
  if type(callback) ~= "function" then
    refuse "second argument to redis.register_function must be a function"
  end
  return { function_name = tostring(name), callback = callback }
end

local at_load = { log = redis.log }
for _, name in pairs { "LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING" } do
  at_load[name] = redis[name]
end

function at_load.register_function(...)
  if not registered then
    refuse "redis.register_function can only be called on FUNCTION LOAD command"
  end
  local count = select("#", ...)
  if count < 1 or count > 2 then
    refuse "wrong number of arguments to redis.register_function"
  end
  local arguments = count == 1 and named(...) or positional(...)
  if not find(arguments.function_name, "^[%w_]+$") then refuse(NAME_RULE) end
  if registered[arguments.function_name] then refuse "Function already exists in the library" end
  registered[arguments.function_name] = arguments
  registered[#registered + 1] = arguments
end

setmetatable(at_load, {
  __index = function(_, name)
    error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
  end,
})
local redis_at_load = core.read_only(at_load)

local set_version = core.set_version
function core.set_version(text, number)
  set_version(text, number)
  at_load.REDIS_VERSION, at_load.REDIS_VERSION_NUM = text, number
end

-- From here on, until `end_loading`, the code that runs is a library's.
function core.begin_loading()
  registered, whole = {}, {}
  for name, value in pairs(globals) do whole[name] = value end
  for name in pairs(whole) do globals[name] = nil end
  globals.redis = redis_at_load
end

-- Gives the functions that were registered, in order.
function core.end_loading()
  local functions = registered
  for name, value in pairs(whole) do globals[name] = value end
  registered, whole = nil, nil
  return functions
end
