-- Steps over records with their expiry, in the order of keys and against it. What was read ahead is used until
-- something is written or read ahead again, as in lua/scan.lua.
--
-- Databases are tables of the dialect, with the index and the name of a database. `cabinet.engine_of` gives the engine
-- behind one, and `cabinet.failed` handles a native function that has failed.

local core = ...

local cabinet, native = core.cabinet, core.native
local context, reply, ffi_string = native.context, native.reply, native.string
local scan_ahead, ffi_cast = native.scan_ahead, core.ffi.cast
local failed, error, type = cabinet.failed, error, type

local INDEX, NAME, engine_of = core.INDEX, cabinet.NAME, cabinet.engine_of
local YES, NO, WIDE = 1, 0, 2

-- The bits of a plan, as in src/bridge/scan.rs.
local BACKWARD = 0x8000
local FROM_GIVEN, FROM_INCLUDED = 0x10000, 0x20000
local WITH_EXPIRY = 0x200000

local head_type = core.ffi.typeof "const struct __attribute__((packed)) { int32_t key_len; int32_t value_len; double at_ms; } *"
local HEAD_SIZE = 16

local AHEAD_RECORDS_MAX, AHEAD_RECORDS_FIRST = 64, 2

-- A walk begins at a key if that is included, else after it; without a key, at the first record.
local function new(self, from, is_included, is_backward)
  local plan = self[INDEX] + WITH_EXPIRY + (is_backward and BACKWARD or 0)
  return {
    db = self, plan = plan, is_included = from ~= nil and is_included or false,
    has_from = from ~= nil, last = from or "", records = AHEAD_RECORDS_FIRST, unread = 0, at = 0,
    number = reply.ahead_number,
  }
end

local function read_ahead(walk)
  local records = AHEAD_RECORDS_FIRST
  if walk.unread == 0 and walk.number == reply.ahead_number then
    records = walk.records * 2
    if records > AHEAD_RECORDS_MAX then records = AHEAD_RECORDS_MAX end
  end
  local db, plan, last = walk.db, walk.plan, walk.last
  if walk.has_from then plan = plan + FROM_GIVEN end
  if walk.is_included then plan = plan + FROM_INCLUDED end
  local code = scan_ahead(context, plan, last, #last, "", 0, records)
  if code ~= YES and code ~= NO then failed(db) end
  local unread = code == YES and reply.number or 0
  walk.number, walk.records, walk.at, walk.unread = reply.ahead_number, records, 0, unread
  return code == YES
end

-- The next record: key, value and expiry in ms; nil at the end. As in lua/scan.lua, reading or writing a field of
-- the walk may run another walk, so no field is touched between the checks and the copies.
local step
function step(walk)
  if walk.unread == 0 or walk.number ~= reply.ahead_number then
    if not read_ahead(walk) then return nil end
  end
  local unread, place = walk.unread, walk.at
  local len = reply.ahead_len
  -- A program may have changed the place: it must not lead to other memory.
  if type(place) ~= "number" or not (place >= 0 and place + HEAD_SIZE <= len) then
    error("the state of a cursor belongs to the cursor and cannot be changed", 3)
  end
  local at = reply.ahead + place
  local head = ffi_cast(head_type, at)
  local key_len, value_len, at_ms = head.key_len, head.value_len, head.at_ms
  if key_len < 0 or value_len < 0 or place + HEAD_SIZE + key_len + value_len > len then
    error("the state of a cursor belongs to the cursor and cannot be changed", 3)
  end
  at = at + HEAD_SIZE
  local key, value = ffi_string(at, key_len), ffi_string(at + key_len, value_len)
  walk.at, walk.unread = place + HEAD_SIZE + key_len + value_len, unread - 1
  walk.last, walk.has_from, walk.is_included = key, true, false
  -- A collection, which does not count as a record here.
  if at_ms ~= at_ms then return step(walk) end
  return key, value, at_ms
end

-- For unordered databases: keys come page by page, and each record is looked up.
local function step_unordered(walk)
  local db = walk.db
  local key = walk.next(walk.state, walk.last)
  while key do
    walk.last = key
    local code = engine_of(db).record(context, db[INDEX], key, #key)
    if code == YES or code == WIDE then
      return key, ffi_string(reply.data, reply.data_len), reply.expires_at_ms
    end
    key = walk.next(walk.state, key)
  end
  return nil
end

local function new_unordered(self, from, is_included)
  local handle = core.transaction:database(self[NAME])
  local next_key, state = handle:keys()
  local walk = { db = self, next = next_key, state = state, last = nil }
  -- A position exists only at an existing key.
  while from ~= nil do
    local key = next_key(state, walk.last)
    if key == nil then break end
    if key == from then
      if is_included then walk.next, walk.state = cabinet.with_first(key, next_key), state end
      walk.last = key
      break
    end
    walk.last = key
  end
  return walk
end

-- The steps of an iterator, preceded by one.
function cabinet.with_first(first, next_key)
  return function(state, last)
    local key = first
    if key == nil then return next_key(state, last) end
    first = nil
    return key
  end
end

cabinet.walk = { new = new, step = step, new_unordered = new_unordered, step_unordered = step_unordered }

-- Iterates over key, value and expiry in ms of every record, for a loop.
function cabinet.records(self)
  if engine_of(self).is_ordered then return step, new(self) end
  return step_unordered, new_unordered(self)
end
