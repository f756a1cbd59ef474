-- Scans: `for key, value in db:scan{prefix = "a"} do`.
--
-- The iterator is a plain function over a table of fixed shape, and the key that the loop passes
-- back is the cursor. So the loop compiles, nothing leaks when it is left early, and it may write:
-- then what was read ahead is read again.

local core = ...

local native, text, Database = core.native, core.text, core.Database
local context, reply, ffi_string, fail = native.context, native.reply, native.string, native.fail
local type, pairs, error, tostring = type, pairs, error, tostring
local scan_ahead, ffi_cast = native.scan_ahead, core.ffi.cast

local INDEX, OURS, getmetatable = core.INDEX, core.OURS, getmetatable
local YES, NO = 1, 0

-- The bits of a plan, as in src/bridge/scan.rs; the database's index is below them.
local BACKWARD = 0x8000
local FROM_GIVEN, FROM_INCLUDED = 0x10000, 0x20000
local FAR_GIVEN, FAR_INCLUDED = 0x40000, 0x80000
local KEYS_ONLY = 0x100000

-- Each entry that was read ahead is preceded by the lengths of its key and its value.
local lens_type = core.ffi.typeof "const int32_t *"
local LENS_SIZE = 8

-- Maximum number of entries that are read ahead, and the initial number for a scan.
local AHEAD_RECORDS_MAX, AHEAD_RECORDS_FIRST = 64, 2

