-- What an HTTP handler gets: `req` and `res`. Both are made once per VM. Fields of `req` are
-- fetched when they are first read, so those that a handler does not read cost nothing.

local core = ...

local native, json, transaction = core.native, core.json, core.transaction
local context, reply, ffi_string, fail = native.context, native.reply, native.string, native.fail
local request_field, request_pairs = native.request_field, native.request_pairs
local request_pair, response_header = native.request_pair, native.response_header
local response_header_get, response_write = native.response_header_get, native.response_write
local respond = native.respond
local type, error, rawset, setmetatable, tostring = type, error, rawset, setmetatable, tostring

local YES, NO = 1, 0
local EMPTY, TEXT, JSON = 0, 1, 2
local METHOD, PATH, QUERY_STRING, BODY = 0, 1, 2, 3
local PARAMS, QUERY, HEADERS = 0, 1, 2

local function field(which)
  return function()
    if request_field(context, which) ~= YES then fail(4) end
    return ffi_string(reply.data, reply.data_len)
  end
end

-- Names and values as a table. If a name comes twice, `join` makes the two values one.
local function pairs_of(which, join)
  return function()
    if request_pairs(context, which) ~= YES then fail(4) end
    local found = {}
    for i = 0, reply.number - 1 do
      request_pair(context, i)
      local name = ffi_string(reply.key, reply.key_len)
      local value = ffi_string(reply.data, reply.data_len)
      local before = found[name]
      found[name] = before and join(before, value) or value
    end
    return found
  end
end

local function take_last(_, value) return value end
local function join_by_comma(before, value) return before .. ", " .. value end

local FIELDS = {
  method = field(METHOD),
  path = field(PATH),
  query_string = field(QUERY_STRING),
  body = field(BODY),
  params = pairs_of(PARAMS, take_last),
  query = pairs_of(QUERY, take_last),
  headers = pairs_of(HEADERS, join_by_comma),
}

local Request, request = {}, nil

function Request:json()
  if self ~= request then
    error("call a request's method with a colon, as in req:json()", 2)
  end
  local value, message = json.try_decode(self.body)
  if message then
    error({ status = 400, message = "the body of the request is not JSON: " .. message }, 0)
  end
  return value
end

-- Whether the last request's fields are still there.
local fetched = false

request = setmetatable({}, {
  __index = function(self, name)
    local method = Request[name]
    if method then return method end
    local fetch = FIELDS[name]
    if not fetch then error("a request has no field '" .. tostring(name) .. "'", 2) end
    local value = fetch()
    fetched = true
    rawset(self, name, value)
    return value
  end,
  __newindex = function() error("a request cannot be changed", 2) end,
  __metatable = false,
})

local function forget_request()
  for name in pairs(FIELDS) do rawset(request, name, nil) end
  fetched = false
end

local Response, response = {}, nil

local NO_COLON = "call a response's methods with a colon, as in res:write(text)"

local function add_header(name, value, add)
  if type(name) ~= "string" then
    error("a header's name is a string, this is " .. core.text.described(name), 3)
  end
  if type(value) == "number" then value = tostring(value) end
  if type(value) ~= "string" then
    error("a header's value is a string, this is " .. core.text.described(value), 3)
  end
  if response_header(context, name, #name, value, #value, add) ~= YES then fail(4) end
end

-- Headers are kept on the native side: setting one is a call, and there is nothing to clean up.
Response.headers = setmetatable({}, {
  __index = function(_, name)
    if type(name) ~= "string" then return nil end
    local code = response_header_get(context, name, #name)
    if code == NO then return nil end
    if code ~= YES then fail() end
    return ffi_string(reply.data, reply.data_len)
  end,
  __newindex = function(_, name, value)
    if type(value) ~= "table" then
      add_header(name, value, 0)
      return
    end
    for i = 1, #value do add_header(name, value[i], i == 1 and 0 or 1) end
  end,
  __metatable = false,
})

function Response:write(text)
  if self ~= response then error(NO_COLON, 2) end
  if type(text) ~= "string" then text = core.text.value(text, self) end
  if response_write(context, text, #text) ~= YES then fail() end
end

function Response:json(value)
  if self ~= response then error(NO_COLON, 2) end
  local text = json.encode(value)
  if response_header_get(context, "content-type", 12) == NO then
    add_header("content-type", "application/json", 0)
  end
  if response_write(context, text, #text) ~= YES then fail() end
end

response = setmetatable({ status = 200 }, {
  __index = Response,
  __newindex = function(_, name)
    error("a response has no field '" .. tostring(name)
      .. "'; there are status and headers, and what the handler returns is the body", 2)
  end,
  __metatable = false,
})

local function send(status, kind, body)
  if type(status) ~= "number" or status ~= math.floor(status) or status < 200 or status > 599 then
    error("a status is an integer from 200 to 599, this is " .. tostring(status), 0)
  end
  if respond(context, status, kind, body, #body) ~= YES then
    error(ffi_string(reply.data, reply.data_len), 0)
  end
end

-- Runs a handler and sends what it returns: a body, or a status and a body.
local runs = core.runs
function core.dispatch(index)
  if fetched then forget_request() end
  response.status = 200
  local body, second = runs[index](transaction, request, response)
  if type(body) == "number" then
    response.status = body
    body = second
  end
  if type(body) == "string" then
    send(response.status, TEXT, body)
  elseif body == nil then
    send(response.status, EMPTY, "")
  elseif type(body) == "table" or body == json.null then
    send(response.status, JSON, json.encode(body))
  else
    error("a handler returns a string, a table, or a status and one of them; this is "
      .. core.text.described(body), 0)
  end
end

core.Request, core.Response, core.request_fields = Request, Response, FIELDS
