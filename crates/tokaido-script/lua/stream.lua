-- A stream, as `tx.main:stream("s")` returns it.

local core = ...

local native, text, INDEX = core.native, core.text, core.INDEX
local context, reply, ffi_string, fail = native.context, native.reply, native.string, native.fail
local key_text, element_text, NO_COLON = text.key, text.element, text.NO_COLON
local many_begin, many_add, page_next = native.many_begin, native.many_add, native.page_next
local type, error, pairs, tostring, setmetatable = type, error, pairs, tostring, setmetatable
local floor, huge = math.floor, math.huge

local NO, YES = 0, 1

-- The bits of a plan, as in src/bridge/collections/stream.rs.
local BACKWARD, LOW_EXCLUDED, HIGH_EXCLUDED = 1, 2, 4

local Stream = {}
local META = core.handles("stream", Stream, {
  class = "Stream", name = "stream", write = "write with stream:add {field = value}",
})

function core.Database:stream(key, value)
  if type(key) ~= "string" then key = key_text(key, self) end
  local index = self[INDEX]
  if index == nil then error(NO_COLON, 2) end
  if value ~= nil then
    error("db:stream(key) is the stream under a key; write a value with db:put(key, value)", 2)
  end
  return setmetatable({ index = index, key = key }, META)
end

-- An id, or another text, as bytes.
local function id_text(id, what, level)
  local bytes = text.bytes_of(id, level + 1)
  if bytes then return bytes end
  error(what .. " is a string or a number, this one is " .. text.described(id), level + 1)
end
core.id_text = id_text

-- Reads that many fields of an entry from the page.
local function read_fields(count)
  local fields = {}
  for _ = 1, count do
    page_next(context)
    fields[ffi_string(reply.key, reply.key_len)] = ffi_string(reply.data, reply.data_len)
  end
  return fields
end
core.read_fields = read_fields

