-- Functions that go through keys or records: the iterator of all scripts, prefixes, `_foreach` and `_mapreduce`; also `misc`.

local core = ...

local tyrant, cabinet, native = core.tyrant, core.cabinet, core.native
local context, reply, ffi_string = native.context, native.reply, native.string
local text_of, invalid, failed = cabinet.text_of, tyrant.invalid, tyrant.failed
local select, type, tonumber, tostring, pcall = select, type, tonumber, tostring, pcall
local floor = math.floor
local sort, sub = core.bounded.table.sort, string.sub

local db, INDEX = tyrant.db, core.INDEX
local YES, NO = 1, 0

local functions = tyrant.functions

local iterator_begin, iterator_next = native.iterator_begin, native.iterator_next
function functions._iterinit(...)
  if select("#", ...) ~= 0 then invalid("_iterinit") end
  return iterator_begin(context, db[INDEX]) == YES or failed()
end

function functions._iternext(...)
  if select("#", ...) ~= 0 then invalid("_iternext") end
  local code = iterator_next(context, db[INDEX])
  if code == YES then return ffi_string(reply.data, reply.data_len) end
  if code ~= NO then failed() end
  return nil
end

-- A Redis collection has a key, too.
function functions._fwmkeys(prefix, max)
  prefix = text_of(prefix)
  if prefix == nil then invalid("_fwmkeys") end
  max = tonumber(max) or -1
  max = max == max and max >= 0 and floor(max) or -1
  local keys, count, len = {}, 0, #prefix
  local handle = core.transaction:database(db[cabinet.NAME])
  local range = nil
  if tyrant.engine.is_ordered then range = { prefix = prefix } end
  for key in handle:keys(range) do
    if count == max then break end
    if sub(key, 1, len) == prefix then
      count = count + 1
      keys[count] = key
    end
  end
  return keys
end

local LEVEL_ERROR = 0

-- Calls a script's function for a record; an error in it is a line in the log, as in Tokyo Tyrant, and gives nil.
local function visit(run, ...)
  local ok, result = pcall(run, ...)
  if ok then return result end
  local line = "Lua error: " .. tostring(result)
  native.log(context, LEVEL_ERROR, line, #line)
  return nil
end
tyrant.visit = visit

function functions._foreach(...)
  local run = ...
  if select("#", ...) ~= 1 or type(run) ~= "function" then invalid("_foreach") end
  local step, walk = cabinet.records(db)
  for key, value in step, walk do
    if not visit(run, key, value) then break end
  end
  return true
end

-- The keys that an argument names: one key, or a list of keys.
local function listed(argument)
  if type(argument) ~= "table" then
    local key = text_of(argument)
    return key ~= nil and { key } or nil
  end
  local keys = {}
  for i = 1, #argument do keys[#keys + 1] = text_of(argument[i]) end
  return keys
end

-- The mapper fails with a result of false, the reducer with nil or false.
local MAP_FAILED = false

-- In memory. Keys are reduced in order, and values come in the order in which they were emitted.
function functions._mapreduce(map, reduce, keys)
  if type(map) ~= "function" or type(reduce) ~= "function" then invalid("_mapreduce") end
  local groups, order = {}, {}
  local function emit(...)
    local key, value = ...
    key, value = text_of(key), text_of(value)
    if select("#", ...) ~= 2 or key == nil or value == nil then invalid("_mapreducemapemit") end
    local group = groups[key]
    if not group then
      group = {}
      groups[key], order[#order + 1] = group, key
    end
    group[#group + 1] = value
    return true
  end
  local function mapped(key, value)
    local ok, result = pcall(map, key, value, emit)
    if ok then return result ~= MAP_FAILED end
    local line = "Lua error: " .. tostring(result)
    native.log(context, LEVEL_ERROR, line, #line)
    return false
  end
  keys = listed(keys)
  if keys then
    for i = 1, #keys do
      local value = functions._get(keys[i])
      if value and not mapped(keys[i], value) then return false end
    end
  else
    local step, walk = cabinet.records(db)
    for key, value in step, walk do
      if not mapped(key, value) then return false end
    end
  end
  sort(order)
  for i = 1, #order do
    if not visit(reduce, order[i], groups[order[i]]) then return false end
  end
  return true
end

local many_begin, many_add, many_next, misc = native.many_begin, native.many_add, native.many_next, native.tyrant_misc

local function add(argument)
  argument = text_of(argument)
  if argument ~= nil and many_add(context, argument, #argument) ~= YES then native.fail(4) end
end

-- The function gets the texts and numbers among the arguments, including those in lists. `$` before its name keeps it
-- out of an update log, which does not exist here.
function functions._misc(name, ...)
  name = text_of(name)
  if name == nil then invalid("_misc") end
  if sub(name, 1, 1) == "$" then name = sub(name, 2) end
  many_begin(context)
  for i = 1, select("#", ...) do
    local argument = (select(i, ...))
    if type(argument) == "table" then
      for j = 1, #argument do add(argument[j]) end
    else
      add(argument)
    end
  end
  local code = misc(context, name, #name)
  if code == NO then return nil end
  if code ~= YES then native.fail(3) end
  local results = {}
  for i = 1, reply.number do
    many_next(context)
    results[i] = ffi_string(reply.data, reply.data_len)
  end
  return results
end
