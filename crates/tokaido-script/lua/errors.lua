-- How an uncaught error is handled: it becomes a message with file and line, and a traceback without
-- the frames of this prelude.

local core = ...

local debug = core.libraries.debug
local traceback, getinfo = debug.traceback, debug.getinfo
local type, tostring, pcall, getmetatable = type, tostring, pcall, getmetatable
-- LuaJIT's own, not the bounded ones of patterns.lua: this runs when the stack is almost full.
local find, gmatch, gsub = string.find, string.gmatch, string.gsub

-- The source of every file of the prelude.
local PRELUDE = "[tokaido]"

-- The position of the innermost frame of user code.
local function position(level)
  for i = level, level + 50 do
    local info = getinfo(i, "Sl")
    if not info then return "" end
    if info.currentline > 0 and info.short_src ~= PRELUDE then
      return info.short_src .. ":" .. info.currentline .. ": "
    end
  end
  return ""
end

local function user_traceback(level)
  local lines = {}
  for line in gmatch(traceback("", level), "[^\n]+") do
    line = gsub(line, "^%s+", "")
    local noise = line == "stack traceback:" or find(line, PRELUDE, 1, true) == 1
      or find(line, "[C]:", 1, true) == 1 or find(line, "[builtin#", 1, true) == 1
    if not noise then lines[#lines + 1] = line end
  end
  return table.concat(lines, "\n")
end

-- The metatable of a refusal that undoes nothing: the transaction is committed. Only dialects raise it.
core.KEPT = {}

-- Keeps the stack of an error that is raised again further out.
local kept_error, kept_traceback

local function keep(raised)
  if kept_error ~= raised or kept_error == nil then
    kept_error, kept_traceback = raised, user_traceback(3)
  end
  return raised
end

-- Errors of the prelude name the line in the procedure. If that is impossible, since the procedure's
-- frame is gone, they must not name a line of the prelude.
local OWN_POSITION = "^%[tokaido%]:%d+: "

-- What LuaJIT says if a method was called with a dot, and so on something that is not a database.
local NO_SELF = {
  "^attempt to index local 'self'", "cannot convert 'nil' to 'int", "^attempt to get length of local 'key'",
}

-- The message for a LuaJIT error that was raised within the prelude.
local function own_message(message)
  for i = 1, #NO_SELF do
    if find(message, NO_SELF[i]) then return core.text.NO_COLON end
  end
  return message
end

local function message_of(raised)
  if type(raised) == "string" then
    local message, own = gsub(raised, OWN_POSITION, "")
    if own == 0 then return raised end
    return position(4) .. own_message(message)
  end
  if type(raised) == "table" and type(raised.message) == "string" then return raised.message end
  if type(raised) == "table" then
    local ok, text = pcall(tostring, raised)
    local meta = getmetatable(raised)
    if ok and type(meta) == "table" and meta.__tostring then return text end
    return position(4) .. "error with a table that has no message"
  end
  if raised == nil then return position(4) .. "error without a message" end
  return position(4) .. tostring(raised)
end

-- The message handler of every call from Rust, which reads the fields of the table.
function core.on_error(raised)
  local failure = { message = message_of(raised) }
  if kept_error ~= nil and kept_error == raised then
    failure.traceback = kept_traceback
  else
    failure.traceback = user_traceback(2)
  end
  kept_error, kept_traceback = nil, nil
  if type(raised) == "table" and type(raised.message) == "string" then
    failure.refused = true
    failure.kept = getmetatable(raised) == core.KEPT
    if type(raised.code) == "string" then failure.code = raised.code end
    local status = raised.status
    if type(status) == "number" and status >= 400 and status <= 599 then failure.status = status end
  end
  return failure
end

core.keep_error = keep
