-- `ngx.socket`: sockets of a handler, which waits for them in the same way as in `ngx.sleep`. The server owns them and the
-- data that has arrived, and closes them when their request ends.

local core = ...

local ngx, native = core.ngx, core.native
local context, reply, ffi_string, fail = native.context, native.reply, native.string, native.fail
local request_to_wait, wait_until, clock_ms = core.request_to_wait, core.wait_until, core.clock_ms
local connect, connected, send, receive = native.socket_connect, native.socket_connected, native.socket_send, native.socket_receive
local type, error, tostring, tonumber, pairs = type, error, tostring, tonumber, pairs
local select, floor, concat = select, math.floor, table.concat

-- Maximum time that an operation waits, unless a handler says otherwise; a connection is kept for as long.
local TIMEOUT_MS = 60000
local TIMEOUT_MS_MAX = 2 ^ 31 - 1

-- Number of connections that a pool keeps, unless a handler says otherwise.
local POOL_SIZE = 30
local POOL_SIZE_MAX = 1000

-- Maximum length of what receiveuntil looks for.
local PATTERN_LEN_MAX = 65536

-- Maximum nesting of tables that are sent.
local DEPTH_MAX = 100

-- The codes of Rust: done, not yet, and an error that is a result.
local DONE, PENDING, ERROR = 1, 0, 4

-- What to receive; src/bridge/openresty/sockets.rs has the same numbers.
local SIZE, LINE, ALL, ANY, UNTIL, UNTIL_INCLUSIVE = 0, 1, 2, 3, 4, 5

-- The state of a socket is {connect_ms =, send_ms =, read_ms =} and, once connected, {number =, request =, reused =}. What
-- a light thread does with it is noted as is_connecting, is_reading or is_writing.
local TCP = {}

local function message() return ffi_string(reply.key, reply.key_len) end
local function data() return ffi_string(reply.data, reply.data_len) end

-- The state of a socket, or an error of the function that was given something else. What the functions below call
-- `self` is the state.
local function state_of_class(self, class, name)
  return core.state_of(self, class)
    or error("bad argument #1 to '" .. name .. "' (a socket expected, got " .. type(self) .. ")", 3)
end

local function state_of(self, name) return state_of_class(self, TCP, name) end

-- The number of a connected socket; otherwise nil.
local function number_of(self, request)
  if self.number and self.request ~= request then error("bad request", 3) end
  return self.number
end

local function busy(self)
  return self.is_connecting and "socket busy connecting" or self.is_reading and "socket busy reading"
    or self.is_writing and "socket busy writing" or nil
end

local function close(self)
  native.socket_close(context, self.number)
  self.number, self.request, self.is_input_closed = nil, nil, nil
end

-- Called when a light thread was killed while it waited for this socket.
function core.close_killed(self)
  self.is_connecting, self.is_reading, self.is_writing = nil, nil, nil
  if self.number then close(self) end
end

-- Waits until the socket may be ready; false once it is too late.
local function wait(self, request, deadline)
  if clock_ms() >= deadline then return false end
  local light = request.light
  if light then light.socket = self end
  wait_until(request, deadline, true)
  if light then light.socket = nil end
  return true
end

local function finish_connect(self, request)
  local number, deadline = self.number, clock_ms() + self.connect_ms
  local why
  repeat
    local code = connected(context, number)
    if code == DONE then
      self.reused = reply.number
      return 1
    end
    if code ~= PENDING then
      why = code == ERROR and message() or nil
      if not why then fail(3) end
    elseif not wait(self, request, deadline) then
      why = "timeout"
    end
  until why
  close(self)
  return nil, why
end

local function pool_of(options, host, port)
  local pool, size
  if type(options) == "table" then
    pool, size = options.pool, options.pool_size
    if pool ~= nil and type(pool) ~= "string" and type(pool) ~= "number" then
      error("bad argument #4 to 'connect' (bad \"pool\" option type: " .. type(pool) .. ")", 3)
    end
    if size ~= nil and not (type(size) == "number" and size >= 1 and size <= POOL_SIZE_MAX) then
      error("bad argument #4 to 'connect' (bad \"pool_size\" option value: " .. tostring(size) .. ")", 3)
    end
    if options.backlog ~= nil then
      error("the option backlog of connect is not offered: connections are not queued; see " .. core.PAGE, 3)
    end
  end
  return core.text_of(pool or (port < 0 and host or host .. ":" .. port)), floor(size or POOL_SIZE)
