-- The stash and the locks, which the scripts of all threads share. Neither is part of the transaction.

local core = ...

local tyrant, cabinet, native = core.tyrant, core.cabinet, core.native
local context, reply, ffi_string = native.context, native.reply, native.string
local text_of, invalid = cabinet.text_of, tyrant.invalid
local select, type = select, type

local YES = 1
-- As in src/bridge/tyrant.rs.
local REPLACE, KEEP, APPEND = 0, 1, 2

local functions = tyrant.functions

local stash_put, stash_out, stash_get = native.stash_put, native.stash_out, native.stash_get

function functions._stashput(...)
  local key, value = ...
  key, value = text_of(key), text_of(value)
  if select("#", ...) ~= 2 or key == nil or value == nil then invalid("_stashput") end
  if stash_put(context, key, #key, value, #value, REPLACE) ~= YES then native.fail(3) end
  return true
end

function functions._stashputkeep(...)
  local key, value = ...
  key, value = text_of(key), text_of(value)
  if select("#", ...) ~= 2 or key == nil or value == nil then invalid("_stashputkeep") end
  if stash_put(context, key, #key, value, #value, KEEP) ~= YES then native.fail(3) end
  return true
end

function functions._stashputcat(...)
  local key, value = ...
  key, value = text_of(key), text_of(value)
  if select("#", ...) ~= 2 or key == nil or value == nil then invalid("_stashputcat") end
  if stash_put(context, key, #key, value, #value, APPEND) ~= YES then native.fail(3) end
  return true
end

function functions._stashout(...)
  local key = text_of((...))
  if select("#", ...) ~= 1 or key == nil then invalid("_stashout") end
  return stash_out(context, key, #key) == YES
end

function functions._stashget(...)
  local key = text_of((...))
  if select("#", ...) ~= 1 or key == nil then invalid("_stashget") end
  if stash_get(context, key, #key) ~= YES then return nil end
  return ffi_string(reply.data, reply.data_len)
end

function functions._stashvanish(...)
  if select("#", ...) ~= 0 then invalid("_stashvanish") end
  native.stash_vanish(context)
end

-- In the order of keys; what is put meanwhile after the current place is visited, too.
local stash_next = native.stash_next
function functions._stashforeach(...)
  local run = ...
  if select("#", ...) ~= 1 or type(run) ~= "function" then invalid("_stashforeach") end
  local key, len = "", -1
  while stash_next(context, key, len) == YES do
    key = ffi_string(reply.key, reply.key_len)
    len = #key
    if not tyrant.visit(run, key, ffi_string(reply.data, reply.data_len)) then break end
  end
end

-- Does not wait for a lock: a taken one would never be released meanwhile, since no other call runs.
local lock_take, lock_free = native.lock_take, native.lock_free
function functions._lock(...)
  local key = text_of((...))
  if select("#", ...) ~= 1 or key == nil then invalid("_lock") end
  return lock_take(context, key, #key) == YES
end

function functions._unlock(...)
  local key = text_of((...))
  if select("#", ...) ~= 1 or key == nil then invalid("_unlock") end
  return lock_free(context, key, #key) == YES
end
