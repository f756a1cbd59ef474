-- Scans: `for key, value in db:scan{prefix = "a"} do`.
--
-- The iterator is a plain function over a table of fixed shape, and the key that the loop passes
-- back is the cursor. So the loop compiles, nothing leaks when it is left early, and it may write.

local core = ...

local native, text, Database = core.native, core.text, core.Database
local context, reply, ffi_string, fail = native.context, native.reply, native.string, native.fail
local type, pairs, error, tostring = type, pairs, error, tostring
local seek = native.seek

local YES, NO = 1, 0

-- The bits of a plan, as in src/bridge/scan.rs; the database's index is below them.
local BACKWARD = 0x200
local FROM_GIVEN, FROM_INCLUDED = 0x400, 0x800
local FAR_GIVEN, FAR_INCLUDED = 0x1000, 0x2000

-- Moves to the entry after `last`, or to the first one; tells whether there is one.
local function advance(state, last)
  local left = state.left
  if left then
    if left <= 0 then return false end
    state.left = left - 1
  end
  local far = state.far
  local code
  if last then
    code = seek(context, state.plan, last, #last, far, #far)
  else
    local from = state.from
    code = seek(context, state.first_plan, from, #from, far, #far)
  end
  if code == YES then return true end
  -- The level is that of the loop: fail, advance, the iterator, the loop.
  if code ~= NO then fail(4) end
  return false
end

local function next_entry(state, last)
  if not advance(state, last) then return nil end
  return ffi_string(reply.key, reply.key_len), ffi_string(reply.data, reply.data_len)
end

local function next_key(state, last)
  if not advance(state, last) then return nil end
  return ffi_string(reply.key, reply.key_len)
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
  -- The empty key is before all others, and no key that the store would take as a bound.
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
  if type(self) ~= "table" or type(self.index) ~= "number" then
    error("call a database's methods with a colon, as in db:scan()", 4)
  end
  return range, bounds(range)
end
core.read_range = read_range

-- What a scan starts from, or nil if it is known to be empty.
local function begin(self, range)
  local low, low_included, high, high_included
  range, low, low_included, high, high_included = read_range(self, range)
  if self.index < 0 or high == "" then return nil end
  local plan = self.index
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
  }
end

function Database:scan(range)
  local state = begin(self, range)
  if state == nil then return no_entry end
  return next_entry, state, nil
end

function Database:keys(range)
  local state = begin(self, range)
  if state == nil then return no_entry end
  return next_key, state, nil
end