local count = native.stream_count
function Stream:count()
  local key = self.key
  if count(context, self.index, key, #key) ~= YES then fail() end
  return reply.number
end

local last_id = native.stream_last_id
function Stream:last_id()
  local key = self.key
  local code = last_id(context, self.index, key, #key)
  if code == YES then return ffi_string(reply.data, reply.data_len) end
  if code ~= NO then fail() end
  return nil
end

local get = native.stream_get
function Stream:get(id)
  if type(id) ~= "string" then id = element_text(id, self, "an id") end
  local key = self.key
  local code = get(context, self.index, key, #key, id, #id)
  if code == YES then
    page_next(context)
    local fields = read_fields(reply.number)
    return fields
  end
  if code ~= NO then fail() end
  return nil
end

-- Refuses unknown options. Called by the method.
local function check_named(options, names, shown)
  if type(options) ~= "table" then
    error("options are a table, as {max_count = 1000}, this is " .. text.described(options), 3)
  end
  for name in pairs(options) do
    if not names[name] then
      error("there is no option '" .. tostring(name) .. "'; there are " .. shown, 3)
    end
  end
end

-- What a trim is to keep of a stream. Called by the method.
local function read_trim(options)
  local max_count, min_id = options.max_count, options.min_id
  if max_count == nil then
    max_count = huge
  elseif type(max_count) ~= "number" or max_count < 0 or max_count ~= floor(max_count) then
    error("max_count is an integer from 0 up, this is " .. text.shown(max_count), 3)
  end
  if min_id ~= nil then min_id = id_text(min_id, "min_id", 3) end
  return max_count, min_id or ""
end

-- Deletes the excess, in parts. Called by the method.
local trim = native.stream_trim
local function trim_to(self, max_count, min_id)
  local key, trimmed, code = self.key, 0, YES
  local min_id_len = min_id == "" and -1 or #min_id
  while code == YES do
    code = trim(context, self.index, key, #key, max_count, min_id, min_id_len)
    if code ~= YES and code ~= NO then fail(4) end
    trimmed = trimmed + reply.number
  end
  return trimmed
end

local TRIM_OPTIONS = { max_count = true, min_id = true }
function Stream:trim(options)
  if type(self) ~= "table" then error(NO_COLON, 2) end
  check_named(options, TRIM_OPTIONS, "max_count, min_id")
  local max_count, min_id = read_trim(options)
  local trimmed = trim_to(self, max_count, min_id)
  return trimmed
end

-- Gathers the fields of an entry. Called by the method.
local function gather(fields)
  if type(fields) ~= "table" then
    error("an entry is a table, as {field = value}, this is " .. text.described(fields), 3)
  end
  many_begin(context)
  local is_empty = true
  for field, value in pairs(fields) do
    is_empty = false
    if type(field) ~= "string" then field = id_text(field, "a field", 3) end
    if type(value) ~= "string" then value = id_text(value, "a value", 3) end
    if many_add(context, field, #field) ~= YES then fail(4) end
    if many_add(context, value, #value) ~= YES then fail(4) end
  end
  if is_empty then error("an entry has one field or more", 3) end
end

local add = native.stream_add
local ADD_OPTIONS = { id = true, max_count = true, min_id = true }
function Stream:add(fields, options)
  if type(self) ~= "table" then error(NO_COLON, 2) end
  local key, index = self.key, self.index
  if options == nil then
    gather(fields)
    if add(context, index, key, #key, "", -1) ~= YES then fail() end
    return ffi_string(reply.data, reply.data_len)
  end
  check_named(options, ADD_OPTIONS, "id, max_count, min_id")
  local id = options.id
  local max_count, min_id = read_trim(options)
  if id ~= nil and type(id) ~= "string" then id = element_text(id, self, "an id") end
  -- Last, because reading an option may run a function, which may gather fields, too.
  gather(fields)
  if add(context, index, key, #key, id or "", id and #id or -1) ~= YES then fail() end
  id = ffi_string(reply.data, reply.data_len)
  if max_count < huge or min_id ~= "" then trim_to(self, max_count, min_id) end
  return id
end

local delete = native.stream_delete
function Stream:delete(id)
  if type(id) ~= "string" then id = element_text(id, self, "an id") end
  local key = self.key
  local code = delete(context, self.index, key, #key, id, #id)
  if code == YES then return true end
  if code ~= NO then fail() end
  return false
end

-- Whichever of two ends is given, as bytes, and whether it is itself excluded.
local function end_of(included, excluded, names)
  if included ~= nil and excluded ~= nil then
    error("a range of a stream has " .. names .. ", not both", 5)
  end
  local id = included
  if id == nil then id = excluded end
  if id ~= nil and type(id) ~= "string" then id = id_text(id, "an id", 5) end
  return id or false, excluded ~= nil
end

-- The plan and the two ends of a range, each false if it is open. Called by a function that the method
-- calls.
function core.id_range(range)
  local low, low_excluded = end_of(range.from, range.after, "from or after")
  local high, high_excluded = end_of(range.to, range.before, "to or before")
  local plan = (range.reverse and BACKWARD or 0)
    + (low_excluded and LOW_EXCLUDED or 0) + (high_excluded and HIGH_EXCLUDED or 0)
  return plan, low, high
end

-- Reads the next page; tells whether it has anything. The last id becomes the excluded start of the rest.
local page, PAGE_ENTRIES_MAX = native.stream_page, core.PAGE_ENTRIES_MAX
local function load_page(state)
  local entries = state.entries
  if entries < PAGE_ENTRIES_MAX then state.entries = entries * 2 end
  if state.left < entries then entries = state.left end
  if state.is_over or entries <= 0 then return false end
  local key, low, high = state.key, state.low, state.high
  local low_len, high_len = low and #low or -1, high and #high or -1
  local code = page(
    context, state.index, key, #key, state.plan, low or "", low_len, high or "", high_len, entries
  )
  -- The error level is that of the loop: fail, load_page, the iterator, the loop.
  if code ~= YES and code ~= NO then fail(4) end
  local ids, loaded_fields, loaded = {}, {}, 0
  while page_next(context) == YES do
    loaded = loaded + 1
    ids[loaded] = ffi_string(reply.key, reply.key_len)
    loaded_fields[loaded] = read_fields(reply.number)
  end
  state.ids, state.fields, state.loaded = ids, loaded_fields, loaded
  state.left, state.is_over = state.left - loaded, code == NO
  if loaded > 0 then
    if state.is_backward then
      state.high, state.plan = ids[loaded], state.backward_plan
    else
      state.low, state.plan = ids[loaded], state.forward_plan
    end
  end
  return loaded > 0
end

local function next_entry(state)
  local at = state.at + 1
  if at > state.loaded then
    if not load_page(state) then return nil end
    at = 1
  end
  state.at = at
  return state.ids[at], state.fields[at]
end

local RANGE_OPTIONS = {
  from = true, after = true, to = true, before = true, reverse = true, limit = true,
}
local RANGE_NAMES = "from, after, to, before, reverse, limit"
local NO_RANGE = {}

-- Where a scan starts. Called by the method, for the level of its errors.
local PAGE_ENTRIES_FIRST = core.PAGE_ENTRIES_FIRST
local function begin(self, range)
  if type(self) ~= "table" then error(NO_COLON, 3) end
  if range == nil then range = NO_RANGE end
  core.check_options(range, RANGE_OPTIONS, "a stream", RANGE_NAMES)
  local plan, low, high = core.id_range(range)
  local limit = range.limit
  if limit == nil then limit = huge else text.number(limit, "limit", 3) end
  local low_excluded = range.after ~= nil and LOW_EXCLUDED or 0
  local high_excluded = range.before ~= nil and HIGH_EXCLUDED or 0
  return {
    index = self.index, key = self.key, plan = plan, low = low, high = high, left = limit,
    is_backward = range.reverse and true or false,
    forward_plan = LOW_EXCLUDED + high_excluded, backward_plan = BACKWARD + low_excluded + HIGH_EXCLUDED,
    is_over = false, entries = PAGE_ENTRIES_FIRST, ids = false, fields = false, loaded = 0, at = 0,
  }
end

function Stream:scan(range)
  local state = begin(self, range)
  return next_entry, state, nil
end
