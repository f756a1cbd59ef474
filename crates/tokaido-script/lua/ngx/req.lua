-- `ngx.req`: the request, and what a handler changes in it for what follows.

local core = ...

local ngx, native = core.ngx, core.native
local context, reply, fail, ffi_string = native.context, native.reply, native.fail, native.string
local request_field, request_pairs = native.request_field, native.request_pairs
local request_header, request_line = native.request_header, native.request_line
local request_pair = native.request_pair
local type, error, tostring, setmetatable = type, error, tostring, setmetatable
local lower, gsub, find, concat = string.lower, string.gsub, string.find, table.concat
local tonumber, pairs = tonumber, pairs

local METHOD, PATH, QUERY, BODY, HEADERS = 0, 1, 2, 3, 2

-- Maximum number of headers or arguments unless told otherwise.
local ENTRIES_MAX = 100

local req = {}
ngx.req = req

local function current()
  local request = core.request
  if not request then core.disabled(3) end
  return request
end

local function field(which)
  if request_field(context, which) ~= 1 then fail(4) end
  return ffi_string(reply.data, reply.data_len)
end

-- A request within a request takes from the outer one what it does not have itself.
function core.method(request) return request.method or field(METHOD) end
function core.path(request) return request.path or core.unescape_path(field(PATH)) end
function core.query(request) return request.query or field(QUERY) end

function core.unescape_path(path)
  if not find(path, "%", 1, true) then return path end
  return (gsub(path, "%%(%x%x)", function(digits) return string.char(tonumber(digits, 16)) end))
end

function core.raw_method() return field(METHOD) end

function core.raw_target()
  local path, query = field(PATH), field(QUERY)
  if query == "" then return path end
  return path .. "?" .. query
end

function core.body(request) return request.body or field(BODY) end

local NAMES = {}
for name, value in pairs(ngx) do
  local method = string.match(name, "^HTTP_(%u+)$")
  if method and type(value) == "number" and (value < 100 or value == 128 or value == 256 or value >= 512) then
    NAMES[value] = method
  end
end

function req.get_method() return core.method(current()) end

function req.set_method(method)
  local name = NAMES[method]
  if not name then error("unsupported HTTP method: " .. tostring(method), 2) end
  current().method = name
end

function req.is_internal()
  local request = current()
  return request.outer ~= nil or request.is_internal == true
end

function req.http_version()
  current()
  if request_line(context) ~= 1 then fail() end
  return reply.number == 1 and 1.1 or 1.0
end

function req.start_time()
  current()
  if request_line(context) ~= 1 then fail() end
  return reply.flags / 1000
end

function req.get_uri_args(max)
  return core.parse_args(core.query(current()), max or ENTRIES_MAX)
end

function req.set_uri_args(args)
  local request = current()
  if type(args) == "table" then
    args = core.join_args(args)
  elseif type(args) == "number" then
    args = tostring(args)
  elseif type(args) ~= "string" then
    error("bad argument #1 to 'set_uri_args' (string, number, or table expected, but got " .. type(args) .. ")", 2)
  end
  request.query = args
end

function req.set_uri(uri, jump)
  local request = current()
  if type(uri) ~= "string" or uri == "" then error("attempt to use zero-length uri", 2) end
  if jump and request.phase ~= "rewrite" then
    error("API disabled in the context of " .. request.phase .. "_by_lua*", 2)
  end
  if jump then core.leave({ path = uri }) end
  request.path = uri
end

-- Headers that a handler has changed are the request's own list: {name, value}, names in lower case.
local function own_headers(request)
  if request.headers then return request.headers end
  local headers = {}
  if request_pairs(context, HEADERS) ~= 1 then fail(4) end
  for i = 0, reply.number - 1 do
    request_pair(context, i)
    headers[i + 1] = { ffi_string(reply.key, reply.key_len), ffi_string(reply.data, reply.data_len) }
  end
  request.headers = headers
  return headers
end
core.own_headers = own_headers

