-- The module `tokaido`, as procedure files require it.

local core = ...

local native, text = core.native, core.text
local context, native_log = native.context, native.log
local select, tostring, type, error, setmetatable = select, tostring, type, error, setmetatable
local getinfo = core.libraries.debug.getinfo

local LEVELS = { error = 0, warn = 1, info = 2, debug = 3 }

local function joined(separator, first, ...)
  local parts = {}
  for i = first, select("#", ...) do parts[#parts + 1] = tostring((select(i, ...))) end
  return table.concat(parts, separator)
end

-- A read-only table: every procedure file gets the same one.
local function frozen(entries, name)
  return setmetatable({}, {
    __index = function(_, field)
      local entry = entries[field]
      if entry == nil then error(name .. " has no field '" .. tostring(field) .. "'", 2) end
      return entry
    end,
    __newindex = function() error(name .. " cannot be changed", 2) end,
    __metatable = false,
  })
end

local tokaido = {
  read = core.procedure.read,
  write = core.procedure.write,
  http = core.procedure.http,
}

-- Writes a line to the server's log. The first of several arguments may be a level.
function tokaido.log(...)
  local level, first = LEVELS.info, 1
  if select("#", ...) > 1 and LEVELS[(...)] then level, first = LEVELS[(...)], 2 end
  local line = joined(" ", first, ...)
  native_log(context, level, line, #line)
end

local random_bytes, uuid = native.random_bytes, native.uuid

-- That many random bytes from the system, which nobody can guess.
function tokaido.random_bytes(len)
  text.number(len, "the number of bytes")
  if random_bytes(context, len) ~= 1 then native.fail(3) end
  return native.string(native.reply.data, native.reply.data_len)
end

-- A random UUID (version 4), such as "0f8fad5b-d9cb-469f-a165-70867728950e".
function tokaido.uuid()
  if uuid(context) ~= 1 then native.fail(3) end
  return native.string(native.reply.data, native.reply.data_len)
end

-- A 64-bit integer from a string or number, exactly; nil if it is not one.
function tokaido.integer(value)
  if type(value) == "string" then
    local sign, digits = value:match "^(-?)(%d+)$"
    if not digits or #digits > 19 then return nil end
    local result = 0ULL
    for i = 1, #digits do result = result * 10ULL + (digits:byte(i) - 48) end
    if result > (sign == "-" and 0x8000000000000000ULL or 0x7fffffffffffffffULL) then return nil end
    local signed = text.int64(result)
    return text.narrow(sign == "-" and -signed or signed)
  end
  if type(value) == "number" then
    if value == math.floor(value) and value >= -2 ^ 53 and value <= 2 ^ 53 then return value end
    return nil
  end
  if text.istype(text.int64, value) then return text.narrow(value) end
  return nil
end

-- The text that is stored for a key or value: integers have no exponent or suffix.
function tokaido.text(value)
  local bytes = text.bytes_of(value, 2)
  if bytes then return bytes end
  return tostring(value)
end

local json_api = {
  encode = core.json.encode, decode = core.json.decode, try_decode = core.json.try_decode,
  object = core.json.object, null = core.json.null,
}

-- Behind `print`: calls `core.write_out` while a script runs, otherwise writes a line to the log.
function core.print(...)
  local line = joined("\t", 1, ...)
  if core.write_out then
    core.write_out(line)
  else
    native_log(context, LEVELS.info, line, #line)
  end
end

function core.line_of(run)
  return getinfo(run, "S").linedefined
end

tokaido.json = frozen(json_api, "tokaido.json")
core.tokaido_entries, core.json_entries = tokaido, json_api
core.frozen = frozen

local builtin = core.loader.builtin
builtin.tokaido = frozen(tokaido, "tokaido")
builtin["tokaido.json"] = tokaido.json
builtin.bit = core.sandbox.copy(core.sandbox.libraries.bit)
