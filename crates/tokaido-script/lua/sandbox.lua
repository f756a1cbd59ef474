-- The environment of user code: the functions of the language, except those that reach outside the
-- sandbox, and with undeclared variables caught. Each module has its own, so an accident stays in its file.

local core = ...

local error, type, setmetatable, pairs, select = error, type, setmetatable, pairs, select
local load, tostring, ipairs, gsub = load, tostring, ipairs, string.gsub
local os = core.libraries.os

-- Maximum length of a string that string.rep makes, in bytes.
local REP_LEN_MAX = 64 * 2 ^ 20

-- Maximum length of the source that load takes, in bytes, and maximum number of jumps and labels in
-- it: for each of them LuaJIT goes through all earlier ones.
local LOAD_LEN_MAX, LOAD_JUMPS_MAX = 2 ^ 20, 5000

-- Jumps and their targets.
local JUMPS = {
  "::", "%f[%w_]goto%f[^%w_]", "%f[%w_]and%f[^%w_]", "%f[%w_]or%f[^%w_]", "%f[%w_]elseif%f[^%w_]",
}

local function count_jumps(source)
  local count = 0
  for i = 1, #JUMPS do
    local _, found = gsub(source, JUMPS[i], "")
    count = count + found
  end
  return count
end

-- Without a seed of its own, every VM would have the same numbers after every start.
local randomseed = math.randomseed
randomseed(core.rust.seed)
core.reseed = randomseed

local safe_string = {
  byte = string.byte, char = string.char, find = core.patterns.find,
  format = core.bounded.format,
  gmatch = core.patterns.gmatch, gsub = core.patterns.gsub, len = string.len,
  lower = string.lower, match = core.patterns.match, reverse = string.reverse, sub = string.sub,
  upper = string.upper,
}

local rep = string.rep
function safe_string.rep(text, times, separator)
  if type(text) == "number" then text = tostring(text) end
  if type(separator) == "number" then separator = tostring(separator) end
  local len = #text + (separator and #separator or 0)
  if len * times > REP_LEN_MAX then
    error("string.rep would make " .. len * times .. " bytes; at most "
      .. REP_LEN_MAX .. " are allowed", 2)
  end
  return rep(text, times, separator)
end

local safe_os = { time = os.time, date = os.date, clock = os.clock, difftime = os.difftime }

local function copy(library)
  local copied = {}
  for name, entry in pairs(library) do copied[name] = entry end
  return copied
end

local LIBRARIES = {
  string = safe_string, table = copy(table), math = copy(math), bit = copy(bit),
  coroutine = copy(coroutine), os = safe_os,
}
for name, bounded in pairs(core.bounded.table) do LIBRARIES.table[name] = bounded end
for name, bounded in pairs(core.bounded.coroutine) do LIBRARIES.coroutine[name] = bounded end

-- A seed lasts until the call ends: all calls share the VM's random numbers.
local seeded, context = core.native.seeded, core.native.context
function LIBRARIES.math.randomseed(seed)
  randomseed(seed)
  seeded(context)
end

local FUNCTIONS = {
  assert = assert, error = error, getmetatable = getmetatable, ipairs = ipairs, next = next,
  pairs = pairs, pcall = pcall, rawequal = rawequal, rawget = rawget, rawset = rawset,
  select = select, setmetatable = setmetatable, tonumber = tonumber,
  tostring = core.bounded.tostring, type = type, unpack = unpack, xpcall = xpcall, _VERSION = _VERSION,
}

-- Tells how much memory the VM uses. It does nothing else, since a procedure cannot control the
-- collector: it shares the VM with others.
local collectgarbage = collectgarbage
function FUNCTIONS.collectgarbage(what)
  if what == "count" then return collectgarbage "count" end
  error([[only collectgarbage("count") is allowed]], 2)
end

