-- `r`, the request that a handler gets: its fields. Later files add the methods.
--
-- Each request has an empty table of its own. Its fields are looked up in what is known of the request, and
-- fetched when they are first read. So a script that keeps the table of a finished request cannot reach another one by it.

local core = ...

local apache, native = core.apache, core.native
local context, reply, ffi_string, fail = native.context, native.reply, native.string, native.fail
local request_field, request_pairs = native.request_field, native.request_pairs
local request_pair = native.request_pair
local type, error, tostring, tonumber, setmetatable = type, error, tostring, tonumber, setmetatable
local floor, match, find, lower = math.floor, string.match, string.find, string.lower
local text_of = apache.text_of

local YES = 1
local METHOD, PATH, QUERY, TARGET, PROTOCOL, PEER, PORT = 0, 1, 2, 4, 5, 6, 7
local PARAMETERS, HEADERS = 0, 2

-- Methods by name, and fields made when they are first read: each gets what is known of the request.
local methods, fields, setters = {}, {}, {}
apache.methods, apache.fields, apache.setters = methods, fields, setters

-- The reasons why names are not offered, by name.
apache.refusals = {}

-- The request being answered, and what is known of it: fields, and under `script` the file that answers.
local current, known

local function over()
  error("this request is over; use r only while its handler runs", 3)
end

local function refuse(name, level)
  error("r." .. name .. " is not offered: " .. apache.refusals[name] .. "; see " .. apache.PAGE, level + 1)
end

local function unknown(name, level)
  error("a request has no '" .. tostring(name) .. "'; " .. apache.PAGE .. " has all names", level + 1)
end

-- Checks a method call, and gives its request.
function apache.check(self, name)
  if self == current and self ~= nil then return known end
  if type(self) == "table" and apache.metatable_of(self) == apache.request_meta then over() end
  error("call " .. name .. " with a colon, as in r:" .. name .. "(…)", 3)
end

apache.request_meta = {
  __index = function(self, name)
    local method = methods[name]
    if method then return method end
    if self ~= current then over() end
    -- What is kept of a request under other names is not for scripts.
    local make = fields[name]
    if not make then
      if apache.refusals[name] then refuse(name, 2) end
      unknown(name, 2)
    end
    local value = known[name]
    if value == nil then
      value = make(known)
      known[name] = value
    end
    return value
  end,
  __newindex = function(self, name, value)
    if self ~= current then over() end
    local set = setters[name]
    if not set then error("Property [" .. tostring(name) .. "] may not be set on a request_rec", 2) end
    set(known, value, name)
  end,
  __tostring = function() return "Apache2.Request" end,
  __metatable = core.OURS,
}

-- Begins a request, which `script` answers.
function apache.begin(script)
  current = setmetatable({}, apache.request_meta)
  -- With room for the fields that most handlers set.
  local unset
  known = {
    script = script, r = current, status = unset, content_type = unset, headers_out = unset, err_headers_out = unset,
    pieces = unset,
  }
  return current, known
end

function apache.finish_request() current, known = nil, nil end

local function field(which)
  return function()
    if request_field(context, which) ~= YES then fail(4) end
    return ffi_string(reply.data, reply.data_len)
  end
end

fields.method = field(METHOD)
fields.protocol = field(PROTOCOL)
fields.useragent_ip = field(PEER)
fields.unparsed_uri = field(TARGET)

function fields.port()
  if request_field(context, PORT) ~= YES then fail(4) end
  return reply.number
end

-- A path that cannot be decoded stays as it came.
local path_of = field(PATH)
function fields.uri()
  local path = path_of()
  return apache.unescape_path(path) or path
end

-- Without a question mark there are no arguments.
local query_of = field(QUERY)
function fields.args()
  local query = query_of()
  if query == "" and not find(current.unparsed_uri, "?", 1, true) then return nil end
  return query
end

function fields.the_request(request)
  return current.method .. " " .. current.unparsed_uri .. " " .. current.protocol
end

local function each_pair(which, visit)
  if request_pairs(context, which) ~= YES then fail(4) end
  for i = 0, reply.number - 1 do
    request_pair(context, i)
    visit(ffi_string(reply.key, reply.key_len), ffi_string(reply.data, reply.data_len))
  end
end
apache.each_pair = each_pair

-- A name that comes twice has one value here, as in Apache: both values, with a comma between them.
function fields.headers_in()
  local headers, joined, order = apache.new_table(), {}, {}
  each_pair(HEADERS, function(name, value)
    if not joined[name] then order[#order + 1] = name end
    joined[name] = joined[name] and joined[name] .. ", " .. value or value
  end)
  for i = 1, #order do apache.add(headers, apache.spelled(order[i]), joined[order[i]]) end
  return headers
end

function fields.headers_out() return apache.new_table() end
fields.err_headers_out, fields.notes = fields.headers_out, fields.headers_out

-- What the route's `:name` matched is here as MATCH_NAME.
function fields.subprocess_env()
  local environment = apache.new_table()
  each_pair(PARAMETERS, function(name, value)
    apache.add(environment, "MATCH_" .. string.upper(name), value)
  end)
  return environment
end

-- What the `*name` at the end of the route matched.
function fields.path_info(request)
  local rest = match(request.script.pattern, "/%*([^/]+)$")
  if not rest then return "" end
  return "/" .. (current.subprocess_env["MATCH_" .. rest] or "")
end

function fields.hostname()
  local host = current.headers_in.Host
  if not host then return nil end
  return lower(match(host, "^(%[[^%]]*%])") or match(host, "^[^:]*"))
end

function fields.server_name() return current.hostname or "localhost" end
function fields.range() return current.headers_in.Range end
function fields.filename(request) return request.script.path end
fields.canonical_filename = fields.filename
function fields.content_type() return nil end
fields.content_encoding, fields.user = fields.content_type, fields.content_type
fields.ap_auth_type = fields.content_type
function fields.handler() return "lua-script" end
function fields.is_https() return false end
fields.assbackwards = fields.is_https
function fields.is_initial_req() return true end
function fields.status() return 200 end
function fields.remaining() return 0 end
function fields.proxyreq() return "PROXYREQ_NONE" end
function fields.banner() return apache.BANNER end
function fields.context_prefix() return "" end

function fields.log_id()
  if native.uuid(context) ~= YES then fail(4) end
  return ffi_string(reply.data, reply.data_len)
end

local function set_text(request, value, name)
  request[name] = text_of(value, 3, "__newindex", 4)
end
for _, name in ipairs { "uri", "filename", "handler", "args", "user", "ap_auth_type", "content_type" } do
  setters[name] = set_text
end

function setters.status(request, value)
  local number = tonumber(value)
  if type(value) ~= "number" and type(value) ~= "string" or not number then
    error("bad argument #3 to '__newindex' (number expected, got " .. type(value) .. ")", 3)
  end
  request.status = floor(number)
end

for _, name in ipairs { "headers_in", "headers_out", "err_headers_out", "notes", "subprocess_env" } do
  methods[name .. "_table"] = function(self)
    apache.check(self, name .. "_table")
    return apache.as_tables(self[name])
  end
end
