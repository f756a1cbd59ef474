-- Procedure files: each is loaded once, in its own environment, and `require` finds the others.

local core = ...

local xpcall, type, error, tostring, ipairs, pairs = xpcall, type, error, tostring, ipairs, pairs
local sort = table.sort

-- By name: {chunk =, path =, state = "new" | "loading" | "ready" | "failed", value =, failure =}.
local modules = {}

-- Names that are being loaded, outermost first.
local loading = {}

-- What the product itself offers to `require`.
local builtin = {}

local loader = { builtin = builtin }

-- Registers a module whose text compiled.
function loader.define(name, path, chunk)
  modules[name] = { chunk = chunk, path = path, state = "new" }
end

-- Registers one whose text did not, so that `require` can say why.
function loader.define_broken(name, path, message)
  modules[name] = { path = path, state = "failed", failure = { message = message } }
end

local function run(name, module)
  module.state = "loading"
  loading[#loading + 1] = name
  local ok, value = xpcall(module.chunk, core.on_error, name)
  loading[#loading] = nil
  module.chunk = nil
  if ok and type(value) ~= "table" then
    ok, value = false, {
      message = "a procedure file returns a table of its procedures; this one returns "
        .. core.text.described(value),
    }
  end
  if ok then
    module.state, module.value = "ready", value
  else
    module.state, module.failure = "failed", value
  end
end

local function loop_text(name)
  local names, inside = {}, false
  for _, other in ipairs(loading) do
    inside = inside or other == name
    if inside then names[#names + 1] = other end
  end
  names[#names + 1] = name
  return table.concat(names, " -> ")
end

function core.require(name)
  if type(name) ~= "string" then
    error("require takes the name of a module, this is " .. core.text.described(name), 2)
  end
  if builtin[name] ~= nil then return builtin[name] end
  local module = modules[name]
  if not module then error("no module '" .. name .. "' in the procedures directory", 2) end
  if module.state == "loading" then
    error("modules require each other in a loop: " .. loop_text(name), 2)
  end
  if module.state == "new" then run(name, module) end
  if module.state == "failed" then
    error("module '" .. name .. "' did not load: " .. tostring(module.failure.message), 2)
  end
  return module.value
end

-- Loads a module if it was not loaded before; gives nil, or why it failed.
function loader.load(name)
  local module = modules[name]
  if module.state == "new" then run(name, module) end
  if module.state == "failed" then return module.failure end
  return nil
end

-- Marks as failed the modules that were being loaded when loading was stopped from outside.
function loader.abandon(message)
  for i = #loading, 1, -1 do
    local module = modules[loading[i]]
    module.state, module.failure = "failed", { message = message }
    loading[i] = nil
  end
end

-- The procedures that a module exports, sorted by name.
function loader.exports(name)
  local module, exports = modules[name], {}
  if module.state ~= "ready" then return exports end
  for field, value in pairs(module.value) do
    if type(field) == "string" and core.procedure.is(value) then
      exports[#exports + 1] = {
        field = field, mode = value.mode, method = value.method, pattern = value.pattern,
        run = value.run, line = core.line_of(value.run),
      }
      local whole = name .. "." .. field
      if not value.method and not core.own_procedures[whole] then core.own_procedures[whole] = value end
    end
  end
  sort(exports, function(a, b) return a.field < b.field end)
  return exports
end

core.loader = loader
