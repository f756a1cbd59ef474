-- What a handler sends: `ngx.say` and the like, `ngx.status`, `ngx.header` and `ngx.resp`, and what ends a phase.

local core = ...

local ngx, native = core.ngx, core.native
local context, reply, fail, ffi_string = native.context, native.reply, native.fail, native.string
local response_write, response_write_line = native.response_write, native.response_write_line
local response_header = native.response_header
local response_header_at, response_header_remove = native.response_header_at, native.response_header_remove
local request_pairs, request_pair = native.request_pairs, native.request_pair
local type, error, select, concat, pairs = type, error, select, table.concat, pairs
local setmetatable, rawget, tonumber, gsub, lower = setmetatable, rawget, tonumber, string.gsub, string.lower
local shown, fields = core.shown, core.fields

-- The phases in which something can be sent.
local SENDING = { rewrite = true, access = true, content = true }

-- nginx's message for a phase in which a function is not available.
function core.disabled(level)
  local running = core.running
  if not running then error("no request found", level + 1) end
  error("API disabled in the context of " .. (running.is_timer and "ngx.timer" or running.phase .. "_by_lua*"), level + 1)
end

local function request_to_send()
  local request = core.request
  if not request or not SENDING[request.phase] then core.disabled(3) end
  return request
end

local function write(text)
  if response_write(context, text, #text) ~= 1 then fail(4) end
end

-- Writes the text and a line break.
local function write_line(text)
  if response_write_line(context, text, #text) ~= 1 then fail(4) end
end

-- Appends the text of a value or of a table of values, nested ones included.
local DEPTH_MAX = 100
local function append(parts, value, depth, place, name)
  local text = shown(value)
  if text then
    parts[#parts + 1] = text
    return
  end
  if type(value) ~= "table" or depth > DEPTH_MAX then
    error("bad argument #" .. place .. " to '" .. name
      .. "' (string, number, boolean, nil, ngx.null, or array table expected, but got " .. type(value) .. ")", 5)
  end
  local last = 0
  for key in pairs(value) do
    if type(key) ~= "number" or key < 1 or key % 1 ~= 0 then
      error("bad argument #" .. place .. " to '" .. name .. "' (non-array table found)", 5)
    end
    if key > last then last = key end
  end
  for i = 1, last do append(parts, value[i], depth + 1, place, name) end
end

local function joined(name, ...)
  local parts = {}
  for i = 1, select("#", ...) do append(parts, (select(i, ...)), 1, i, name) end
  return concat(parts)
end

core.joined = joined

-- A body filter gets each piece in ngx.arg, and may make it the last one.
local function filtered(request, text, is_last)
  if request.is_cut then return end
  request.piece, request.is_last = text, is_last
  core.run_filter(request, "body_filter", request.handler.body_filter)
  request.is_cut = request.is_last
  write(joined("ngx.arg", request.piece))
end

function core.send(request, text)
  if request.is_headless then return end
  if request.handler.body_filter then filtered(request, text, false) else write(text) end
end

-- Sends a whole body, which a filter gets as a single, last piece.
function core.send_whole(request, text)
  if request.is_headless then return end
  request.is_ended = true
  if request.handler.body_filter then filtered(request, text, true) else write(text) end
end

function core.end_body(request)
  if request.handler.body_filter and not request.is_ended then
    request.is_ended = true
    filtered(request, "", true)
  end
end

-- Whether the client is gone, so that nothing more can be sent. That shows after a wait at the earliest.
local function has_gone(request) return request.has_waited and native.response_gone(context) == 1 end

local NOT_SENT = "nginx output filter error"

local function send(text, is_line)
  local request = request_to_send()
  if request.is_ended then return nil, request.is_bodiless and "header only" or "seen eof" end
  if has_gone(request) then return nil, NOT_SENT end
  local is_bodiless = request.is_bodiless
  if not request.is_sent then core.send_headers(request) end
  if request.handler.body_filter then
    if is_line then text = text .. "\n" end
    if text ~= "" then core.send(request, text) end
  elseif is_line then
    write_line(text)
  else
    write(text)
  end
  -- What was written tells the client how long the body would be.
  if is_bodiless then return nil, "header only" end
  return 1
end

function ngx.print(...)
  local first = ...
  if select("#", ...) ~= 1 or type(first) ~= "string" then first = joined("print", ...) end
  return send(first, false)
end

function ngx.say(...)
  local first = ...
  if select("#", ...) ~= 1 or type(first) ~= "string" then first = joined("say", ...) end
  return send(first, true)
end

-- The result of a flush; src/bridge/handler.rs has the same numbers.
local UNSENT, GONE, BUFFERED = 1, 2, 3

-- The longest that a flush waits before it checks again, in ms. It is not `math.huge`, which means that a light thread
-- waits for another one.
local FLUSH_MS = 2 ^ 31

-- What there is gets sent when the handler next waits; with `waits` it waits at once, until all of that is sent.
function ngx.flush(waits)
  local request = request_to_send()
  if request.is_bodiless then return nil, "header only" end
  if request.is_ended then return nil, "seen eof" end
  if not request.is_sent then return nil, "nothing to flush" end
  if request.outer then return 1 end
  if request.handler.body_filter then core.send(request, "") end
  waits = waits and not core.why_not_wait(request)
  local has_waited = false
  while true do
    native.response_flush(context, waits and 1 or 0)
    if reply.number ~= UNSENT then break end
    core.wait_until(request, core.clock_ms() + FLUSH_MS, true)
    has_waited = true
  end
  if reply.number == GONE then return nil, has_waited and "client aborted" or NOT_SENT end
  if reply.number == BUFFERED then return nil, "buffering" end
  return 1
end

function ngx.eof()
  local request = request_to_send()
  if request.is_ended then return nil, "seen eof" end
  if not request.is_sent then core.send_headers(request) end
  core.end_body(request)
  request.is_ended = true
  if native.response_complete(context) ~= 1 then fail(3) end
  if request.is_bodiless then return nil, "seen eof" end
  return 1
end

function ngx.send_headers()
  local request = request_to_send()
  if not request.is_sent then core.send_headers(request) end
  return 1
end

local log_error = function(text) ngx.log(ngx.ERR, text) end

function ngx.exit(status)
  local request = core.running
  if not request then core.disabled(2) end
  if type(status) ~= "number" then error("bad argument #1 to 'exit' (number expected, got " .. type(status) .. ")", 2) end
  if request.phase == "log" or request.phase == "body_filter" then core.disabled(2) end
  if request.is_sent and status >= 200 and status ~= request.status then
    log_error("attempt to set status " .. status .. " via ngx.exit after sending out the response status "
      .. request.status)
  end
  core.leave(status)
end

local REDIRECTS = { [301] = true, [302] = true, [303] = true, [307] = true, [308] = true }

function ngx.redirect(uri, status)
  local request = request_to_send()
  if type(uri) ~= "string" then error("bad argument #1 to 'redirect' (string expected, got " .. type(uri) .. ")", 2) end
  status = status or 302
  if not REDIRECTS[status] then
    error("only ngx.HTTP_MOVED_TEMPORARILY, ngx.HTTP_MOVED_PERMANENTLY, ngx.HTTP_PERMANENT_REDIRECT, "
      .. "ngx.HTTP_SEE_OTHER, and ngx.HTTP_TEMPORARY_REDIRECT are allowed", 2)
  end
  if request.is_sent then error("attempt to call ngx.redirect after sending out the headers", 2) end
  if response_header(context, "location", 8, uri, #uri, 0) ~= 1 then fail() end
  core.leave(status)
end

fields.status = {
  get = function()
    local request = core.request
    if not request then core.disabled(3) end
    return request.status
  end,
  set = function(status)
    local request = core.request
    if not request then core.disabled(3) end
    status = tonumber(status)
    if not status then error("ngx.status is a number", 3) end
    if request.is_sent and request.phase ~= "header_filter" then
      log_error("attempt to set ngx.status after sending out response headers")
      return
    end
    request.status = status
  end,
}

fields.headers_sent = {
  get = function()
    local request = core.request
    if not request then core.disabled(3) end
    return request.is_sent
  end,
}

-- The names of headers by what handlers call them: `gsub` is not compiled, and would end a handler's trace.
local NAMES_MAX = 256
local names, names_count = {}, 0

local function header_name(called)
  local name = names[called]
  if name then return name end
  local is_text = type(called) == "string"
  name = gsub(is_text and called or core.text_of(called), "_", "-")
  if is_text and names_count < NAMES_MAX then
    names[called], names_count = name, names_count + 1
  end
  return name
end

-- As in a response, in lower case.
local lower_names, lower_names_count = {}, 0

local function lower_name(called)
  local name = lower_names[called]
  if name then return name end
  name = lower(header_name(called))
  if type(called) == "string" and lower_names_count < NAMES_MAX then
    lower_names[called], lower_names_count = name, lower_names_count + 1
  end
  return name
end

local function header_value(name)
  local first = response_header_at(context, name, #name, 0)
  if first ~= 1 then return nil end
  local value = ffi_string(reply.data, reply.data_len)
  local values, count = nil, 1
  while response_header_at(context, name, #name, count) == 1 do
    values = values or { value }
    count = count + 1
    values[count] = ffi_string(reply.data, reply.data_len)
  end
  return values or value
end

-- Headers that a response has only once.
local SINGLE = {
  ["content-type"] = true, ["content-length"] = true, ["location"] = true, ["last-modified"] = true,
  ["etag"] = true, ["server"] = true, ["date"] = true, ["expires"] = true, ["content-encoding"] = true,
}

local function add_header(name, value, add)
  value = core.text_of(value)
  if response_header(context, name, #name, value, #value, add) ~= 1 then fail(4) end
end

local function set_header(called, value, replace)
  local request = core.request
  if not request then core.disabled(3) end
  if request.is_sent and request.phase ~= "header_filter" then
    log_error("attempt to set ngx.header." .. header_name(called) .. " after sending out response headers")
    return
  end
  local name = lower_name(called)
  if name == "content-type" then request.is_typed = true end
  if type(value) ~= "table" then
    if value == nil then
      response_header_remove(context, name, #name)
    else
      add_header(name, value, replace and 0 or 1)
    end
    return
  end
  if replace then response_header_remove(context, name, #name) end
  local from = SINGLE[name] and #value or 1
  for i = from, #value do add_header(name, value[i], 1) end
end

ngx.header = setmetatable({}, {
  __index = function(_, name)
    local request = core.request
    if not request then core.disabled(2) end
    name = header_name(name)
    local value = header_value(name)
    if value == nil and lower(name) == "content-type" and request.is_sent then return "text/plain" end
    return value
  end,
  __newindex = function(_, name, value) set_header(name, value, true) end,
})

-- Lower-case names find those in any case; `_` stands for `-`.
core.headers_meta = {
  __index = function(self, name)
    if type(name) ~= "string" then return nil end
    return rawget(self, (gsub(lower(name), "_", "-")))
  end,
}

-- Names with their values, from a native list; a name that comes twice has a table of values.
function core.collect_pairs(max)
  local found, count = {}, reply.number
  local truncated
  if max > 0 and count > max then count, truncated = max, "truncated" end
  for i = 0, count - 1 do
    request_pair(context, i)
    local name = ffi_string(reply.key, reply.key_len)
    core.add_value(found, name, ffi_string(reply.data, reply.data_len))
  end
  return found, truncated
end

function core.add_value(found, name, value)
  local before = found[name]
  if before == nil then
    found[name] = value
  elseif type(before) == "table" then
    before[#before + 1] = value
  else
    found[name] = { before, value }
  end
end

function core.response_headers(max, is_raw)
  if request_pairs(context, 3) ~= 1 then fail(4) end
  local found, truncated = core.collect_pairs(max or 100)
  if is_raw then return found, truncated end
  return setmetatable(found, core.headers_meta), truncated
end

ngx.resp = {}
function ngx.resp.get_headers(max, is_raw)
  if not core.request then core.disabled(2) end
  return core.response_headers(max, is_raw)
end

function ngx.resp.add_header(name, value) set_header(name, value, false) end

ngx.arg = setmetatable({}, {
  __index = function(_, place)
    local request = core.request
    if not request or request.phase ~= "body_filter" then core.disabled(2) end
    if place == 1 then return request.piece end
    if place == 2 then return request.is_last end
    return nil
  end,
  __newindex = function(_, place, value)
    local request = core.request
    if not request or request.phase ~= "body_filter" then core.disabled(2) end
    if place == 1 then
      request.piece = value == nil and "" or value
    elseif place == 2 then
      request.is_last = value
    else
      error("bad argument #-2 to 'newindex' (index out of bounds)", 2)
    end
  end,
})
