-- `tx:call`: calls another procedure, in the running transaction.

local core = ...

local native, text = core.native, core.text
local call_procedure, context_address = core.rust.call_procedure, core.rust.context
local call_failed, context = native.call_failed, native.context
local type, error, tostring, unpack, xpcall = type, error, tostring, unpack, xpcall

-- The procedures of this virtual machine by name, except those that answer a route.
local own = {}

core.own_procedures = own

-- A procedure that may write is all or nothing: if it fails, so does the transaction, even if the error is
-- caught.
local function finish(procedure, ok, ...)
  if ok then return ... end
  if procedure.mode == "write" then
    local raised = ...
    local message = type(raised) == "table" and raised.message or raised
    message = tostring(message)
    call_failed(context, message, #message)
  end
  error((...), 0)
end

local function finish_elsewhere(ok, result)
  if ok then return result end
  local message, code, status, was_called = unpack(result)
  if code or status then
    error({ message = message, code = code or nil, status = status or nil }, 0)
  end
  error(message, was_called and 0 or 2)
end

function core.Transaction:call(name, ...)
  if self ~= core.transaction then
    error([[call tx:call with a colon, as in tx:call("shop.buy", article)]], 2)
  end
  if type(name) ~= "string" then
    error("a procedure has a string as its name, this is " .. text.described(name), 2)
  end
  local procedure = own[name]
  if not procedure then return finish_elsewhere(call_procedure(context_address, name, ...)) end
  if procedure.mode == "write" and not self:is_writable() then
    error(name .. " writes, and its caller only reads", 2)
  end
  return finish(procedure, xpcall(procedure.run, core.keep_error, self, ...))
end
