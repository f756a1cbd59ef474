-- Scans of databases whose keys have no order: caches and constant databases. They are read page by
-- page, and keys outside the range are skipped.

local core = ...

local native, read_range = core.native, core.read_range
local context, reply, ffi_string, fail = native.context, native.reply, native.string, native.fail
local page_load, page_next = native.page_load, native.page_next
local error = error

local INDEX = core.INDEX
local YES, NO = 1, 0

-- Number of records requested at a time.
local PAGE_RECORDS = 100

local function is_within(key, low, low_included, high, high_included)
  if low and (key < low or key == low and not low_included) then return false end
  if high and (key > high or key == high and not high_included) then return false end
  return true
end

-- Fetches the next page that has something in the range; tells whether there is one. A program may
-- give the state a metatable, so that reading or writing a field may load another page: as long as
-- there is something to take from this page, the state is not touched.
local function load_page(state)
  local keys, values, count, with_values = {}, {}, 0, state.with_values
  local low, low_included = state.low, state.low_included
  local high, high_included = state.high, state.high_included
  while count == 0 do
    if state.is_over then return false end
    local code = page_load(context, state.index, state.cursor, PAGE_RECORDS, with_values and YES or NO)
    -- The error level is that of the loop: fail, load_page, advance, the iterator, the loop.
    if code ~= YES and code ~= NO then fail(5) end
    local cursor = reply.number
    while page_next(context) == YES do
      local key, value = ffi_string(reply.key, reply.key_len), nil
      if with_values then value = ffi_string(reply.data, reply.data_len) end
      if is_within(key, low, low_included, high, high_included) then
        count = count + 1
        keys[count], values[count] = key, value
      end
    end
    state.is_over, state.cursor = code == NO, cursor
  end
  state.keys, state.values, state.count, state.at = keys, values, count, 0
  return true
end

local function advance(state)
  if state.left <= 0 then return nil end
  if state.at == state.count and not load_page(state) then return nil end
  state.left = state.left - 1
  local at = state.at + 1
  state.at = at
  return at
end

local function next_entry(state)
  local at = advance(state)
  if not at then return nil end
  return state.keys[at], state.values[at]
end

local function next_key(state)
  local at = advance(state)
  if not at then return nil end
  return state.keys[at]
end

local function begin(self, range, with_values)
  local low, low_included, high, high_included
  range, low, low_included, high, high_included = read_range(self, range)
  if range.reverse then
    error(tostring(self) .. " has no order of keys, so it cannot be scanned in reverse", 3)
  end
  return {
    index = self[INDEX], cursor = 0, is_over = false, with_values = with_values,
    keys = {}, values = {}, count = 0, at = 0,
    low = low or false, low_included = low_included or false,
    high = high or false, high_included = high_included or false,
    left = range.limit or math.huge,
  }
end

for _, class in ipairs { core.Cache, core.Cdb } do
  function class:scan(range)
    return next_entry, begin(self, range, true), nil
  end

  function class:keys(range)
    return next_key, begin(self, range, false), nil
  end
end
