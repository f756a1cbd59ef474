-- Cursors. A cursor knows its record by the key: if anything was written since, it looks again, and moves to
-- the next record if its own is gone.

local core = ...

local kyoto, native = core.kyoto, core.native
local context, reply = native.context, native.reply
local walk, xt_of, text_of = core.cabinet.walk, kyoto.xt_of, kyoto.text_of
local fail, missing, failed, invalid = kyoto.fail, kyoto.missing, kyoto.failed, kyoto.invalid
local new, step_walk = walk.new, walk.step
local new_unordered, step_unordered = walk.new_unordered, walk.step_unordered
local setmetatable, type, error, xpcall = setmetatable, type, error, xpcall

local INDEX, UNDO, NAME, engine_of = core.INDEX, kyoto.UNDO, kyoto.NAME, kyoto.engine_of
local YES, NO = 1, 0
local NOIMPL, INVALID = 1, 2

local Cursor = {}
local cursor_meta = { __index = Cursor }

local function new_cursor(db)
  return setmetatable({
    db_ = db, key_ = false, value_ = false, at_ms_ = -1, number_ = -1,
    walk_ = false, back_ = false, is_ordered_ = engine_of(db).is_ordered,
  }, cursor_meta)
end

-- Moves to the record that a walk is at next; tells whether there is one.
local function stand(self, key, value, at_ms)
  if key == nil then
    self.key_ = false
    return missing(self.db_)
  end
  self.key_, self.value_, self.at_ms_ = key, value, at_ms
  self.number_ = reply.ahead_number
  return true
end

local function begin(self, key, is_backward)
  if self.is_ordered_ then
    local begun = new(self.db_, key, true, is_backward)
    if is_backward then
      self.walk_, self.back_ = false, begun
    else
      self.walk_, self.back_ = begun, false
    end
    return stand(self, step_walk(begun))
  end
  local begun = new_unordered(self.db_, key, true)
  self.walk_ = begun
  return stand(self, step_unordered(begun))
end

