-- `ngx.socket.udp`: datagram sockets. They wait like those of `sockets.lua`, which contains the code that both share.

local core = ...

local ngx, native, sockets = core.ngx, core.native, core.sockets
local context, reply, fail = native.context, native.reply, native.fail
local request_to_wait, clock_ms = core.request_to_wait, core.clock_ms
local message, data, number_of, wait = sockets.message, sockets.data, sockets.number_of, sockets.wait
local type, error, tostring, tonumber = type, error, tostring, tonumber
local select, floor, min = select, math.floor, math.min

-- The codes of Rust, and its number for receiving a datagram.
local DONE, PENDING, ERROR = 1, 0, 4
local DATAGRAM = 6

-- Length of a datagram, unless a handler says otherwise.
local LEN, LEN_MAX = 8192, 65536

local UDP = {}

local function state_of(self, name) return sockets.state_of(self, UDP, name) end

function UDP.setpeername(self, host, port)
  self = state_of(self, "setpeername")
  local request = request_to_wait("sock:setpeername")
  if type(host) ~= "string" and type(host) ~= "number" then
    error("bad argument #1 to 'setpeername' (string expected, got " .. type(host) .. ")", 2)
  end
  host = tostring(host)
  if host:sub(1, 5) == "unix:" then return nil, "datagrams go to hosts, and no paths" end
  if port == nil then return nil, "missing the port number" end
  if not tonumber(port) then error("bad argument #2 to 'setpeername' (number expected, got " .. type(port) .. ")", 2) end
  port = tonumber(port)
  if not (port >= 0 and port <= 65535) then return nil, "bad port number: " .. port end
  if number_of(self, request) then
    local why = sockets.busy(self)
    if why then return nil, why end
    sockets.close(self)
  end
  local code = native.socket_connect(context, host, #host, floor(port), "", 0, 0)
  if code == ERROR then return nil, message() end
  if code ~= DONE then fail(2) end
  self.number, self.request, self.is_connecting = reply.number, request, true
  local ok, why = sockets.finish_connect(self, request)
  self.is_connecting = nil
  if not ok then return nil, why end
  return 1
end

-- Repeats an attempt, waiting in between, until it is done, fails or is too late.
local function attempt(self, request, deadline, try)
  local number = self.number
  while true do
    local code = try(number)
    if code == DONE then return true end
    if code == ERROR then return nil, message() end
    if code ~= PENDING then fail(4) end
    if not wait(self, request, deadline) then return nil, "timeout" end
    if self.number ~= number then return nil, "closed" end
  end
end

function UDP.send(self, ...)
  self = state_of(self, "send")
  if select("#", ...) ~= 1 then error("expecting 2 arguments (including the object), but got " .. select("#", ...) + 1, 2) end
  local request = request_to_wait("sock:send")
  local text = sockets.text_of((...))
  if not number_of(self, request) then return nil, "closed" end
  if self.is_connecting then return nil, "socket busy connecting" end
  local ok, why = attempt(self, request, clock_ms() + self.send_ms, function(number)
    return native.socket_send(context, number, text, #text, 0)
  end)
  if not ok then return nil, why end
  return 1
end

function UDP.receive(self, size)
  self = state_of(self, "receive")
  local request = request_to_wait("sock:receive")
  if size ~= nil and not tonumber(size) then
    error("bad argument #1 to 'receive' (number expected, got " .. type(size) .. ")", 2)
  end
  size = floor(tonumber(size) or LEN)
  size = size >= 0 and min(size, LEN_MAX) or LEN
  if not number_of(self, request) then return nil, "closed" end
  if self.is_connecting then return nil, "socket busy connecting" end
  if self.is_reading then return nil, "socket busy reading" end
  self.is_reading = true
  local ok, why = attempt(self, request, clock_ms() + self.read_ms, function(number)
    return native.socket_receive(context, number, DATAGRAM, size, "", 0)
  end)
  self.is_reading = nil
  if not ok then return nil, why end
  return data()
end

function UDP.settimeout(self, ...)
  self = state_of(self, "settimeout")
  if select("#", ...) ~= 1 then error("expecting 2 arguments (including the object), but got " .. select("#", ...) + 1, 2) end
  local time_ms = sockets.time_of((...))
  self.connect_ms, self.send_ms, self.read_ms = time_ms, time_ms, time_ms
end

function UDP.close(self)
  self = state_of(self, "close")
  if not number_of(self, request_to_wait("sock:close")) then return nil, "closed" end
  local why = sockets.busy(self)
  if why then return nil, why end
  sockets.close(self)
  return 1
end

UDP.bind = core.refused("sock:bind", "a socket sends from the address that the system chooses")

function ngx.socket.udp()
  request_to_wait("ngx.socket.udp")
  local time_ms = sockets.TIMEOUT_MS
  return core.new_object(UDP, { connect_ms = time_ms, send_ms = time_ms, read_ms = time_ms })
end
