-- The table `ngx`: its constants, and fields that are computed on access. The other files add their functions
-- to it, and to `core.fields` those fields that are not functions: `get` and `set`, by name.

local core = ...

local ngx = core.ngx
local type, error, tostring, rawset, setmetatable = type, error, tostring, rawset, setmetatable
local pairs = pairs

local CONSTANTS = {
  OK = 0, ERROR = -1, AGAIN = -2, DONE = -4, DECLINED = -5,
  HTTP_GET = 2, HTTP_HEAD = 4, HTTP_POST = 8, HTTP_PUT = 16, HTTP_DELETE = 32, HTTP_MKCOL = 64,
  HTTP_COPY = 128, HTTP_MOVE = 256, HTTP_OPTIONS = 512, HTTP_PROPFIND = 1024,
  HTTP_PROPPATCH = 2048, HTTP_LOCK = 4096, HTTP_UNLOCK = 8192, HTTP_PATCH = 16384,
  HTTP_TRACE = 32768,
  HTTP_CONTINUE = 100, HTTP_SWITCHING_PROTOCOLS = 101, HTTP_OK = 200, HTTP_CREATED = 201,
  HTTP_ACCEPTED = 202, HTTP_NO_CONTENT = 204, HTTP_PARTIAL_CONTENT = 206,
  HTTP_SPECIAL_RESPONSE = 300, HTTP_MOVED_PERMANENTLY = 301, HTTP_MOVED_TEMPORARILY = 302,
  HTTP_SEE_OTHER = 303, HTTP_NOT_MODIFIED = 304, HTTP_TEMPORARY_REDIRECT = 307,
  HTTP_PERMANENT_REDIRECT = 308, HTTP_BAD_REQUEST = 400, HTTP_UNAUTHORIZED = 401,
  HTTP_PAYMENT_REQUIRED = 402, HTTP_FORBIDDEN = 403, HTTP_NOT_FOUND = 404, HTTP_NOT_ALLOWED = 405,
  HTTP_NOT_ACCEPTABLE = 406, HTTP_REQUEST_TIMEOUT = 408, HTTP_CONFLICT = 409, HTTP_GONE = 410,
  HTTP_UPGRADE_REQUIRED = 426, HTTP_TOO_MANY_REQUESTS = 429, HTTP_CLOSE = 444,
  HTTP_ILLEGAL = 451, HTTP_INTERNAL_SERVER_ERROR = 500, HTTP_METHOD_NOT_IMPLEMENTED = 501,
  HTTP_NOT_IMPLEMENTED = 501, HTTP_BAD_GATEWAY = 502, HTTP_SERVICE_UNAVAILABLE = 503,
  HTTP_GATEWAY_TIMEOUT = 504, HTTP_VERSION_NOT_SUPPORTED = 505, HTTP_INSUFFICIENT_STORAGE = 507,
  STDERR = 0, EMERG = 1, ALERT = 2, CRIT = 3, ERR = 4, WARN = 5, NOTICE = 6, INFO = 7, DEBUG = 8,
  null = core.null,
}
for name, value in pairs(CONSTANTS) do ngx[name] = value end

-- Fields that are not constants: by name, {get =, set =}.
core.fields = {}
local fields = core.fields

core.libraries.debug.setmetatable(ngx, {
  __index = function(_, name)
    local field = fields[name]
    return field and field.get()
  end,
  __newindex = function(self, name, value)
    local field = fields[name]
    if not field then
      rawset(self, name, value)
    elseif field.set then
      field.set(value)
    else
      error("ngx." .. tostring(name) .. " cannot be set", 2)
    end
  end,
})

-- A function that is not offered, under its full name. The error is that of its caller, or of the caller's caller.
function core.refused(name, why, level)
  return function()
    error(name .. " is not offered: " .. why .. "; see " .. core.PAGE, level or 2)
  end
end

-- Objects with a state that no script can reach: it is in a metatable of the object's own, beside its class.
local CLASS, STATE = {}, {}
local getmetatable = core.libraries.debug.getmetatable

function core.new_object(class, state)
  return setmetatable({}, { __index = class, __metatable = core.OURS, [CLASS] = class, [STATE] = state })
end

-- Nil for anything that is not an object of the class.
function core.state_of(object, class)
  local meta = getmetatable(object)
  return meta and meta[CLASS] == class and meta[STATE] or nil
end

-- A text, or the text of another value. `tostring` need not give a text: `__tostring` may give anything.
function core.text_of(value)
  if type(value) == "string" then return value end
  local text = tostring(value)
  if type(text) ~= "string" then
    error("__tostring gives a string, this is " .. core.text.described(text), 3)
  end
  return text
end

-- A string, or Lua's text for another kind of value; tables are joined, as ngx.say and ngx.log take them.
local concat = table.concat
local function shown(value)
  local kind = type(value)
  if kind == "string" then return value end
  if kind == "number" or kind == "boolean" or kind == "nil" then return tostring(value) end
  if value == core.null then return "null" end
  return nil
end
core.shown = shown

-- nginx's levels in the server's log: error, warn, info, debug.
local SERVER_LEVELS = { [0] = 0, 0, 0, 0, 0, 1, 2, 2, 3 }
local select = select
local native_log, context = core.native.log, core.native.context

local function log_line(level, first, ...)
  local parts = {}
  for i = first, select("#", ...) do
    local value = select(i, ...)
    local text = shown(value)
    if not text then
      if type(value) ~= "table" then
        error("bad argument #" .. i .. " to 'log' (string, number, boolean, or nil expected, got "
          .. type(value) .. ")", 3)
      end
      text = tostring(value)
    end
    parts[#parts + 1] = text
  end
  local line = concat(parts)
  native_log(context, SERVER_LEVELS[level], line, #line)
end

function ngx.log(level, ...)
  if type(level) ~= "number" or not SERVER_LEVELS[level] then
    error("bad argument #1 to 'log' (bad log level: " .. tostring(level) .. ")", 2)
  end
  log_line(level, 1, ...)
end

local NOTICE = CONSTANTS.NOTICE
function core.print(...) log_line(NOTICE, 1, ...) end