-- Reads entries ahead, from the one after `last` or from the first one; tells whether there are any.
-- A loop that has used up its entries gets twice as many; one that writes, or has another loop in
-- it, gets one at a time.
local function read_ahead(state, last)
  local records = 1
  if state.unread == 0 and state.number == reply.ahead_number then
    records = state.records * 2
    if records > AHEAD_RECORDS_MAX then records = AHEAD_RECORDS_MAX end
  end
  local left, far, code = state.left, state.far, nil
  if left and records > left then records = left end
  if last then
    code = scan_ahead(context, state.plan, last, #last, far, #far, records)
  else
    local from = state.from
    code = scan_ahead(context, state.first_plan, from, #from, far, #far, records)
  end
  -- The error level is that of the loop: fail, read_ahead, advance, the iterator, the loop.
  if code ~= YES and code ~= NO then fail(5) end
  local unread = code == YES and reply.number or 0
  state.number, state.records, state.at = reply.ahead_number, records, 0
  state.unread = unread
  return code == YES
end

-- Moves to the entry after `last`, or to the first one; tells whether there is one.
local function advance(state, last)
  local left = state.left
  if left and left <= 0 then return false end
  if state.unread == 0 or state.number ~= reply.ahead_number or state.last ~= last then
    if not read_ahead(state, last) then return false end
  end
  if left then state.left = left - 1 end
  state.unread = state.unread - 1
  return true
end

-- The lengths of the key and the value at a place in what was read ahead. The state is an ordinary
-- table, so a program may have changed the place: it must not lead to other memory. It may also have
-- a metatable, so that reading or writing a field may run another scan, which frees what was read
-- ahead: between this check and the copies of key and value the state is not touched.
local function lens_at(place)
  local len = reply.ahead_len
  -- An int64_t, which wraps around, is not a place.
  if type(place) == "number" and place >= 0 and place + LENS_SIZE <= len then
    local lens = ffi_cast(lens_type, reply.ahead + place)
    local key_len, value_len = lens[0], lens[1]
    if key_len >= 0 and value_len >= 0 and place + LENS_SIZE + key_len + value_len <= len then
      return key_len, value_len
    end
  end
  error("the state of a scan belongs to the scan and cannot be changed", 3)
end

local function next_entry(state, last)
  if not advance(state, last) then return nil end
  local place = state.at
  local key_len, value_len = lens_at(place)
  local at = reply.ahead + place + LENS_SIZE
  local key, value = ffi_string(at, key_len), ffi_string(at + key_len, value_len)
  state.at, state.last = place + LENS_SIZE + key_len + value_len, key
  return key, value
end

local function next_key(state, last)
  if not advance(state, last) then return nil end
  local place = state.at
  local key_len = lens_at(place)
  local key = ffi_string(reply.ahead + place + LENS_SIZE, key_len)
  state.at, state.last = place + LENS_SIZE + key_len, key
  return key
end

local function no_entry()
  return nil
end

-- The first key after all that start with `prefix`; nil if there is none.
local function prefix_end(prefix)
  for i = #prefix, 1, -1 do
    local byte = prefix:byte(i)
    if byte < 255 then return prefix:sub(1, i - 1) .. string.char(byte + 1) end
  end
  return nil
end

local OPTIONS = {
  prefix = true, from = true, after = true, to = true, before = true, reverse = true, limit = true,
}

local function option_key(range, name)
  local key = range[name]
  if key == nil then return nil end
  local bytes = text.bytes_of(key, 6)
  if bytes then return bytes end
  error(name .. " is a string or a number, this is " .. text.described(key), 6)
end

-- The tighter of two bounds; `key` wins where `is_tighter` says so, or by excluding the same key.
local function tighten(bound, included, key, key_included, is_low)
  if key == nil then return bound, included end
  if bound == nil then return key, key_included end
  if key == bound then return bound, included and key_included end
  if (key > bound) == is_low then return key, key_included end
  return bound, included
end

local function bounds(range)
  local low, low_included, high, high_included
  local prefix = option_key(range, "prefix")
  if prefix and prefix ~= "" then
    low, low_included = prefix, true
    high, high_included = prefix_end(prefix), false
  end
  low, low_included = tighten(low, low_included, option_key(range, "from"), true, true)
  low, low_included = tighten(low, low_included, option_key(range, "after"), false, true)
  high, high_included = tighten(high, high_included, option_key(range, "to"), true, false)
  high, high_included = tighten(high, high_included, option_key(range, "before"), false, false)
  -- The empty key comes before all others, and the store would not take it as a bound.
  if low == "" then low = nil end
  return low, low_included, high, high_included
end

local function check_options(range)
  for name in pairs(range) do
    if not OPTIONS[name] then
      error("a scan has no option '" .. tostring(name)
        .. "'; there are prefix, from, after, to, before, reverse, limit", 5)
    end
  end
  if range.limit ~= nil then text.number(range.limit, "limit", 5) end
end

-- The options and bounds of a range. Called by a function that the method calls, for the level of
-- its errors.
local function read_range(self, range)
  if range == nil then
    range = {}
  elseif type(range) == "string" or type(range) == "number" then
    range = { prefix = range }
  elseif type(range) ~= "table" then
    error("a scan takes a prefix or a table, this is " .. text.described(range), 4)
  end
  check_options(range)
  if getmetatable(self) ~= OURS then
    error("call a database's methods with a colon, as in db:scan()", 4)
  end
  return range, bounds(range)
end
core.read_range = read_range

-- Where a scan starts, or nil if it is known to be empty.
local function begin(self, range, flags)
  local low, low_included, high, high_included
  range, low, low_included, high, high_included = read_range(self, range)
  if self[INDEX] < 0 or high == "" then return nil end
  local plan = self[INDEX] + flags
  local from, from_included, far, far_included = low, low_included, high, high_included
  if range.reverse then
    plan = plan + BACKWARD
    from, from_included, far, far_included = high, high_included, low, low_included
  end
  if far then plan = plan + FAR_GIVEN + (far_included and FAR_INCLUDED or 0) end
  local first_plan = plan
  if from then first_plan = plan + FROM_GIVEN + (from_included and FROM_INCLUDED or 0) end
  return {
    plan = plan + FROM_GIVEN,
    first_plan = first_plan,
    from = from or "",
    far = far or "",
    left = range.limit or false,
    last = nil,
    records = AHEAD_RECORDS_FIRST,
    unread = 0,
    at = 0,
    number = reply.ahead_number,
  }
end

function Database:scan(range)
  local state = begin(self, range, 0)
  if state == nil then return no_entry end
  return next_entry, state, nil
end

function Database:keys(range)
  local state = begin(self, range, KEYS_ONLY)
  if state == nil then return no_entry end
  return next_key, state, nil
end