function req.get_headers(max, is_raw)
  local request = current()
  max = max or ENTRIES_MAX
  local found, truncated
  if request.headers then
    found = {}
    for i = 1, #request.headers do
      if max > 0 and i > max then
        truncated = "truncated"
        break
      end
      core.add_value(found, request.headers[i][1], request.headers[i][2])
    end
  else
    if request_pairs(context, HEADERS) ~= 1 then fail() end
    found, truncated = core.collect_pairs(max)
  end
  if is_raw then return found, truncated end
  return setmetatable(found, core.headers_meta), truncated
end

-- The first header of a lower-case name; nil without one.
function core.request_header(request, name)
  if request.headers then
    for i = 1, #request.headers do
      if request.headers[i][1] == name then return request.headers[i][2] end
    end
    return nil
  end
  if request_header(context, name, #name) ~= 1 then return nil end
  return ffi_string(reply.data, reply.data_len)
end

local function remove(headers, name)
  local kept = 0
  for i = 1, #headers do
    local header = headers[i]
    headers[i] = nil
    if header[1] ~= name then
      kept = kept + 1
      headers[kept] = header
    end
  end
end

local function check_text(text, what)
  if find(text, "[%z\r\n]") then
    error("the " .. what .. " of a header has a line break or a zero", 3)
  end
end

local function header_name(name)
  if type(name) ~= "string" then error("a header's name is a string", 3) end
  check_text(name, "name")
  return lower(name)
end

function req.set_header(name, value)
  local request = current()
  name = header_name(name)
  local headers = own_headers(request)
  remove(headers, name)
  if value == nil then return end
  if type(value) ~= "table" then value = { value } end
  for i = 1, #value do
    local text = core.text_of(value[i])
    check_text(text, "value")
    headers[#headers + 1] = { name, text }
  end
end

-- Makes the headers give the length of a body that replaces another one; without one, they give none.
function core.set_length(headers, body)
  remove(headers, "content-length")
  if body then headers[#headers + 1] = { "content-length", tostring(#body) } end
end

local function set_body(request, body)
  request.body = body
  core.set_length(own_headers(request), body)
end

function req.clear_header(name)
  remove(own_headers(current()), header_name(name))
end

function req.raw_header(no_request_line)
  local request = current()
  local headers, lines = own_headers(request), {}
  if not no_request_line then
    lines[1] = field(METHOD) .. " " .. core.raw_target() .. " HTTP/" .. string.format("%.1f", req.http_version())
  end
  for i = 1, #headers do lines[#lines + 1] = headers[i][1] .. ": " .. headers[i][2] end
  return concat(lines, "\r\n") .. "\r\n\r\n"
end

function req.read_body() current().is_body_read = true end
function req.discard_body()
  local request = current()
  request.body, request.is_body_read = "", true
end

function req.get_body_data()
  local request = current()
  if not request.is_body_read then return nil end
  local body = core.body(request)
  if body == "" then return nil end
  return body
end

-- Bodies are in memory, not in a file.
function req.get_body_file()
  current()
  return nil
end

function req.set_body_data(body)
  local request = current()
  if type(body) ~= "string" and type(body) ~= "number" then
    error("bad argument #1 to 'set_body_data' (string expected, got " .. type(body) .. ")", 2)
  end
  if not request.is_body_read then error("request body not read yet", 2) end
  set_body(request, tostring(body))
end

function req.init_body()
  local request = current()
  if not request.is_body_read then error("request body not read yet", 2) end
  request.pieces = {}
end

function req.append_body(piece)
  local pieces = current().pieces
  if not pieces then error("request_body not initalized", 2) end
  pieces[#pieces + 1] = tostring(piece)
end

function req.finish_body()
  local request = current()
  if not request.pieces then error("request_body not initalized", 2) end
  set_body(request, concat(request.pieces))
  request.pieces = nil
end

function req.get_post_args(max)
  local request = current()
  if not request.is_body_read then
    error("no request body found; maybe you should turn on lua_need_request_body?", 2)
  end
  local body = core.body(request)
  if body == "" then return {} end
  return core.parse_args(body, max or ENTRIES_MAX)
end

req.set_body_file = core.refused("ngx.req.set_body_file", "a handler does not reach files")
req.socket = core.refused("ngx.req.socket", "the body has come whole when a handler begins")
