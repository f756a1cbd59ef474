-- A consumer group of a stream, as `stream:group("workers")` returns it.

local core = ...

local native, text = core.native, core.text
local context, reply, ffi_string, fail = native.context, native.reply, native.string, native.fail
local element_text, NO_COLON = text.element, text.NO_COLON
local page_next, read_fields = native.page_next, core.read_fields
local type, error, setmetatable = type, error, setmetatable
local floor, huge = math.floor, math.huge

local NO, YES = 0, 1

local Group = {}
local META = core.handle_meta(Group, {
  class = "StreamGroup", name = "group", write = "groups are written by their methods",
})

function core.Stream:group(name)
  if type(name) ~= "string" then name = element_text(name, self, "a group's name") end
  return setmetatable({ index = self.index, stream = self.key, key = name }, META)
end

local exists = native.group_exists
function Group:exists()
  local key, name = self.stream, self.key
  local code = exists(context, self.index, key, #key, name, #name)
  if code == YES then return true end
  if code ~= NO then fail() end
  return false
end

local create = native.group_create
function Group:create(after)
  local key, name, code = self.stream, self.key, nil
  if after == nil then
    code = create(context, self.index, key, #key, name, #name, "", -1)
  else
    if type(after) ~= "string" then after = element_text(after, self, "an id") end
    code = create(context, self.index, key, #key, name, #name, after, #after)
  end
  if code == YES then return true end
  if code ~= NO then fail() end
  return false
end

local destroy = native.group_destroy
function Group:destroy()
  local key, name = self.stream, self.key
  local code = destroy(context, self.index, key, #key, name, #name)
  if code == YES then return true end
  if code ~= NO then fail() end
  return false
end

local read = native.group_read
function Group:read(consumer, count)
  if type(consumer) ~= "string" then consumer = element_text(consumer, self, "a consumer's name") end
  if type(count) ~= "number" or count < 1 or count ~= floor(count) then
    error("read takes a consumer's name and how many entries at most, from 1 up; this is "
      .. text.shown(count), 2)
  end
  local key, name = self.stream, self.key
  if read(context, self.index, key, #key, name, #name, consumer, #consumer, count) ~= YES then fail() end
  local entries = {}
  for i = 1, reply.number do
    page_next(context)
    local id = ffi_string(reply.key, reply.key_len)
    entries[i] = { id = id, fields = read_fields(reply.number) }
  end
  return entries
end

local acknowledge = native.group_acknowledge
function Group:acknowledge(id)
  if type(id) ~= "string" then id = element_text(id, self, "an id") end
  local key, name = self.stream, self.key
  local code = acknowledge(context, self.index, key, #key, name, #name, id, #id)
  if code == YES then return true end
  if code ~= NO then fail() end
  return false
end

local claim = native.group_claim
function Group:claim(consumer, id, idle_ms)
  if type(consumer) ~= "string" then consumer = element_text(consumer, self, "a consumer's name") end
  if type(id) ~= "string" then id = element_text(id, self, "an id") end
  idle_ms = text.number(idle_ms, "idle_ms")
  local key, name = self.stream, self.key
  local code = claim(
    context, self.index, key, #key, name, #name, consumer, #consumer, id, #id, idle_ms
  )
  if code == YES then
    page_next(context)
    local fields = read_fields(reply.number)
    return fields
  end
  if code ~= NO then fail() end
  return nil
end

local OPTIONS = {
  consumer = true, idle_ms = true, from = true, after = true, to = true, before = true, limit = true,
}
local OPTION_NAMES = "consumer, idle_ms, from, after, to, before, limit"
local NO_RANGE = {}

-- Loads the pending entries of a range. Called by the method, for the level of its errors.
local pending = native.group_pending
local function load_pending(self, range)
  if type(self) ~= "table" then error(NO_COLON, 3) end
  if range == nil then range = NO_RANGE end
  core.check_options(range, OPTIONS, "what is pending", OPTION_NAMES)
  local plan, low, high = core.id_range(range)
  local consumer, idle_ms, limit = range.consumer, range.idle_ms, range.limit
  if consumer ~= nil and type(consumer) ~= "string" then
    consumer = core.id_text(consumer, "a consumer's name", 3)
  end
  if idle_ms == nil then idle_ms = 0 else text.number(idle_ms, "idle_ms", 3) end
  if limit == nil then limit = huge else text.number(limit, "limit", 3) end
  local key, name = self.stream, self.key
  local code = pending(
    context, self.index, key, #key, name, #name, consumer or "", consumer and #consumer or -1,
    plan, low or "", low and #low or -1, high or "", high and #high or -1, idle_ms, limit
  )
  if code ~= YES then fail(4) end
end

function Group:pending(range)
  load_pending(self, range)
  local found, count = {}, 0
  while page_next(context) == YES do
    local id, consumer = ffi_string(reply.key, reply.key_len), ffi_string(reply.data, reply.data_len)
    local idle_ms = reply.number
    page_next(context)
    count = count + 1
    found[count] = { id = id, consumer = consumer, idle_ms = idle_ms, deliveries = reply.number }
  end
  return found
end

local summary = native.group_summary
function Group:summary()
  local key, name = self.stream, self.key
  if summary(context, self.index, key, #key, name, #name) ~= YES then fail() end
  local pending_count, last_id = reply.number, ffi_string(reply.data, reply.data_len)
  local consumers = {}
  while page_next(context) == YES do
    consumers[ffi_string(reply.key, reply.key_len)] = reply.number
  end
  return { pending = pending_count, last_id = last_id, consumers = consumers }
end
