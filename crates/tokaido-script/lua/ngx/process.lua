-- What a handler asks about where it runs: phases, workers, configuration, `ngx.ctx`. And `tokaido`, the server's data.

local core = ...

local ngx, native = core.ngx, core.native
local context = native.context
local error, type, ipairs, xpcall, running = error, type, ipairs, xpcall, coroutine.running
local fields = core.fields

function ngx.get_phase()
  local running = core.running
  if running then return running.phase end
  return core.phase or "timer"
end

fields.ctx = {
  get = function()
    local request = core.running
    if not request then error("no request ctx found", 3) end
    local ctx = request.ctx
    if not ctx then
      ctx = {}
      request.ctx = ctx
    end
    return ctx
  end,
  set = function(ctx)
    local request = core.running
    if not request then error("no request ctx found", 3) end
    if type(ctx) ~= "table" then error("ngx.ctx is a table", 3) end
    request.ctx = ctx
  end,
}

fields.is_subrequest = {
  get = function()
    local request = core.request
    return request ~= nil and request.outer ~= nil
  end,
}

ngx.worker = {
  pid = function() return core.rust.pid end,
  exiting = function() return core.is_exiting == true end,
}

ngx.config = {
  subsystem = "http", debug = false, nginx_version = 1022001, ngx_lua_version = 10023,
  prefix = function() return "/" end,
  nginx_configure = function() return "" end,
}

-- Reports a failure that answers nobody: a line in the log.
function core.log_failure(failure)
  local line = type(failure) == "table" and failure.message or core.text_of(failure)
  native.log(context, 0, line, #line)
end

local transaction = core.transaction

local function finished(request, reading, ok, ...)
  request.reading = reading.outer
  if not ok then error((...), 0) end
  return ...
end

-- Calls a function with the handler's transaction; the function cannot wait.
local function read(run, ...)
  local request = core.running
  if not request then core.disabled(2) end
  local reading = { thread = running(), outer = request.reading }
  request.reading = reading
  return finished(request, reading, xpcall(run, core.keep_error, transaction, ...))
end

local writable = native.writable
local function write(run, ...)
  if writable(context) ~= 1 then
    error("a handler that writes is one that says so, by the line -- writes: true below its route; see " .. core.PAGE, 2)
  end
  return run(transaction, ...)
end

core.modules.tokaido = function()
  return { read = read, write = write, json = core.json }
end

-- What is not offered, and why.
ngx.on_abort = core.refused("ngx.on_abort", "a handler goes on when its client has gone")
ngx.run_worker_thread = core.refused("ngx.run_worker_thread", "a handler has no thread but its worker")
for _, name in ipairs { "id", "count", "pids" } do
  ngx.worker[name] = core.refused("ngx.worker." .. name, "handlers run in threads of one process, whose number is no affair of theirs")
end
