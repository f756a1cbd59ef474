-- A hash, as `tx.main:hash("h")` returns it. As for databases, each method is one native call, and errors
-- name the line in the procedure.

local core = ...

local native, text, INDEX = core.native, core.text, core.INDEX
local context, reply, ffi_string, fail = native.context, native.reply, native.string, native.fail
local key_text, value_text, element_text = text.key, text.value, text.element
local integer, NO_COLON = text.integer, text.NO_COLON
local page_next = native.page_next
local type, error, setmetatable = type, error, setmetatable

-- The codes of src/bridge/context.rs.
local NO, YES, WIDE = 0, 1, 2

local Hash = {}
local META = core.handles("hash", Hash, {
  class = "Hash", name = "hash", write = "write with hash:set(field, value)",
})

function core.Database:hash(key)
  if type(key) ~= "string" then key = key_text(key, self) end
  local index = self[INDEX]
  if index == nil then error(NO_COLON, 2) end
  return setmetatable({ index = index, key = key }, META)
end

local get = native.hash_get
function Hash:get(field)
  if type(field) ~= "string" then field = element_text(field, self, "a field") end
  local key = self.key
  local code = get(context, self.index, key, #key, field, #field)
  if code == YES then return ffi_string(reply.data, reply.data_len) end
  if code ~= NO then fail() end
  return nil
end

local has = native.hash_has
function Hash:has(field)
  if type(field) ~= "string" then field = element_text(field, self, "a field") end
  local key = self.key
  local code = has(context, self.index, key, #key, field, #field)
  if code == YES then return true end
  if code ~= NO then fail() end
  return false
end

local many_begin, many_add, many_next = native.many_begin, native.many_add, native.many_next
local get_many = native.hash_get_many
function Hash:get_many(fields)
  if type(self) ~= "table" then error(NO_COLON, 2) end
  if type(fields) ~= "table" then
    error("get_many takes a table of fields, this is " .. text.described(fields), 2)
  end
  many_begin(context)
  for i = 1, #fields do
    local field = fields[i]
    if type(field) ~= "string" then field = element_text(field, self, "a field") end
    if many_add(context, field, #field) ~= YES then fail() end
  end
  local key = self.key
  if get_many(context, self.index, key, #key) ~= YES then fail() end
  local found = {}
  for i = 1, #fields do
    if many_next(context) == YES then
      found[fields[i]] = ffi_string(reply.data, reply.data_len)
    end
  end
  return found
end

local count = native.hash_count
function Hash:count()
  local key = self.key
  if count(context, self.index, key, #key) ~= YES then fail() end
  return reply.number
end

local set = native.hash_set
function Hash:set(field, value)
  if type(field) ~= "string" then field = element_text(field, self, "a field") end
  if type(value) ~= "string" then value = value_text(value, self) end
  local key = self.key
  local code = set(context, self.index, key, #key, field, #field, value, #value)
  if code == YES then return true end
  if code ~= NO then fail() end
  return false
end

local add = native.hash_add
function Hash:add(field, value)
  if type(field) ~= "string" then field = element_text(field, self, "a field") end
  if type(value) ~= "string" then value = value_text(value, self) end
  local key = self.key
  local code = add(context, self.index, key, #key, field, #field, value, #value)
  if code == YES then return true end
  if code ~= NO then fail() end
  return false
end

local delete = native.hash_delete
function Hash:delete(field)
  if type(field) ~= "string" then field = element_text(field, self, "a field") end
  local key = self.key
  local code = delete(context, self.index, key, #key, field, #field)
  if code == YES then return true end
  if code ~= NO then fail() end
  return false
end

local increment = native.hash_increment
function Hash:increment(field, by)
  if type(self) ~= "table" then error(NO_COLON, 2) end
  if type(field) ~= "string" then field = element_text(field, self, "a field") end
  if by == nil then by = 1 else by = integer(by, "the increment") end
  local key = self.key
  local code = increment(context, self.index, key, #key, field, #field, by)
  if code == YES then return reply.number end
  if code ~= WIDE then fail() end
  return reply.integer
end

local increment_float = native.hash_increment_float
function Hash:increment_float(field, by)
  if type(self) ~= "table" then error(NO_COLON, 2) end
  if type(field) ~= "string" then field = element_text(field, self, "a field") end
  text.number(by, "the increment")
  local key = self.key
  if increment_float(context, self.index, key, #key, field, #field, by) ~= YES then fail() end
  return reply.number
end

local random = native.hash_random
function Hash:random()
  local key = self.key
  local code = random(context, self.index, key, #key)
  if code == YES then
    return ffi_string(reply.key, reply.key_len), ffi_string(reply.data, reply.data_len)
  end
  if code ~= NO then fail() end
  return nil
end

-- Reads the next page, after the last field of the previous one; tells whether it has any fields.
local page, PAGE_ENTRIES_MAX = native.hash_page, core.PAGE_ENTRIES_MAX
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
  local fields, values, loaded = {}, {}, 0
  while page_next(context) == YES do
    loaded = loaded + 1
    fields[loaded] = ffi_string(reply.key, reply.key_len)
    values[loaded] = ffi_string(reply.data, reply.data_len)
  end
  state.is_over = code == NO
  state.fields, state.values, state.loaded, state.last = fields, values, loaded, fields[loaded]
  return loaded > 0
end

local function next_field(state)
  local at = state.at + 1
  if at > state.loaded then
    if not load_page(state) then return nil end
    at = 1
  end
  state.at = at
  return state.fields[at], state.values[at]
end

local PAGE_ENTRIES_FIRST = core.PAGE_ENTRIES_FIRST
function Hash:scan()
  if type(self) ~= "table" then error(NO_COLON, 2) end
  return next_field, {
    index = self.index, key = self.key, last = false, is_over = false,
    entries = PAGE_ENTRIES_FIRST, fields = false, values = false, loaded = 0, at = 0,
  }, nil
end

function Hash:all()
  if type(self) ~= "table" then error(NO_COLON, 2) end
  local found = {}
  for field, value in self:scan() do found[field] = value end
  return found
end
