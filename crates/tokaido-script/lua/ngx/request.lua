-- The way of a request through its phases. Each phase runs in a coroutine, so that `ngx.exit` ends it from wherever
-- it is called: it yields, and nobody resumes.

local core = ...

local error, xpcall, setmetatable = error, xpcall, setmetatable
local create, resume, yield = coroutine.create, coroutine.resume, coroutine.yield
local native = core.native
local context, respond = native.context, native.respond

-- What a coroutine yields first: the end of its phase, an error that nobody caught, or `ngx.exit`.
local FINISHED, FAILED, EXIT = {}, {}, {}
core.EXIT = EXIT

-- Runs one phase after another, so that the next request need not make a coroutine.
local function loop(chunk)
  while true do
    local ok, failure = xpcall(chunk, core.keep_error)
    if ok then chunk = yield(FINISHED) else chunk = yield(FAILED, failure) end
  end
end

local idle, idle_count = {}, 0

-- Runs a chunk; gives the status of `ngx.exit` if that ended it. Errors pass through.
local function run(chunk)
  local thread
  if idle_count > 0 then
    thread, idle[idle_count], idle_count = idle[idle_count], nil, idle_count - 1
  else
    thread = create(loop)
  end
  local ok, signal, value = resume(thread, chunk)
  if signal == FINISHED then
    idle_count = idle_count + 1
    idle[idle_count] = thread
    return nil
  end
  if signal == EXIT then return value end
  error(not ok and signal or value, 0)
end
core.run_phase = run

-- What a handler is made of becomes the function of a procedure.
function core.handler(handler)
  return function()
    local request = { handler = handler, phase = "content", status = 0, is_sent = false }
    core.request = request
    run(handler.content)
    core.finish(request)
  end
end

local runs = core.runs
function core.dispatch(index)
  runs[index]()
end

core.respond = function(status, body)
  if respond(context, status, 1, body, #body) ~= 1 then native.fail(3) end
end
