-- What a handler sends: `ngx.say` and its like.

local core = ...

local ngx, native = core.ngx, core.native
local context, fail = native.context, native.fail
local response_write, response_header = native.response_write, native.response_header
local type, error, select, concat = type, error, select, table.concat
local shown = core.shown

local function send(text)
  if response_write(context, text, #text) ~= 1 then fail(3) end
  return 1
end

local function joined(...)
  local parts = {}
  for i = 1, select("#", ...) do parts[i] = shown((select(i, ...))) end
  return concat(parts)
end

function ngx.print(...)
  if select("#", ...) == 1 and type((...)) == "string" then return send((...)) end
  return send(joined(...))
end

function ngx.say(...)
  if select("#", ...) == 1 and type((...)) == "string" then
    send((...))
    return send("\n")
  end
  return send(joined(...) .. "\n")
end

function core.finish(request)
  if response_header(context, "content-type", 12, "text/plain", 10, 0) ~= 1 then fail(3) end
  core.respond(request.status == 0 and 200 or request.status, "")
end
