-- `redis`: commands of the server in the script's transaction, and the other functions of Redis's scripts.

local core = ...

local native, rust = core.native, core.rust
local context, reply, ffi_string = native.context, native.reply, native.string
local many_begin, many_add = native.many_begin, native.many_add
local command_run, command_of = native.command_run, native.command_of
local set_resp, may_run, sha1_hex = native.set_resp, native.may_run, native.sha1_hex
local native_log = native.log
local fetch_reply, context_address = rust.fetch_reply, rust.context
local select, error, type, tostring = select, error, type, tostring
local floor, concat, tonumber = math.floor, table.concat, tonumber
local format, match, byte, sub = string.format, string.match, string.byte, string.sub

-- The kinds of reply; src/bridge/command.rs has the same.
local STRING, WIDE, NUMBER, FETCH, FALSE, STATUS = 1, 2, 4, 5, 6, 7

-- Maximum number of arguments, with the command's name, that one call takes; src/bridge/command.rs has the same.
local FEW = 6

local NO_ARGUMENT = "ERR Please specify at least one argument for this redis lib call"
local WRONG_ARGUMENT = "ERR Lua redis lib command arguments must be strings or integers"

-- A number as Redis passes it to a command.
local function number_bytes(number)
  if number == floor(number) and number > -2 ^ 63 and number < 2 ^ 63 then
    return format("%d", number)
  end
  return format("%.17g", number)
end

-- The bytes of an argument; nil if it is invalid.
local function bytes_of(argument)
  local kind = type(argument)
  if kind == "string" then return argument end
  if kind == "number" then return number_bytes(argument) end
  return nil
end

