-- Finds the handler of the route for a path, for `ngx.exec` and `ngx.location.capture`: requests that a handler makes
-- within its own. They find the routes of this dialect's files.

local core = ...

local ngx = core.ngx
local type, error, tostring, pairs = type, error, tostring, pairs
local match, gmatch, sub, lower = string.match, string.gmatch, string.sub, string.lower
local ipairs, unpack = ipairs, unpack

-- In the order in which they were added: {method =, parts =, handler =}.
local routes = {}

-- The parts of a path, each decoded separately if it is as in a request: a `%2F` there divides nothing.
local function split(path, is_encoded)
  local parts = {}
  for part in gmatch(sub(path, 2) .. "/", "([^/]*)/") do
    parts[#parts + 1] = is_encoded and core.unescape_path(part) or part
  end
  return parts
end

function core.add_route(handler)
  routes[#routes + 1] = { method = handler.method, parts = split(handler.pattern), handler = handler }
end

-- How the parts of a path fit a route: the parameters, and for each part how exactly it fits, as sortable text.
local function fit(route, parts)
  local parameters, rank = {}, ""
  for i, wanted in ipairs(route.parts) do
    local kind, name = match(wanted, "^([:*])(.+)$")
    if kind == "*" then
      parameters[lower(name)] = table.concat(parts, "/", i)
      return i <= #parts and parameters or nil, rank .. "1"
    end
    local part = parts[i]
    if not part then return nil end
    if kind == ":" then
      if part == "" then return nil end
      parameters[lower(name)], rank = part, rank .. "2"
    elseif part == wanted then
      rank = rank .. "3"
    else
      return nil
    end
  end
  return #parts == #route.parts and parameters or nil, rank
end

-- As in the server's router: the method itself, then GET for HEAD, then any.
local function rank_of_method(wanted, method)
  if wanted == method then return "3" end
  if wanted == "GET" and method == "HEAD" then return "2" end
  return wanted == "*" and "1" or nil
end

local function find_route(method, parts)
  local best, found, best_rank = nil, nil, ""
  for i = 1, #routes do
    local route = routes[i]
    local method_rank = rank_of_method(route.method, method)
    if method_rank then
      local parameters, rank = fit(route, parts)
      rank = parameters and rank .. method_rank
      if parameters and rank > best_rank then best, found, best_rank = route.handler, parameters, rank end
    end
  end
  return best, found
end

local function split_target(uri, args)
  local path, query = match(uri, "^([^?]*)%??(.*)$")
  if type(args) == "table" then args = core.join_args(args) end
  if args and args ~= "" then query = query ~= "" and query .. "&" .. args or args end
  return core.unescape_path(path), query, split(path, true)
end

-- Makes the handler of another path answer the request.
function ngx.exec(uri, args)
  local request = core.request
  if not request then core.disabled(2) end
  if request.phase ~= "content" and request.phase ~= "access" and request.phase ~= "rewrite" then core.disabled(2) end
  if type(uri) ~= "string" or uri == "" then error("The uri argument is empty", 2) end
  if request.is_sent then error("attempt to call ngx.exec after sending out response headers", 2) end
  if args ~= nil and type(args) ~= "string" and type(args) ~= "table" then
    error("bad argument #2 to 'exec' (string, table, or nil expected, but got " .. type(args) .. ")", 2)
  end
  local path, query, parts = split_target(uri, args)
  core.leave({ path = path, query = query, parts = parts })
end

function core.change_handler(request, target)
  local handler, parameters = find_route(core.method(request), target.parts or split(target.path))
  request.path, request.is_internal = target.path, true
  if target.query then request.query = target.query end
  request.ctx, request.parameters = nil, parameters
  request.handler = handler or core.NOT_FOUND
end

-- Answers requests that no route answers.
core.NOT_FOUND = { content = function() ngx.exit(404) end, method = "*", pattern = "/" }

local METHODS = {
  [2] = "GET", [4] = "HEAD", [8] = "POST", [16] = "PUT", [32] = "DELETE", [64] = "MKCOL", [128] = "COPY",
  [256] = "MOVE", [512] = "OPTIONS", [1024] = "PROPFIND", [2048] = "PROPPATCH", [4096] = "LOCK",
  [8192] = "UNLOCK", [16384] = "PATCH", [32768] = "TRACE",
}

-- Prepares a request within the running one: the handler, and what differs in its request.
local function prepare(uri, options)
  local outer = core.request
  if not outer then core.disabled(3) end
  if outer.phase ~= "content" and outer.phase ~= "access" and outer.phase ~= "rewrite" then core.disabled(3) end
  if type(uri) ~= "string" or uri == "" then error("the uri of a request within a request is a path", 3) end
  options = options or {}
  if type(options) ~= "table" then error("expecting table as the 2nd argument for subrequest options, but got " .. type(options), 3) end
  local method = METHODS[options.method or ngx.HTTP_GET]
  if not method then error("unsupported HTTP method: " .. tostring(options.method), 3) end
  local path, query, parts = split_target(uri, options.args)
  local handler, parameters = find_route(method, parts)
  local variables
  if options.vars or options.copy_all_vars or options.share_all_vars then
    variables = options.share_all_vars and (outer.variables or {}) or {}
    if options.share_all_vars then outer.variables = variables end
    if options.copy_all_vars then
      for name, value in pairs(outer.variables or {}) do variables[name] = value end
    end
    for name, value in pairs(options.vars or {}) do variables[name] = core.text_of(value) end
  end
  local body = options.body
  if body ~= nil and type(body) ~= "string" then error("bad request body", 3) end
  -- A copy, since the headers of the outer request are not its own.
  local headers = {}
  for i, header in ipairs(core.own_headers(outer)) do headers[i] = header end
  if body == nil and (method == "PUT" or method == "POST" or options.always_forward_body) then
    body = core.body(outer)
  else
    core.set_length(headers, body)
  end
  return handler or core.NOT_FOUND, {
    method = method, path = path, query = query, parameters = parameters or {}, variables = variables,
    body = body or "", ctx = options.ctx, headers = headers, is_headless = method == "HEAD",
  }
end

ngx.location = {
  capture = function(uri, options)
    local handler, overrides = prepare(uri, options)
    local captured = core.nest(handler, overrides)
    return captured
  end,
}

-- Concurrently if they may wait, otherwise one after the other.
function ngx.location.capture_multi(requests)
  if type(requests) ~= "table" then error("bad argument #1 to 'capture_multi' (table expected)", 2) end
  local runs = {}
  for i = 1, #requests do
    local handler, overrides = prepare(requests[i][1], requests[i][2])
    runs[i] = function()
      local captured = core.nest(handler, overrides)
      return captured
    end
  end
  if #runs == 0 then error("at least one subrequest should be specified", 2) end
  local results
  if #runs > 1 and not core.why_not_wait(core.request) then
    results = core.run_together(core.request, runs)
  else
    results = {}
    for i = 1, #runs do results[i] = runs[i]() end
  end
  return unpack(results)
end
