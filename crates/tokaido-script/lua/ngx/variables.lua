-- `ngx.var`: the nginx variables that have a meaning here, the route's parameters, and the variables that handlers set.

local core = ...

local ngx, native = core.ngx, core.native
local context, reply, fail, ffi_string = native.context, native.reply, native.fail, native.string
local request_end, request_line, now = native.request_end, native.request_line, native.now
local request_pairs, request_pair, response_len = native.request_pairs, native.request_pair, native.response_len
local type, error, tostring, setmetatable = type, error, tostring, setmetatable
local sub, lower, gsub, find, format = string.sub, string.lower, string.gsub, string.find, string.format
local byte = string.byte
local date = core.libraries.os.date

local function text() return ffi_string(reply.data, reply.data_len) end

local function end_of(which)
  return function()
    if request_end(context, which) == 1 then return text() end
    return which == 0 and "unix:" or ""
  end
end

local function now_ms()
  if now(context) ~= 1 then fail(4) end
  return reply.number
end

local function took()
  if request_line(context) ~= 1 then fail(4) end
  local began = reply.flags
  return format("%.3f", (now_ms() - began) / 1000)
end

local function host(request)
  local named = core.request_header(request, "host")
  if not named then return "" end
  return lower((gsub(named, ":%d+$", "")))
end

local function args(request)
  local query = core.query(request)
  if query == "" then return nil end
  return query
end

local function protocol()
  return "HTTP/" .. format("%.1f", ngx.req.http_version())
end

local function sent()
  if response_len(context) ~= 1 then fail(4) end
  return tostring(reply.number)
end

local function status(request)
  return format("%03d", request.status)
end

local function header(name)
  return function(request) return core.request_header(request, name) end
end

-- The reader of each variable; settable ones say how they are set.
local READERS = {
  request_method = core.method, uri = core.path, document_uri = core.path,
  args = args, query_string = args, request_uri = core.raw_target,
  is_args = function(request) return args(request) and "?" or "" end,
  request = function()
    return core.raw_method() .. " " .. core.raw_target() .. " " .. protocol()
  end,
  request_body = function(request)
    local body = request.is_body_read and core.body(request)
    return body and body ~= "" and body or nil
  end,
  remote_addr = end_of(0), remote_port = end_of(1), server_addr = end_of(2), server_port = end_of(3),
  host = host, server_name = host, scheme = function() return "http" end, https = function() return "" end,
  server_protocol = protocol,
  content_length = header "content-length", content_type = header "content-type",
  status = status, body_bytes_sent = sent, request_time = took,
  time_local = function() return date("!%d/%b/%Y:%H:%M:%S +0000", now_ms() / 1000) end,
  time_iso8601 = function() return date("!%Y-%m-%dT%H:%M:%S+00:00", now_ms() / 1000) end,
  msec = function() return format("%.3f", now_ms() / 1000) end,
  pid = function() return tostring(core.rust.pid) end,
  hostname = function() return core.rust.hostname end,
  remote_user = function() return nil end,
}
core.variables = READERS

local WRITERS = {
  args = function(request, value) request.query = value or "" end,
}

local SPACE = 32

local function spaces_end(text, first, last)
  while first <= last and byte(text, first) == SPACE do first = first + 1 end
  return first
end

-- A part of a text without surrounding spaces. No pattern does this: a pattern that looks for the spaces at the end
-- starts over at each of them, within C, where no limit reaches it.
local function trimmed(text, first, last)
  first = spaces_end(text, first, last)
  while last >= first and byte(text, last) == SPACE do last = last - 1 end
  return sub(text, first, last)
end

local function cookie(request, name)
  local cookies = core.request_header(request, "cookie")
  if not cookies then return nil end
  local from, len = 1, #cookies
  while from <= len do
    local to = find(cookies, ";", from, true) or len + 1
    local pair = sub(cookies, from, to - 1)
    local equals = find(pair, "=", 1, true)
    if equals and lower(trimmed(pair, 1, equals - 1)) == name then
      return sub(pair, spaces_end(pair, equals + 1, #pair))
    end
    from = to + 1
  end
  return nil
end

local function argument(request, name)
  local query = core.query(request)
  local from, len = 1, #query
  while from <= len do
    local to = find(query, "&", from, true) or len + 1
    local pair = sub(query, from, to - 1)
    local equals = find(pair, "=", 1, true)
    if equals and lower(sub(pair, 1, equals - 1)) == name then return sub(pair, equals + 1) end
    from = to + 1
  end
  return nil
end

local PREFIXES = {
  { "http_", function(request, name) return core.request_header(request, (gsub(name, "_", "-"))) end },
  { "arg_", argument },
  { "cookie_", cookie },
  { "sent_http_", function(_, name)
    local value = ngx.header[name]
    return type(value) == "table" and value[1] or value
  end },
}

local function parameter(name)
  if request_pairs(context, 0) ~= 1 then fail(5) end
  for i = 0, reply.number - 1 do
    request_pair(context, i)
    if lower(ffi_string(reply.key, reply.key_len)) == name then return text() end
  end
  return nil
end

local function read(request, name)
  local set = request.variables and request.variables[name]
  if set ~= nil then return set end
  local reader = READERS[name]
  if reader then return reader(request) end
  for i = 1, #PREFIXES do
    local prefix = PREFIXES[i]
    if sub(name, 1, #prefix[1]) == prefix[1] then return prefix[2](request, sub(name, #prefix[1] + 1)) end
  end
  if request.parameters then return request.parameters[name] end
  return parameter(name)
end

local function is_built_in(name)
  if READERS[name] then return true end
  for i = 1, #PREFIXES do
    if sub(name, 1, #PREFIXES[i][1]) == PREFIXES[i][1] then return true end
  end
  return false
end

ngx.var = setmetatable({}, {
  __index = function(_, name)
    local request = core.request
    if not request then error("API disabled in the current context", 2) end
    if type(name) ~= "string" then
      if type(name) == "number" then return nil end
      error("bad variable name", 2)
    end
    return read(request, lower(name))
  end,
  __newindex = function(_, name, value)
    local request = core.request
    if not request then error("API disabled in the current context", 2) end
    if type(name) ~= "string" then error("bad variable name", 2) end
    name = lower(name)
    local kind = type(value)
    if kind ~= "string" and kind ~= "number" and kind ~= "nil" then
      error("bad argument #3 to '__newindex' (string, number, or nil expected, got " .. kind .. ")", 2)
    end
    value = value ~= nil and tostring(value) or nil
    if WRITERS[name] then
      WRITERS[name](request, value)
    elseif is_built_in(name) then
      error('variable "' .. name .. '" not changeable', 2)
    else
      request.variables = request.variables or {}
      request.variables[name] = value
    end
  end,
})