-- Makes sure that what is known about the record is current; tells whether there is one.
local function look(self)
  if not self.key_ then return missing(self.db_) end
  if self.is_ordered_ then
    if self.number_ == reply.ahead_number then return true end
    local begun = new(self.db_, self.key_, true, false)
    self.walk_, self.back_ = begun, false
    return stand(self, step_walk(begun))
  end
  local db, key = self.db_, self.key_
  local code = engine_of(db).record(context, db[INDEX], key, #key)
  if code == NO then return stand(self, step_unordered(self.walk_)) end
  self.value_, self.at_ms_ = native.string(reply.data, reply.data_len), reply.expires_at_ms
  return true
end

-- Moves on from a record that `look` has checked.
local function move(self)
  if not self.is_ordered_ then return stand(self, step_unordered(self.walk_)) end
  local onward = self.walk_
  if not onward then
    onward = new(self.db_, self.key_, false, false)
    self.walk_, self.back_ = onward, false
  end
  return stand(self, step_walk(onward))
end

function Cursor.jump(self, key)
  if key ~= nil then
    key = text_of(key)
    if key == nil then return fail(self.db_, INVALID, "keys are strings or numbers") end
    -- The empty key comes before all others.
    if key == "" then key = nil end
  end
  if not self.is_ordered_ and key ~= nil and self.db_:check(key) < 0 then
    self.key_ = false
    return false
  end
  return begin(self, key, false)
end

function Cursor.jump_back(self, key)
  if not self.is_ordered_ then return fail(self.db_, NOIMPL, "not implemented") end
  if key ~= nil then
    key = text_of(key)
    if key == nil then return fail(self.db_, INVALID, "keys are strings or numbers") end
  end
  return begin(self, key, true)
end

function Cursor.step(self)
  return look(self) and move(self)
end

function Cursor.step_back(self)
  if not self.is_ordered_ then return fail(self.db_, NOIMPL, "not implemented") end
  -- A walk back from a record that is gone may just as well begin after it.
  if not self.key_ then return missing(self.db_) end
  local back = self.back_
  if not back then
    if not look(self) then return false end
    back = new(self.db_, self.key_, false, true)
    self.walk_, self.back_ = false, back
  end
  return stand(self, step_walk(back))
end

function Cursor.get(self, step)
  if not look(self) then return nil end
  local key, value, at_ms = self.key_, self.value_, self.at_ms_
  if step then move(self) end
  return key, value, xt_of(at_ms)
end

function Cursor.get_key(self, step)
  if not look(self) then return nil end
  local key = self.key_
  if step then move(self) end
  return key
end

function Cursor.get_value(self, step)
  if not look(self) then return nil end
  local value = self.value_
  if step then move(self) end
  return value
end

-- For a generic `for`: gives key and value, and steps on.
function cursor_meta.__call(self)
  if not look(self) then return nil end
  local key, value = self.key_, self.value_
  move(self)
  return key, value
end

-- Removes the record, and moves the cursor to the next one.
local function remove(self)
  local db, key = self.db_, self.key_
  local engine = engine_of(db)
  if db[UNDO] and not engine.remember(db, key) then return false end
  local code = engine.delete(context, db[INDEX], key, #key)
  if code ~= YES then return failed(db) end
  -- A cache is not part of the transaction, so nothing signals that it was written to.
  if not self.is_ordered_ then stand(self, step_unordered(self.walk_)) end
  return true
end

function Cursor.remove(self)
  return look(self) and remove(self)
end

function Cursor.seize(self)
  if not look(self) then return nil end
  local key, value, at_ms = self.key_, self.value_, self.at_ms_
  if not remove(self) then return nil end
  return key, value, xt_of(at_ms)
end

function Cursor.set_value(self, value, xt, step)
  value = text_of(value)
  if value == nil or value == "" then invalid("cur_set_value") end
  if not look(self) then return false end
  if not self.db_:set(self.key_, value, xt) then return false end
  if not self.is_ordered_ then self.value_ = value end
  if step and look(self) then move(self) end
  return true
end

function Cursor.accept(self, visitor, is_writable, step)
  if not kyoto.is_visitor(visitor) then invalid("cur_accept") end
  if not look(self) then return false end
  local key = self.key_
  local is_done =
    kyoto.visit(self.db_, key, self.value_, self.at_ms_, visitor, is_writable ~= false)
  -- Removing a record has moved the cursor on already.
  if step and look(self) and self.key_ == key then move(self) end
  return is_done
end

function Cursor.disable(self)
  self.key_, self.walk_, self.back_ = false, false, false
end

function Cursor.db(self) return self.db_ end
function Cursor.error(self) return self.db_:error() end

function cursor_meta.__tostring(self)
  return self.db_[NAME] .. ": " .. (self.key_ or "(none)")
end

-- `Cursor:new(db)`, as `db:cursor()`.
function Cursor.new(_, db)
  if type(db) ~= "table" or db[NAME] == nil then invalid("cur_new") end
  return new_cursor(db)
end
kyoto.Cursor = Cursor

local shared = kyoto.shared

function shared.cursor(self) return new_cursor(self) end

function shared.cursor_process(self, proc)
  if type(proc) ~= "function" then invalid("db_cursor_process") end
  local cursor = new_cursor(self)
  local ok, raised = xpcall(proc, core.keep_error, cursor)
  cursor:disable()
  if not ok then error(raised, 0) end
end

local function next_pair(walked)
  local key, value = step_walk(walked)
  return key, value
end

local function next_pair_unordered(walked)
  local key, value = step_unordered(walked)
  return key, value
end

function shared.pairs(self)
  if engine_of(self).is_ordered then return next_pair, new(self), nil end
  return next_pair_unordered, new_unordered(self), nil
end
