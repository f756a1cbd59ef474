-- A set, as `tx.main:set("s")` returns it.

local core = ...

local native, text, INDEX = core.native, core.text, core.INDEX
local context, reply, ffi_string, fail = native.context, native.reply, native.string, native.fail
local key_text, element_text, NO_COLON = text.key, text.element, text.NO_COLON
local page_next = native.page_next
local type, error, select, setmetatable, rawget = type, error, select, setmetatable, rawget

local NO, YES = 0, 1

-- How several sets are combined, as in src/bridge/collections/set.rs.
local UNION, INTERSECTION, DIFFERENCE = 0, 1, 2

local Set = {}
local META = core.handles("set", Set, {
  class = "Set", name = "set", write = "write with set:add(member)",
})

function core.Database:set(key, value)
  if type(key) ~= "string" then key = key_text(key, self) end
  local index = self[INDEX]
  if index == nil then error(NO_COLON, 2) end
  if value ~= nil then
    error("db:set(key) is the set under a key; write a value with db:put(key, value)", 2)
  end
  return setmetatable({ index = index, key = key }, META)
end

local has = native.set_has
function Set:has(member)
  if type(member) ~= "string" then member = element_text(member, self, "a member") end
  local key = self.key
  local code = has(context, self.index, key, #key, member, #member)
  if code == YES then return true end
  if code ~= NO then fail() end
  return false
end

local count = native.set_count
function Set:count()
  local key = self.key
  if count(context, self.index, key, #key) ~= YES then fail() end
  return reply.number
end

local add = native.set_add
function Set:add(member)
  if type(member) ~= "string" then member = element_text(member, self, "a member") end
  local key = self.key
  local code = add(context, self.index, key, #key, member, #member)
  if code == YES then return true end
  if code ~= NO then fail() end
  return false
end

local remove = native.set_remove
function Set:remove(member)
  if type(member) ~= "string" then member = element_text(member, self, "a member") end
  local key = self.key
  local code = remove(context, self.index, key, #key, member, #member)
  if code == YES then return true end
  if code ~= NO then fail() end
  return false
end

local pop = native.set_pop
function Set:pop()
  local key = self.key
  local code = pop(context, self.index, key, #key)
  if code == YES then return ffi_string(reply.data, reply.data_len) end
  if code ~= NO then fail() end
  return nil
end

local random = native.set_random
function Set:random()
  local key = self.key
  local code = random(context, self.index, key, #key)
  if code == YES then return ffi_string(reply.data, reply.data_len) end
  if code ~= NO then fail() end
  return nil
end

-- Reads the next page, after the last member of the previous one; tells whether it has any members.
local page, PAGE_ENTRIES_MAX = native.set_page, core.PAGE_ENTRIES_MAX
local function load_page(state)
  if state.is_over then return false end
  local key, last, entries, code = state.key, state.last, state.entries, nil
  if last then
    code = page(context, state.index, key, #key, last, #last, entries)
  else
    code = page(context, state.index, key, #key, "", -1, entries)
  end
  -- The error level is that of the loop: fail, load_page, the iterator, the loop.
  if code ~= YES and code ~= NO then fail(4) end
  if entries < PAGE_ENTRIES_MAX then state.entries = entries * 2 end
  local members, loaded = {}, 0
  while page_next(context) == YES do
    loaded = loaded + 1
    members[loaded] = ffi_string(reply.key, reply.key_len)
  end
  state.is_over = code == NO
  state.members, state.loaded, state.last = members, loaded, members[loaded]
  return loaded > 0
end

local function next_member(state)
  local at = state.at + 1
  if at > state.loaded then
    if not load_page(state) then return nil end
    at = 1
  end
  state.at = at
  return state.members[at]
end

local PAGE_ENTRIES_FIRST = core.PAGE_ENTRIES_FIRST
function Set:scan()
  if type(self) ~= "table" then error(NO_COLON, 2) end
  return next_member, {
    index = self.index, key = self.key, last = false, is_over = false,
    entries = PAGE_ENTRIES_FIRST, members = false, loaded = 0, at = 0,
  }, nil
end

function Set:all()
  if type(self) ~= "table" then error(NO_COLON, 2) end
  local members, found = {}, 0
  for member in self:scan() do
    found = found + 1
    members[found] = member
  end
  return members
end

local many_begin, many_add, many_next = native.many_begin, native.many_add, native.many_next
local gather, set_combine, replace = native.set_gather, native.set_combine, native.set_replace

local function gather_one(other)
  local key = type(other) == "table" and rawget(other, "key")
  if type(key) ~= "string" then
    error("sets are combined with sets, as tx.main:set(key); this is " .. text.described(other), 4)
  end
  if gather(context, other.index, key, #key) ~= YES then fail(5) end
end

-- The members that an operation on several sets gives. Called by a method, for the level of its errors.
local function combine(operation, self, ...)
  if type(self) ~= "table" then error(NO_COLON, 3) end
  many_begin(context)
  gather_one(self)
  for i = 1, select("#", ...) do gather_one((select(i, ...))) end
  if set_combine(context, operation) ~= YES then fail(4) end
  local members = {}
  for i = 1, reply.number do
    many_next(context)
    members[i] = ffi_string(reply.data, reply.data_len)
  end
  return members
end

function Set:union(...)
  local members = combine(UNION, self, ...)
  return members
end

function Set:intersection(...)
  local members = combine(INTERSECTION, self, ...)
  return members
end

function Set:difference(...)
  local members = combine(DIFFERENCE, self, ...)
  return members
end

function Set:replace(members)
  if type(self) ~= "table" then error(NO_COLON, 2) end
  if type(members) ~= "table" then
    error("replace takes a table of members, this is " .. text.described(members), 2)
  end
  many_begin(context)
  for i = 1, #members do
    local member = members[i]
    if type(member) ~= "string" then member = element_text(member, self, "a member") end
    if many_add(context, member, #member) ~= YES then fail() end
  end
  local key = self.key
  if replace(context, self.index, key, #key) ~= YES then fail() end
  return reply.number
end
