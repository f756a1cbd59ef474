-- `tx:command`: commands of the surrounding server, in the running transaction.

local core = ...

local native, text = core.native, core.text
local context, reply, ffi_string = native.context, native.reply, native.string
local fetch_reply, context_address = core.rust.fetch_reply, core.rust.context
local many_begin, many_add, command_run = native.many_begin, native.many_add, native.command_run
local select, error = select, error

-- The kinds of reply; src/bridge/command.rs has the same.
local NIL, STRING, WIDE, NUMBER, FETCH, FALSE, STATUS = 0, 1, 2, 4, 5, 6, 7

local function add(argument)
  local bytes = text.bytes_of(argument, 3)
  if not bytes then
    error("an argument of a command is a string or a number, this one is "
      .. text.described(argument), 3)
  end
  if many_add(context, bytes, #bytes) ~= 1 then native.fail(4) end
end

function core.Transaction:command(name, ...)
  if self ~= core.transaction then
    error([[call tx:command with a colon, as in tx:command("GET", key)]], 2)
  end
  many_begin(context)
  add(name)
  -- Few arguments are added without a loop: a loop would be compiled separately, and not as a part
  -- of the caller's loop.
  local count = select("#", ...)
  local first, second, third = ...
  if count > 0 then add(first) end
  if count > 1 then add(second) end
  if count > 2 then add(third) end
  for place = 4, count do add((select(place, ...))) end
  local kind = command_run(context)
  if kind == STRING then return ffi_string(reply.data, reply.data_len) end
  if kind == NUMBER then return reply.number end
  if kind == NIL then return nil end
  if kind == FALSE then return false end
  if kind == STATUS then return { ok = ffi_string(reply.data, reply.data_len) } end
  if kind == WIDE then return reply.integer end
  if kind == FETCH then return fetch_reply(context_address) end
  native.fail(3)
end
