-- Files of the dialect. The comments at the beginning of a file, or the configuration,
-- say what the file is:
--
--   -- dialect: ngx
--   -- route: GET /hello       answers requests, as a file of content_by_lua_file does
--   -- access: auth            a file that runs before it, and so on for the other phases
--
-- or `-- phase: init`, for a file that is run when a VM starts. All others are modules, which `require` finds.
--
-- How the parts of the dialect fit together: each file of this folder gets `core`, in the order of `src/dialect.rs`.
-- It puts functions into `core.ngx`, which scripts have as `ngx`, and modules into `core.modules`: under the name
-- that is passed to `require`, a function that makes the module when it is first asked for.

local core = ...

local xpcall, type, error, tostring, ipairs = xpcall, type, error, tostring, ipairs
local match, concat = string.match, table.concat
local setfenv = core.libraries.debug.setfenv
local sandbox = core.sandbox

core.ngx = {}
core.modules = {}

core.PAGE = "docs/openresty.md"

-- By module name: {name =, path =, chunk =, settings =, state =, value =, failure =}.
local files = {}

-- In the order in which they were defined.
local order = {}

-- The phases of a request that another file can be named for.
local PHASES = { "rewrite", "access", "header_filter", "body_filter", "log" }

-- The globals that all files share, as in nginx.
local globals

-- What Lua 5.1 has and a file may have relied on.
local NOT_OFFERED = {}
for _, name in ipairs {
  "io", "debug", "package", "module", "dofile", "loadfile", "getfenv", "setfenv", "newproxy", "gcinfo", "ffi", "jit",
} do
  NOT_OFFERED[name] = true
end

-- As in Lua itself, a global that was never set is nil.
local globals_meta = {
  __index = function(_, name)
    if NOT_OFFERED[name] then
      error(name .. " is not offered: a handler reaches neither files nor memory; see " .. core.PAGE, 2)
    end
    return nil
  end,
  __metatable = false,
}

local loader = {}

local function make_globals(environment)
  globals = environment
  globals.ngx = core.ngx
  globals.print = core.print
  globals.require = core.require
  globals.coroutine = core.coroutine
  globals.collectgarbage = sandbox.collect_nothing
  globals.load = sandbox.make_load(globals)
  globals.loadstring = function(chunk, name) return globals.load(chunk, name or chunk) end
  core.globals = globals
  core.libraries.debug.setmetatable(globals, globals_meta)
  return globals
end

-- The shared globals, for a script.
function core.globals_of_script()
  return sandbox.of_script(globals or make_globals(sandbox.environment(false)))
end

function loader.define(name, path, chunk, settings)
  setfenv(chunk, globals or make_globals(core.libraries.debug.getfenv(chunk)))
  files[name] = { name = name, path = path, chunk = chunk, settings = settings, state = "new" }
  order[#order + 1] = files[name]
end

function loader.define_broken(name, path, message)
  files[name] = { name = name, path = path, state = "failed", failure = { message = message } }
end

-- Modules that are being loaded, outermost first.
local loading = {}

local function run(file)
  file.state = "loading"
  loading[#loading + 1] = file
  local ok, value = xpcall(file.chunk, core.on_error, file.name)
  loading[#loading] = nil
  if ok then
    file.state, file.value = "ready", value == nil and true or value
  else
    file.state, file.failure = "failed", value
  end
end

function core.is_loading() return #loading > 0 end

-- A file that a limit or `ngx.exit` cut off while it was loading is loaded again when it is next required.
function core.forget_loading()
  for i = #loading, 1, -1 do loading[i].state, loading[i] = "new", nil end
end

local loaded = {}

-- One of the dialect's own modules, or else a file.
function core.require(name)
  if type(name) ~= "string" then
    error("require takes the name of a module, this is " .. core.text.described(name), 2)
  end
  if loaded[name] ~= nil then return loaded[name] end
  local make = core.modules[name]
  if make then
    local module = make()
    loaded[name] = module
    return module
  end
  local file = files[name]
  if not file then
    error("no module '" .. name .. "' in the procedures directory; " .. core.PAGE
      .. " has those that are built in", 2)
  end
  if file.state == "loading" then
    local names = {}
    for i, other in ipairs(loading) do names[i] = other.name end
    error("modules require each other in a loop: " .. concat(names, " -> ") .. " -> " .. name, 2)
  end
  if file.state == "new" then run(file) end
  if file.state == "failed" then
    error("module '" .. name .. "' did not load: " .. tostring(file.failure.message), 2)
  end
  return file.value
end

-- The method and the pattern of a route; a route without a method is for all methods.
local function route_of(file)
  local route = file.settings.route
  local method, pattern = match(route, "^(%u+)%s+(/%S*)$")
  if method then return method, pattern end
  return "*", match(route, "^(/%S*)$")
end

local function check_route(file)
  local _, pattern = route_of(file)
  if not pattern then
    error("its route '" .. file.settings.route
      .. "' is neither a path nor a method and a path, as in GET /hello", 0)
  end
  for _, phase in ipairs(PHASES) do
    local name = file.settings[phase]
    if name and not files[name] then
      error("its file of the phase " .. phase .. ", '" .. name .. "', is not there", 0)
    end
    if name and files[name].state == "failed" then
      error("its file of the phase " .. phase .. ", '" .. name .. "', did not load", 0)
    end
  end
end

local function run_phase(file, phase)
  if file.state ~= "new" or file.settings.phase ~= phase then return end
  core.phase = phase
  run(file)
  core.phase = nil
end

-- Does what has to be done with a file before requests come; gives nil, or why that failed. Files of the phase
-- init run before those of init_worker.
function loader.load(name)
  local file = files[name]
  local phase = file.settings.phase
  if file.settings.route then
    local ok, failure = xpcall(check_route, core.on_error, file)
    return not ok and failure or nil
  end
  if phase == nil then return nil end
  if phase ~= "init" and phase ~= "init_worker" then
    return { message = "no phase '" .. phase .. "' for a file; there are init and init_worker" }
  end
  for _, other in ipairs(order) do run_phase(other, "init") end
  run_phase(file, phase)
  return file.failure
end

function loader.abandon(message)
  for i = #loading, 1, -1 do
    loading[i].state, loading[i].failure = "failed", { message = message }
    loading[i] = nil
  end
end

-- The handler of a file: its chunk, and those of the phases around it.
local function handler_of(file)
  local method, pattern = route_of(file)
  local handler = { content = file.chunk, method = method, pattern = pattern }
  for _, phase in ipairs(PHASES) do
    local name = file.settings[phase]
    handler[phase] = name and files[name].chunk
  end
  return handler
end

-- A file with a route is one handler, under its own name.
function loader.exports(name)
  local file = files[name]
  if not file.settings.route or file.state == "failed" then return {} end
  local method, pattern = route_of(file)
  return { {
    field = name, name = name, mode = file.settings.writes == "true" and "write" or "read",
    method = method, pattern = pattern, run = core.handler(handler_of(file)), line = 1, is_of_worker = true,
  } }
end

core.loader = loader
