-- Files of the dialect. Each has its own globals, and whatever it requires is run in these, as in Apache, where
-- every file that answers requests has its own virtual machine. Comments at the beginning of a file, or the
-- configuration, say what the server uses it for: its route, the function that answers, hooks and filters.

local core = ...

local xpcall, type, error, rawget, rawset = xpcall, type, error, rawget, rawset
local ipairs, pairs, gsub, match = ipairs, pairs, string.gsub, string.match
local debug, sandbox = core.libraries.debug, core.sandbox
local getfenv, setfenv, setmetatable_of = debug.getfenv, debug.setfenv, debug.setmetatable

-- By module: {name =, path =, chunk =, settings =, globals =, loaded =}.
local files = {}

-- Modules of the product's own.
local builtin = {}

local loader = { builtin = builtin }

-- What Lua has and a file may have relied on.
local NOT_OFFERED = {}
for _, name in ipairs {
  "io", "debug", "package", "module", "dofile", "loadfile", "getfenv", "setfenv", "newproxy", "gcinfo",
  "utf8", "bit32",
} do
  NOT_OFFERED[name] = true
end

-- As in Lua itself, a global that was never set is nil.
local meta = {
  __index = function(_, name)
    if NOT_OFFERED[name] then
      error(name .. " is not offered; see " .. core.apache.PAGE, 2)
    end
    return nil
  end,
  __metatable = false,
}

local LIBRARIES = { "string", "table", "math", "os", "coroutine", "bit" }

-- Refuses a module that is already being loaded; `loading` has the outermost name first.
local function check_loop(loading, name)
  for i = 1, #loading do
    if loading[i] == name then
      error("modules require each other in a loop: " .. table.concat(loading, " -> ") .. " -> " .. name, 3)
    end
  end
end

-- `require` for a file. Modules run in its globals, once.
local function make_require(file)
  local loaded, loading = {}, { file.name }
  for _, name in ipairs(LIBRARIES) do loaded[name] = rawget(file.globals, name) end
  loaded.apache2 = file.globals.apache2
  return function(name)
    if type(name) ~= "string" then
      error("require takes the name of a module, this is " .. core.text.described(name), 2)
    end
    if loaded[name] ~= nil then return loaded[name] end
    if builtin[name] ~= nil then return builtin[name] end
    local module = files[name]
    if not module then error("no module '" .. name .. "' in the procedures directory", 2) end
    if module.broken then error("module '" .. name .. "' did not load: " .. module.broken, 2) end
    check_loop(loading, name)
    loading[#loading + 1] = name
    setfenv(module.chunk, file.globals)
    local ok, value = xpcall(module.chunk, core.keep_error, name)
    loading[#loading] = nil
    if not ok then error(value, 0) end
    if value == nil then value = true end
    loaded[name] = value
    return value
  end
end

function loader.define(name, path, chunk, settings)
  local globals = getfenv(chunk)
  local file = { name = name, path = path, chunk = chunk, settings = settings, globals = globals }
  files[name] = file
  rawset(globals, "print", core.print)
  rawset(globals, "collectgarbage", sandbox.collect_nothing)
  rawset(globals, "apache2", sandbox.copy(core.apache.constants))
  rawset(globals, "load", sandbox.make_load(globals))
  rawset(globals, "loadstring", rawget(globals, "load"))
  rawset(globals, "require", make_require(file))
  setmetatable_of(globals, meta)
end

function loader.define_broken(name, _, message)
  files[name] = { name = name, broken = message }
end

-- The method and the path of a route; one without a method is for all methods.
local function route_of(file)
  local route = file.settings.route
  if not route then return "*", "/" .. gsub(file.name, "%.", "/") .. ".lua" end
  local method, pattern = match(route, "^(%u+)%s+(/%S*)$")
  if method then return method, pattern end
  return "*", match(route, "^/%S*$")
end

-- The function of a file that a setting names.
local function named(file, setting)
  local name = file.settings[setting]
  if not name then return nil end
  local found = rawget(file.globals, name)
  if type(found) ~= "function" then
    error("it names '" .. name .. "' as " .. setting .. ", and has no function of that name", 0)
  end
  return found
end

local function settle(file)
  setfenv(file.chunk, file.globals)
  file.chunk(file.name)
  file.method, file.pattern = route_of(file)
  if not file.pattern then
    error("its route '" .. file.settings.route .. "' is neither a path nor a method and a path, as in GET /hello", 0)
  end
  file.run = named(file, "function")
  local handle = rawget(file.globals, "handle")
  if not file.run and type(handle) == "function" then file.run = handle end
  if file.settings.route and not file.run then
    error("it has a route, and no function 'handle' that answers there", 0)
  end
  for _, kind in ipairs { "output_filter", "input_filter" } do
    local run = named(file, kind)
    file[kind] = run and { run = run, globals = file.globals }
  end
  if file.output_filter then core.apache.offer_output_filter(file.settings.output_filter, file.output_filter, file.path) end
  local hooks = {}
  for phase in pairs(core.apache.hooks) do hooks[phase] = named(file, phase) end
  for phase, run in pairs(hooks) do core.apache.add_hook(phase, run) end
  if file.run then core.apache.add_script(file) end
end

-- Runs a file; gives nil, or why it failed.
function loader.load(name)
  local ok, failure = xpcall(settle, core.on_error, files[name])
  if ok then return nil end
  files[name].run = nil
  return failure
end

function loader.abandon() end

function loader.exports(name)
  local file = files[name]
  if not file.run then return {} end
  local field = file.settings["function"] or "handle"
  return { {
    field = field, mode = file.settings.writes == "true" and "write" or "read",
    method = file.method, pattern = file.pattern, run = core.apache.procedure(file),
    line = core.line_of(file.run),
  } }
end

core.loader = loader
