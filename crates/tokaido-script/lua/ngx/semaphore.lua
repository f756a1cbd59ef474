-- `ngx.semaphore`, by which requests of one worker wait for each other.

local core = ...

local native = core.native
local context = native.context
local request_to_wait, wait_until, clock_ms = core.request_to_wait, core.wait_until, core.clock_ms
local error, tonumber, floor = error, tonumber, math.floor
local outermost = core.outermost

-- Maximum number of waiters of a semaphore.
local WAITERS_MAX = 10000

local TOO_MANY = "more than " .. WAITERS_MAX .. " wait for the semaphore"

-- The state of a semaphore is {free =, waiters =, first =, last =}: waiters are at first to last, each {request =, light =}.
local Semaphore = { version = "0.1.25" }

-- What all functions below call `self` is the state of the semaphore.
local function state_of(self)
  return core.state_of(self, Semaphore) or error("not a semaphore instance", 3)
end

function Semaphore.new(count)
  count = tonumber(count) or 0
  if not (count >= 0) then error("no negative number", 2) end
  return core.new_object(Semaphore, { free = floor(count), waiters = {}, first = 1, last = 0 })
end

-- Whether a waiter still waits, and has not got anything.
local function is_waiting(waiter)
  local light, request = waiter.light, waiter.request
  if waiter.has_ended or light and light.results then return false end
  repeat
    if request.is_over then return false end
    request = request.outer
  until not request
  return true
end

-- Drops waiters at the front that no longer wait.
local function skip_ended(self)
  while self.first <= self.last and not is_waiting(self.waiters[self.first]) do
    self.waiters[self.first] = nil
    self.first = self.first + 1
  end
end

-- Wakes as many waiters as there is something for. They take it when they run, so nothing is lost if one never does.
local function wake(self)
  skip_ended(self)
  local left = self.free
  for i = self.first, self.last do
    if left == 0 then break end
    local waiter = self.waiters[i]
    if is_waiting(waiter) then
      left = left - 1
      local slot = outermost(waiter.request).slot
      if slot then native.socket_wake(context, slot) else core.rouse(waiter.request) end
    end
  end
end

-- Appends a waiter if there is room; tells whether there was. Dropping those that no longer wait makes some.
local function append(self, waiter)
  if self.last - self.first + 1 >= WAITERS_MAX then
    local waiters, last = {}, 0
    for i = self.first, self.last do
      if is_waiting(self.waiters[i]) then
        last = last + 1
        waiters[last] = self.waiters[i]
      end
    end
    self.waiters, self.first, self.last = waiters, 1, last
  end
  if self.last - self.first + 1 >= WAITERS_MAX then return false end
  self.last = self.last + 1
  self.waiters[self.last] = waiter
  return true
end

function Semaphore.wait(self, seconds)
  self = state_of(self)
  local request = request_to_wait("sem:wait")
  seconds = tonumber(seconds)
  if not seconds then error("bad argument #1 to 'wait' (number expected)", 2) end
  if not (seconds >= 0) then error("no negative number", 2) end
  skip_ended(self)
  if self.free > 0 and self.first > self.last then
    self.free = self.free - 1
    return true
  end
  if seconds == 0 then return nil, "timeout" end
  local waiter = { request = request, light = request.light }
  if not append(self, waiter) then return nil, TOO_MANY end
  wake(self)
  local deadline = clock_ms() + seconds * 1000
  repeat
    if clock_ms() >= deadline then
      waiter.has_ended = true
      return false, "timeout"
    end
    wait_until(request, deadline, true)
  until self.free > 0
  self.free, waiter.has_ended = self.free - 1, true
  -- In nginx these are the results after a wake-up.
  return true, nil
end

function Semaphore.post(self, count)
  self = state_of(self)
  count = count and tonumber(count) or 1
  if not (count >= 1) then error("positive number required", 2) end
  self.free = self.free + floor(count)
  wake(self)
  return true
end

-- How many may go on, or if negative how many wait.
function Semaphore.count(self)
  self = state_of(self)
  local waiting = 0
  for i = self.first, self.last do
    if is_waiting(self.waiters[i]) then waiting = waiting + 1 end
  end
  return self.free - waiting
end

core.modules["ngx.semaphore"] = function() return Semaphore end