-- Adds an argument; gives the message if that fails.
local function add(argument)
  local bytes = bytes_of(argument)
  if not bytes then return WRONG_ARGUMENT end
  if many_add(context, bytes, #bytes) ~= 1 then
    return "ERR " .. ffi_string(reply.data, reply.data_len)
  end
  return nil
end

-- Gathers the arguments of a command; gives the message if that fails.
local function gather(...)
  local count = select("#", ...)
  if count == 0 then return NO_ARGUMENT end
  many_begin(context)
  local failed
  for place = 1, count do failed = failed or add((select(place, ...))) end
  return failed
end

-- The reply, or nil and the message of the error.
local function received(kind)
  if kind == STRING then return ffi_string(reply.data, reply.data_len) end
  if kind == NUMBER or kind == WIDE then return reply.number end
  if kind == STATUS then return { ok = ffi_string(reply.data, reply.data_len) } end
  if kind == FETCH then return fetch_reply(context_address) end
  if kind == FALSE then return false end
  if kind < 0 then return nil, ffi_string(reply.data, reply.data_len) end
  return nil
end

-- Runs a command of `count` arguments, at most FEW; gives the reply, or nil and the error message.
--
-- A short script that is called often is not compiled, since a trace that ends where C called it is no loop; and in
-- the interpreter an FFI call costs more than most commands. A function without `...` is compiled by itself once it
-- was called often, from wherever, so all FFI calls are in this one.
local function run_few(count, first, second, third, fourth, fifth, sixth)
  first = bytes_of(first)
  second = count < 2 and "" or bytes_of(second)
  third = count < 3 and "" or bytes_of(third)
  fourth = count < 4 and "" or bytes_of(fourth)
  fifth = count < 5 and "" or bytes_of(fifth)
  sixth = count < 6 and "" or bytes_of(sixth)
  if not (first and second and third and fourth and fifth and sixth) then
    return nil, WRONG_ARGUMENT
  end
  return received(command_of(context, count, first, #first, second, #second, third, #third,
    fourth, #fourth, fifth, #fifth, sixth, #sixth))
end

-- As `run_few`, for a command with any number of arguments.
local function run_many(...)
  local failed = gather(...)
  if failed then return nil, failed end
  return received(command_run(context))
end

-- `redis.call` or `redis.pcall`, depending on how errors are handled.
local function caller(on_error)
  return function(...)
    local count = select("#", ...)
    local value, message
    if count > 0 and count <= FEW then
      value, message = run_few(count, ...)
    else
      value, message = run_many(...)
    end
    if message then return on_error(message) end
    return value
  end
end

local redis = {
  call = caller(function(message) error({ err = message }, 0) end),
  pcall = caller(function(message) return { err = message } end),
}

local function refuse(message) error({ err = "ERR " .. message }, 0) end

local WRONG_FIELD = "ERR wrong number or type of arguments"

-- A text without trailing line ends.
local function trimmed(text)
  local last = #text
  while last > 0 and (byte(text, last) == 10 or byte(text, last) == 13) do last = last - 1 end
  return sub(text, 1, last)
end

function redis.error_reply(...)
  local message = ...
  if select("#", ...) ~= 1 or type(message) ~= "string" then return { err = WRONG_FIELD } end
  local code, rest = match(message, "^%-?([^ ]*) (.*)$")
  if not code then code, rest = "ERR", match(message, "^%-?(.*)$") end
  return { err = code .. " " .. trimmed(rest) }
end

function redis.status_reply(...)
  local message = ...
  if select("#", ...) ~= 1 or type(message) ~= "string" then return { err = WRONG_FIELD } end
  return { ok = message }
end

function redis.sha1hex(...)
  if select("#", ...) ~= 1 then refuse "wrong number of arguments" end
  local text = ...
  if type(text) == "number" then text = tostring(text) end
  if type(text) ~= "string" then text = "" end
  sha1_hex(context, text, #text)
  return ffi_string(reply.data, reply.data_len)
end

redis.LOG_DEBUG, redis.LOG_VERBOSE, redis.LOG_NOTICE, redis.LOG_WARNING = 0, 1, 2, 3

-- The levels of the server's log, by Redis's levels: debug, debug, info, warn.
local LEVELS = { [0] = 3, 3, 2, 1 }

function redis.log(...)
  local count = select("#", ...)
  if count < 2 then refuse "redis.log() requires two arguments or more." end
  local level = ...
  if type(level) ~= "number" then refuse "First argument must be a number (log level)." end
  if not LEVELS[floor(level)] then refuse "Invalid debug level." end
  local parts = {}
  for place = 2, count do
    local part = select(place, ...)
    if type(part) == "string" or type(part) == "number" then parts[#parts + 1] = part end
  end
  local line = concat(parts, " ")
  native_log(context, LEVELS[floor(level)], line, #line)
end

function redis.setresp(...)
  if select("#", ...) ~= 1 then refuse "redis.setresp() requires one argument." end
  local version = ...
  if version ~= 2 and version ~= 3 then refuse "RESP version must be 2 or 3." end
  if set_resp(context, version) ~= 1 then refuse(ffi_string(reply.data, reply.data_len)) end
end

redis.REPL_NONE, redis.REPL_AOF, redis.REPL_ALL = 0, 1, 3
redis.REPL_SLAVE, redis.REPL_REPLICA = 2, 2

-- There is nothing to replicate to.
function redis.set_repl(...)
  if select("#", ...) ~= 1 then refuse "redis.set_repl() requires two arguments." end
  local flags = tonumber((...)) or 0
  if flags < 0 or flags > 3 then
    refuse "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE."
  end
end

function redis.replicate_commands() return true end

-- There is no debugger.
function redis.breakpoint() return false end
function redis.debug() end

function redis.acl_check_cmd(...)
  local failed = gather(...)
  if failed then refuse(sub(failed, 5)) end
  local code = may_run(context)
  if code == 2 then refuse "Invalid command passed to redis.acl_check_cmd()" end
  return code == 1
end

-- The version of Redis that the server claims: as text, and as a number with two digits for each part.
function core.set_version(text, number)
  redis.REDIS_VERSION, redis.REDIS_VERSION_NUM = text, number
end

core.redis_entries = redis
core.redis_globals.redis = core.read_only(redis)
