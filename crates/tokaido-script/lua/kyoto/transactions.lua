-- Transactions of one database within the call, which is itself a transaction: the old value under each key
-- is saved, and restored if the transaction is aborted.

local core = ...

local kyoto, native = core.kyoto, core.native
local context = native.context
local fail, failed, invalid = kyoto.fail, kyoto.failed, kyoto.invalid
local pairs, type, error, xpcall = pairs, type, error, xpcall

local INDEX, UNDO, engine_of = core.INDEX, kyoto.UNDO, kyoto.engine_of
local NO, YES, ALWAYS = 0, 1, 0
local INVALID, LOGIC = 2, 8

local shared = kyoto.shared

function shared.begin_transaction(self)
  if self[UNDO] then return fail(self, LOGIC, "competition avoided") end
  self[UNDO] = {}
  return true
end

-- Restores everything; an error of the store ends the call, since a partial restore is not allowed.
local function give_up(self)
  local undo, engine = self[UNDO], engine_of(self)
  self[UNDO] = false
  for key, old in pairs(undo) do
    local code
    if old then
      local value = old.value
      code = engine.put_with(
        context, self[INDEX], key, #key, value, #value, old.flags, old.at_ms, ALWAYS)
    else
      code = engine.delete(context, self[INDEX], key, #key)
    end
    if code ~= YES and code ~= NO then native.fail(4) end
  end
end
kyoto.give_up = give_up

function shared.end_transaction(self, is_commit)
  if not self[UNDO] then return fail(self, INVALID, "not in transaction") end
  if is_commit == nil or is_commit then
    self[UNDO] = false
  else
    give_up(self)
  end
  return true
end

function shared.transaction(self, run, is_hard)
  if type(run) ~= "function" then invalid("db_transaction") end
  if not self:begin_transaction(is_hard) then return false end
  local ok, result = xpcall(run, core.keep_error)
  local is_ended = self:end_transaction(ok and result and true or false)
  if not ok then error(result, 0) end
  return is_ended
end

-- Deletes the records that can be restored; Redis collections cannot, and stay.
local function clear_within(self)
  local engine = engine_of(self)
  local step, walk = core.cabinet.records(self)
  for key in step, walk do
    if not engine.remember(self, key) then return false end
  end
  for key in pairs(self[UNDO]) do
    local code = engine.delete(context, self[INDEX], key, #key)
    if code ~= YES and code ~= NO then return failed(self) end
  end
  return true
end

function shared.clear(self)
  if self[UNDO] then return clear_within(self) end
  if engine_of(self).clear(context, self[INDEX]) ~= YES then return failed(self) end
  return true
end
