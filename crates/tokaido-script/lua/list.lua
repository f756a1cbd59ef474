-- A list, as `tx.main:list("l")` returns it. Positions begin with 1; negative ones count from the end.

local core = ...

local native, text, INDEX = core.native, core.text, core.INDEX
local context, reply, ffi_string, fail = native.context, native.reply, native.string, native.fail
local key_text, value_text, position_of = text.key, text.value, core.position
local page_next, NO_COLON = native.page_next, text.NO_COLON
local type, error, setmetatable = type, error, setmetatable

local NO, YES = 0, 1

-- The ends, as in src/bridge/collections/list.rs.
local LEFT, RIGHT = 0, 1

local List = {}
local META = core.handles("list", List, {
  class = "List", name = "list", write = "write with list:set(position, item)",
})

function core.Database:list(key)
  if type(key) ~= "string" then key = key_text(key, self) end
  local index = self[INDEX]
  if index == nil then error(NO_COLON, 2) end
  return setmetatable({ index = index, key = key }, META)
end

local count = native.list_count
function List:count()
  local key = self.key
  if count(context, self.index, key, #key) ~= YES then fail() end
  return reply.number
end

local get = native.list_get
function List:get(position)
  if type(self) ~= "table" then error(NO_COLON, 2) end
  position = position_of(position, "a position")
  local key = self.key
  local code = get(context, self.index, key, #key, position)
  if code == YES then return ffi_string(reply.data, reply.data_len) end
  if code ~= NO then fail() end
  return nil
end

local push = native.list_push
function List:push_left(item)
  if type(item) ~= "string" then item = value_text(item, self) end
  local key = self.key
  if push(context, self.index, key, #key, LEFT, item, #item) ~= YES then fail() end
  return reply.number
end

function List:push_right(item)
  if type(item) ~= "string" then item = value_text(item, self) end
  local key = self.key
  if push(context, self.index, key, #key, RIGHT, item, #item) ~= YES then fail() end
  return reply.number
end

local pop = native.list_pop
function List:pop_left()
  local key = self.key
  local code = pop(context, self.index, key, #key, LEFT)
  if code == YES then return ffi_string(reply.data, reply.data_len) end
  if code ~= NO then fail() end
  return nil
end

function List:pop_right()
  local key = self.key
  local code = pop(context, self.index, key, #key, RIGHT)
  if code == YES then return ffi_string(reply.data, reply.data_len) end
  if code ~= NO then fail() end
  return nil
end

local set = native.list_set
function List:set(position, item)
  if type(self) ~= "table" then error(NO_COLON, 2) end
  position = position_of(position, "a position")
  if type(item) ~= "string" then item = value_text(item, self) end
  local key = self.key
  local code = set(context, self.index, key, #key, position, item, #item)
  if code == YES then return true end
  if code ~= NO then fail() end
  return false
end

local insert = native.list_insert
function List:insert(position, item)
  if type(self) ~= "table" then error(NO_COLON, 2) end
  position = position_of(position, "a position")
  if type(item) ~= "string" then item = value_text(item, self) end
  local key = self.key
  local code = insert(context, self.index, key, #key, position, item, #item)
  if code == YES then return reply.number end
  if code ~= NO then fail() end
  return nil
end

local remove = native.list_remove
function List:remove(position)
  if type(self) ~= "table" then error(NO_COLON, 2) end
  position = position_of(position, "a position")
  local key = self.key
  local code = remove(context, self.index, key, #key, position)
  if code == YES then return ffi_string(reply.data, reply.data_len) end
  if code ~= NO then fail() end
  return nil
end

local trim = native.list_trim
function List:trim(first, last)
  if type(self) ~= "table" then error(NO_COLON, 2) end
  first, last = position_of(first, "a position"), position_of(last, "a position")
  local key = self.key
  if trim(context, self.index, key, #key, first, last) ~= YES then fail() end
end

local find = native.list_find
function List:find(item)
  if type(item) ~= "string" then item = value_text(item, self) end
  local key = self.key
  local code = find(context, self.index, key, #key, item, #item)
  if code == YES then return reply.number end
  if code ~= NO then fail() end
  return nil
end

-- Reads the next page, starting at the position `from`; tells whether it has anything.
local page, PAGE_ENTRIES_MAX = native.list_page, core.PAGE_ENTRIES_MAX
local function load_page(state)
  local key, from, to, entries = state.key, state.from, state.to, state.entries
  local step = state.step
  local left = (to - from) * step + 1
  if left <= 0 then return false end
  if entries > left then entries = left end
  local code = page(context, state.index, key, #key, from, from + (left - 1) * step, entries, step)
  -- The error level is that of the loop: fail, load_page, the iterator, the loop.
  if code ~= YES and code ~= NO then fail(4) end
  if entries < PAGE_ENTRIES_MAX then state.entries = entries * 2 end
  local items, loaded, first = {}, 0, reply.flags
  while page_next(context) == YES do
    loaded = loaded + 1
    items[loaded] = ffi_string(reply.key, reply.key_len)
  end
  state.items, state.loaded, state.first = items, loaded, first
  state.from = first + loaded * step
  return loaded > 0
end

local function next_item(state)
  local at = state.at + 1
  if at > state.loaded then
    if not load_page(state) then return nil end
    at = 1
  end
  state.at = at
  return state.first + (at - 1) * state.step, state.items[at]
end

local OPTIONS = { first = true, last = true, reverse = true }

-- Where a scan starts. Called by the method, for the level of its errors.
local range_of, PAGE_ENTRIES_FIRST = native.list_range, core.PAGE_ENTRIES_FIRST
local function begin(self, range)
  if type(self) ~= "table" then error(NO_COLON, 3) end
  local first, last, step = 1, -1, 1
  if range ~= nil then
    core.check_options(range, OPTIONS, "a list", "first, last, reverse")
    if range.first ~= nil then first = position_of(range.first, "first", 4) end
    if range.last ~= nil then last = position_of(range.last, "last", 4) end
    if range.reverse then step = -1 end
  end
  local key = self.key
  if range_of(context, self.index, key, #key, first, last) ~= YES then fail(4) end
  local from, to = reply.number, reply.flags
  if step < 0 then from, to = to, from end
  return {
    index = self.index, key = key, from = from, to = to, step = step,
    entries = PAGE_ENTRIES_FIRST, items = false, first = 0, loaded = 0, at = 0,
  }
end

function List:scan(range)
  local state = begin(self, range)
  return next_item, state, nil
end

function List:range(first, last)
  if type(self) ~= "table" then error(NO_COLON, 2) end
  first, last = position_of(first, "a position"), position_of(last, "a position")
  local items, count = {}, 0
  for _, item in self:scan { first = first, last = last } do
    count = count + 1
    items[count] = item
  end
  return items
end