end

function TCP.connect(self, host, port, options)
  self = state_of(self, "connect")
  local request = request_to_wait("sock:connect")
  if type(host) ~= "string" and type(host) ~= "number" then
    error("bad argument #2 to 'connect' (string expected, got " .. type(host) .. ")", 2)
  end
  host = tostring(host)
  if host:sub(1, 5) == "unix:" then
    if type(port) == "table" then options = port end
    port = -1
  else
    port = tonumber(port)
    if not port then return nil, "missing the port number" end
    if not (port >= 0 and port <= 65535) then return nil, "bad port number: " .. port end
    port = floor(port)
  end
  local pool, size = pool_of(options, host, port)
  if number_of(self, request) then
    local why = busy(self)
    if why then return nil, why end
    close(self)
  end
  local code = connect(context, host, #host, port, pool, #pool, size)
  if code == ERROR then return nil, message() end
  if code ~= DONE then fail(2) end
  self.number, self.request, self.is_connecting = reply.number, request, true
  local ok, why = finish_connect(self, request)
  self.is_connecting = nil
  if not ok then return nil, why end
  return ok
end

local function bad_data(why)
  error("bad argument #1 to 'send' (" .. why .. ")", 4)
end

-- Appends the texts of an array, and of nested arrays.
local function append(parts, list, depth)
  if depth > DEPTH_MAX then bad_data("tables lie more than " .. DEPTH_MAX .. " deep in each other") end
  local count = 0
  for key in pairs(list) do
    if type(key) ~= "number" or key < 1 or key ~= floor(key) then bad_data("non-array table found") end
    count = count + 1
  end
  for i = 1, count do
    local value = list[i]
    local kind = type(value)
    if kind == "string" or kind == "number" then
      parts[#parts + 1] = tostring(value)
    elseif kind == "table" then
      append(parts, value, depth + 1)
    else
      bad_data("bad data type " .. kind .. " found")
    end
  end
end

local function text_of(value)
  local kind = type(value)
  if kind == "string" then return value end
  if kind == "number" or kind == "boolean" or kind == "nil" then return tostring(value) end
  if kind ~= "table" then bad_data("string, number, boolean, nil, or array table expected, got " .. kind) end
  local parts = {}
  append(parts, value, 1)
  return concat(parts)
end

local function send_all(self, request, text)
  local number, sent = self.number, 0
  local deadline = clock_ms() + self.send_ms
  while sent < #text do
    local code = send(context, number, text, #text, sent)
    if code == DONE then
      sent = sent + reply.number
      deadline = clock_ms() + self.send_ms
    elseif code ~= PENDING then
      local why = code == ERROR and message() or nil
      if not why then fail(3) end
      close(self)
      return nil, why
    elseif not wait(self, request, deadline) then
      close(self)
      return nil, "timeout"
    end
    if self.number ~= number then return nil, "closed" end
  end
  return sent
end

function TCP.send(self, ...)
  self = state_of(self, "send")
  if select("#", ...) ~= 1 then error("expecting 2 arguments (including the object), but got " .. select("#", ...) + 1, 2) end
  local request = request_to_wait("sock:send")
  local text = text_of((...))
  if not number_of(self, request) then return nil, "closed" end
  if self.is_connecting then return nil, "socket busy connecting" end
  if self.is_writing then return nil, "socket busy writing" end
  self.is_writing = true
  local sent, why = send_all(self, request, text)
  self.is_writing = nil
  if not sent then return nil, why end
  return sent
end

local function receive_all(self, request, kind, size, text)
  local number = self.number
  local deadline, had
  while true do
    local code = receive(context, number, kind, size, text, #text)
    if code == DONE then return data() end
    if code == ERROR then
      self.is_input_closed = true
      return nil, message(), data()
    end
    if code ~= PENDING then fail(4) end
    -- Any data extends the deadline.
    local came = reply.number
    if came ~= had then deadline, had = clock_ms() + self.read_ms, came end
    if not wait(self, request, deadline) then
      if native.socket_give_up(context, number, kind, size, text, #text) ~= DONE then fail(4) end
      return nil, "timeout", data()
    end
    if self.number ~= number then return nil, "closed" end
  end
end

-- Only the first call after an error gives what came before it.
local function received(self, request, kind, size, text)
  if not self.number or self.is_input_closed then return nil, "closed" end
  if self.is_connecting then return nil, "socket busy connecting" end
  if self.is_reading then return nil, "socket busy reading" end
  self.is_reading = true
  local part, why, rest = receive_all(self, request, kind, size, text)
  self.is_reading = nil
  if part then return part end
  return nil, why, rest
end

function TCP.receive(self, ...)
  self = state_of(self, "receive")
  local what = ...
  if select("#", ...) > 1 then error("expecting 1 or 2 arguments (including the object), but got " .. select("#", ...) + 1, 2) end
  local request = request_to_wait("sock:receive")
  number_of(self, request)
  if what == nil or what == "*l" then return received(self, request, LINE, 0, "") end
  if what == "*a" then return received(self, request, ALL, 0, "") end
  local size = tonumber(what)
  if not size or type(what) == "table" then error("bad argument #1 to 'receive' (bad pattern argument: " .. tostring(what) .. ")", 2) end
  if not (size >= 0) then error("bad argument #1 to 'receive' (bad pattern argument)", 2) end
  return received(self, request, SIZE, floor(size), "")
end

function TCP.receiveany(self, ...)
  self = state_of(self, "receiveany")
  local size = tonumber((...))
  if not size then error("bad argument #1 to 'receiveany' (bad max argument)", 2) end
  if not (size >= 1) then error("bad argument #1 to 'receiveany' (bad max argument)", 2) end
  local request = request_to_wait("sock:receiveany")
  number_of(self, request)
  return received(self, request, ANY, floor(size), "")
end

function TCP.receiveuntil(self, pattern, ...)
  self = state_of(self, "receiveuntil")
  if type(pattern) ~= "string" and type(pattern) ~= "number" then
    error("bad argument #1 to 'receiveuntil' (string expected, got " .. type(pattern) .. ")", 2)
  end
  local options, kind = ..., UNTIL
  if select("#", ...) > 0 then
    if type(options) ~= "table" then error("bad argument #2 to 'receiveuntil' (table expected, got " .. type(options) .. ")", 2) end
    if options.inclusive ~= nil and type(options.inclusive) ~= "boolean" then
      error("bad \"inclusive\" option value type: " .. type(options.inclusive), 2)
    end
    if options.inclusive then kind = UNTIL_INCLUSIVE end
  end
  pattern = tostring(pattern)
  if pattern == "" then return nil, "pattern is empty" end
  if #pattern > PATTERN_LEN_MAX then return nil, "pattern has more than " .. PATTERN_LEN_MAX .. " bytes" end
  local is_at_end = false
  local function noted(size, part, ...)
    is_at_end = part ~= nil and size > 0 and reply.number == 0
    return part, ...
  end
  return function(size)
    local request = request_to_wait("the function of sock:receiveuntil")
    number_of(self, request)
    if is_at_end then
      is_at_end = false
      return nil, nil, nil
    end
    size = floor(size ~= nil and tonumber(size) or 0)
    if not (size >= 0) then error("bad size of what is to be received", 2) end
    return noted(size, received(self, request, kind, size, pattern))
  end
end

function TCP.close(self)
  self = state_of(self, "close")
  local request = request_to_wait("sock:close")
  if not number_of(self, request) then return nil, "closed" end
  local why = busy(self)
  if why then return nil, why end
  close(self)
  return 1
end

function TCP.setkeepalive(self, time_ms, size)
  self = state_of(self, "setkeepalive")
  if time_ms ~= nil and not tonumber(time_ms) then
    error("bad argument #1 to 'setkeepalive' (number expected, got " .. type(time_ms) .. ")", 2)
  end
  local request = request_to_wait("sock:setkeepalive")
  if not number_of(self, request) or self.is_input_closed then return nil, "closed" end
  local why = busy(self)
  if why then return nil, why end
  time_ms, size = tonumber(time_ms) or TIMEOUT_MS, tonumber(size) or 0
  if time_ms < 0 then time_ms = TIMEOUT_MS end
  local code = native.socket_keep(context, self.number, time_ms, size <= POOL_SIZE_MAX and size or POOL_SIZE_MAX)
  if code == ERROR then why = message() elseif code ~= DONE then fail(2) end
  close(self)
  if why then return nil, why end
  return 1
end

function TCP.getreusedtimes(self)
  self = state_of(self, "getreusedtimes")
  if not number_of(self, request_to_wait("sock:getreusedtimes")) then return nil, "closed" end
  return self.reused
end

local function time_of(time_ms)
  time_ms = tonumber(time_ms) or 0
  if not (time_ms >= 0 and time_ms <= TIMEOUT_MS_MAX) then error("bad timeout value", 3) end
  return time_ms > 0 and time_ms or TIMEOUT_MS
end

function TCP.settimeout(self, ...)
  self = state_of(self, "settimeout")
  if select("#", ...) ~= 1 then error("expecting 2 arguments (including the object), but got " .. select("#", ...) + 1, 2) end
  local time_ms = time_of((...))
  self.connect_ms, self.send_ms, self.read_ms = time_ms, time_ms, time_ms
end

function TCP.settimeouts(self, ...)
  self = state_of(self, "settimeouts")
  if select("#", ...) ~= 3 then error("expecting 4 arguments (including the object), but got " .. select("#", ...) + 1, 2) end
  local connect_ms, send_ms, read_ms = ...
  self.connect_ms, self.send_ms, self.read_ms = time_of(connect_ms), time_of(send_ms), time_of(read_ms)
end

local OPTIONS = { keepalive = 0, reuseaddr = 1, ["tcp-nodelay"] = 2, sndbuf = 3, rcvbuf = 4 }

function TCP.setoption(self, option, value)
  self = state_of(self, "setoption")
  local request = request_to_wait("sock:setoption")
  if not number_of(self, request) then return nil, "closed" end
  if option == nil then return nil, 'missing the "option" argument' end
  if value == nil then return nil, 'missing the "value" argument' end
  if not OPTIONS[option] then return nil, "unsupported option " .. tostring(option) end
  value = type(value) == "boolean" and (value and 1 or 0) or tonumber(value)
  if not (value and value >= 0 and value <= TIMEOUT_MS_MAX) then return nil, "bad value of the option " .. option end
  local code = native.socket_option(context, self.number, OPTIONS[option], value)
  if code == ERROR then return nil, message() end
  if code ~= DONE then fail(2) end
  return true
end

TCP.sslhandshake = core.refused("sock:sslhandshake", "there is no TLS here; a local proxy can speak it")
TCP.setclientcert = core.refused("sock:setclientcert", "there is no TLS here; a local proxy can speak it")
TCP.bind = core.refused("sock:bind", "a socket connects from the address that the system chooses")

ngx.socket = {}

function ngx.socket.tcp()
  request_to_wait("ngx.socket.tcp")
  return core.new_object(TCP, { connect_ms = TIMEOUT_MS, send_ms = TIMEOUT_MS, read_ms = TIMEOUT_MS })
end
ngx.socket.stream = ngx.socket.tcp

function ngx.socket.connect(...)
  request_to_wait("ngx.socket.connect")
  local sock = ngx.socket.tcp()
  local ok, why = sock:connect(...)
  if not ok then return nil, why end
  return sock
end

-- For UDP sockets, which share most of this.
core.sockets = {
  TIMEOUT_MS = TIMEOUT_MS, message = message, data = data, number_of = number_of, busy = busy, close = close, wait = wait,
  state_of = state_of_class, finish_connect = finish_connect, text_of = text_of, time_of = time_of,
}
