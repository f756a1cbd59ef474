-- Files of Kyoto Tycoon and Tokyo Tyrant: the global functions of a file are its procedures, and everything else
-- that it does while it is loaded is initialisation.
--
-- `core.guest` describes the dialect: `page`, where it is documented; `globals`, what its files find;
-- `procedure(run)`, which makes a function a procedure; `call(run, ...)`, which runs one as a call does; `hooks`, the
-- names of the functions that the server calls, and when it does.

local core = ...

local xpcall, type, error, tostring, rawset = xpcall, type, error, tostring, rawset
local pairs, find, select, unpack = pairs, string.find, select, unpack
local debug, sandbox = core.libraries.debug, core.sandbox
local getfenv, setmetatable_of = debug.getfenv, debug.setmetatable

-- By module: the chunk, its globals, and what these were before it ran.
local files = {}

-- What Lua 5.1 has and a file may have relied on.
local NOT_OFFERED = {}
for _, name in pairs {
  "io", "debug", "package", "require", "module", "dofile", "loadfile", "getfenv", "setfenv", "newproxy",
  "gcinfo",
} do
  NOT_OFFERED[name] = true
end

-- As in Lua itself, a global that was never set is nil.
local meta = {
  __index = function(_, name)
    if NOT_OFFERED[name] then
      error(name .. " is not offered: a script reaches nothing but its databases; see "
        .. core.guest.page, 2)
    end
    return nil
  end,
  __metatable = false,
}

local LEVEL_INFO = 2
function core.print(...)
  local pieces = {}
  for i = 1, select("#", ...) do pieces[i] = tostring((select(i, ...))) end
  local line = table.concat(pieces, "\t")
  if core.write_out then return core.write_out(line) end
  core.native.log(core.native.context, LEVEL_INFO, line, #line)
end

local loader = {}

local function furnish(globals)
  rawset(globals, "print", core.print)
  rawset(globals, "require", nil)
  rawset(globals, "collectgarbage", sandbox.collect_nothing)
  for field, value in pairs(core.guest.globals) do rawset(globals, field, value) end
  setmetatable_of(globals, meta)
  return globals
end

function loader.define(name, path, chunk)
  local globals = furnish(getfenv(chunk))
  files[name] = { path = path, chunk = chunk, globals = globals, before = sandbox.copy(globals) }
end

function loader.define_broken() end

-- Runs a file; gives nil, or why it failed.
function loader.load(name)
  local ok, failure = xpcall(files[name].chunk, core.on_error)
  if not ok then return failure end
  return nil
end

function loader.abandon() end

-- The procedures of a file, named just by their functions. Only functions written in the file count, since a
-- global may also be another name for an offered function. Several files may have the same hook.
function loader.exports(name)
  local file, exports, hooks = files[name], {}, core.guest.hooks
  local source = debug.getinfo(file.chunk, "S").source
  for field, value in pairs(file.globals) do
    local is_own = type(field) == "string" and type(value) == "function" and value ~= file.before[field]
      and debug.getinfo(value, "S").source == source
    local hook = is_own and hooks[field] or nil
    if is_own and (hook or find(field, "^%a[%w_]*$")) then
      exports[#exports + 1] = {
        field = field, name = hook and name .. "." .. field or field, mode = "write", hook = hook,
        run = core.guest.procedure(value), line = debug.getinfo(value, "S").linedefined,
      }
    end
  end
  table.sort(exports, function(a, b) return a.field < b.field end)
  return exports
end

-- The globals of scripts.
function core.make_session()
  return sandbox.of_script(furnish(sandbox.environment(false)))
end

local begin_write, commit, rollback = core.native.begin_write, core.native.commit, core.native.rollback
local context, reply, YES = core.native.context, core.native.reply, 1

local function refused() error(core.native.string(reply.data, reply.data_len), 0) end

local function pack(...) return { n = select("#", ...), ... } end

-- A script is the body of a call: it runs in one transaction, which is durable when the script has ended.
function core.script_of(chunk)
  return function(...)
    if begin_write(context) ~= YES then refused() end
    local results
    local function body(...) results = pack(chunk(...)) end
    local ok, raised = xpcall(core.guest.call, core.keep_error, body, ...)
    -- A script that ends itself has done its work.
    local is_done = ok or raised == core.EXIT
    if not is_done then rollback(context) elseif commit(context) ~= YES then refused() end
    if not ok then error(raised, 0) end
    return unpack(results, 1, results.n)
  end
end

core.loader = loader