-- A handle that one procedure has broken would be broken for all others in the VM.
local getmetatable, rawset, OURS = getmetatable, rawset, core.OURS
function FUNCTIONS.rawset(table, field, value)
  if getmetatable(table) == OURS then
    error("rawset is not for what tokaido has made; write with db:put(key, value)", 2)
  end
  return rawset(table, field, value)
end

-- `load` for source text only; what it compiles runs in `environment` unless told otherwise.
local function make_load(environment)
  return function(chunk, name, _, chunk_environment)
    if type(chunk) == "function" then
      local pieces, len = {}, 0
      for piece in chunk do
        if piece == "" then break end
        pieces[#pieces + 1], len = piece, len + #piece
        if len > LOAD_LEN_MAX then break end
      end
      chunk = table.concat(pieces)
    end
    if type(chunk) ~= "string" then error("load takes source text", 2) end
    if #chunk > LOAD_LEN_MAX then
      return nil, "load takes at most " .. LOAD_LEN_MAX .. " bytes of source"
    end
    if count_jumps(chunk) > LOAD_JUMPS_MAX then
      return nil, "load takes at most " .. LOAD_JUMPS_MAX .. " of goto, labels, and, or, elseif"
    end
    return load(chunk, name or "=(load)", "t", chunk_environment or environment)
  end
end

local function read_undeclared(_, name)
  error("undeclared variable '" .. tostring(name) .. "'", 2)
end

local function write_undeclared(_, name)
  error("assignment to undeclared variable '" .. tostring(name)
    .. "'; declare it with 'local'", 2)
end

-- A script has its VM to itself, and may collect garbage that it does not want to measure.
local SCRIPT_MAY_COLLECT = { collect = true, count = true, step = true, stop = true, restart = true }
local function collect(what, size)
  what = what or "collect"
  if not SCRIPT_MAY_COLLECT[what] then
    error("collectgarbage takes collect, count, step, stop or restart", 2)
  end
  return collectgarbage(what, size)
end

-- Ends the script with a status, of which the system sees the lowest eight bits.
core.EXIT = { message = "the script has ended itself" }
function core.exit(status)
  if status == nil or status == true then status = 0 end
  if status == false then status = 1 end
  if type(status) ~= "number" then error("a status of exit is a number", 2) end
  core.exit_status = status % 256 - status % 1
  error(core.EXIT, 0)
end

-- For dialects of other servers, whose scripts ask for a collection before they measure: pretends to have made one.
local function collect_nothing(what)
  if what == "count" then return collectgarbage "count" end
  return 0
end

local sandbox = {
  functions = FUNCTIONS, libraries = LIBRARIES, copy = copy, make_load = make_load, collect_nothing = collect_nothing,
}

-- Makes a new environment. `guarded` ones refuse new globals.
function sandbox.environment(guarded)
  local environment = copy(FUNCTIONS)
  for name, library in pairs(LIBRARIES) do environment[name] = copy(library) end
  environment._G = environment
  environment.load = make_load(environment)
  environment.loadstring = function(chunk, name) return environment.load(chunk, name) end
  environment.require = core.require
  environment.print = core.print
  return setmetatable(environment, {
    __index = read_undeclared,
    __newindex = guarded and write_undeclared or nil,
    __metatable = false,
  })
end

-- What scripts of `tokaido run` and the shell have beyond that.
function sandbox.of_script(environment)
  rawset(environment, "collectgarbage", collect)
  environment.os.exit = core.exit
  return environment
end

-- The methods of strings are in a table that user code can neither reach nor change.
local string_meta = getmetatable ""
string_meta.__index = copy(safe_string)
string_meta.__metatable = false

-- Anything that slips past the prelude would find what is left in the real globals.
for _, name in ipairs {
  "collectgarbage", "dofile", "gcinfo", "getfenv", "load", "loadfile", "loadstring", "module",
  "newproxy", "package", "print", "require", "setfenv", "debug", "ffi", "io", "jit", "os",
} do
  _G[name] = nil
end
string.dump = nil

core.sandbox = sandbox
