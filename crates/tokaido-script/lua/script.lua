-- Scripts and the shell: code that runs outside any transaction and begins its own transactions.

local core = ...

local call_function, context_address = core.rust.call_function, core.rust.context

local native = core.native
local context, reply, ffi_string = native.context, native.reply, native.string
local begin_write, begin_read = native.begin_write, native.begin_read
local commit, rollback = native.commit, native.rollback
local xpcall, error, select, unpack, type = xpcall, error, select, unpack, type
local rawset = rawset

local YES, CONFLICT = 1, 3

-- How often a transaction that conflicts with another one is tried.
local ATTEMPTS_MAX = 10

local function fail()
  error(ffi_string(reply.data, reply.data_len), 0)
end

local function pack(...)
  return { n = select("#", ...), ... }
end

local function check(run, what)
  if core.procedure.is(run) then return run.run end
  if type(run) ~= "function" then
    error(what .. " takes a function, this is " .. core.text.described(run), 3)
  end
  return run
end

-- Runs the body in the transaction that was begun. If it raises, the transaction is undone.
local function run_body(run, ...)
  local results = pack(xpcall(run, core.keep_error, core.transaction, ...))
  if not results[1] then
    rollback(context)
    error(results[2], 0)
  end
  return results
end

local script = {}

-- Calls run(tx, …) in a write transaction that is durable when this returns.
function script.transact(run, ...)
  run = check(run, "tokaido.transact")
  for attempt = 1, ATTEMPTS_MAX do
    if begin_write(context) ~= YES then fail() end
    local results = run_body(run, ...)
    local code = commit(context)
    if code == YES then return unpack(results, 2, results.n) end
    if code ~= CONFLICT or attempt == ATTEMPTS_MAX then
      if code == CONFLICT then error("the transaction collided with others again and again", 2) end
      fail()
    end
  end
end

-- Calls run(tx, …) on a snapshot.
function script.snapshot(run, ...)
  run = check(run, "tokaido.snapshot")
  if begin_read(context) ~= YES then fail() end
  local results = run_body(run, ...)
  rollback(context)
  return unpack(results, 2, results.n)
end

for name, entry in pairs(script) do core.tokaido_entries[name] = entry end

-- The globals of scripts; they stay between runs.
local session = core.sandbox.of_script(core.sandbox.environment(false))
session.tokaido = core.loader.builtin.tokaido
session.json = core.loader.builtin["tokaido.json"]
core.session = session

-- Makes a function of the host program a global of scripts.
function core.set_function(name, index)
  rawset(session, name, function(...)
    local ok, result = call_function(context_address, index, ...)
    if not ok then error(result, 2) end
    return result
  end)
end
