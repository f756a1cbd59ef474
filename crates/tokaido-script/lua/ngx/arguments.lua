-- Splits and joins the arguments of a query or a form.

local core = ...

local type, error, pairs = type, error, pairs
local find, gsub, sub, char = string.find, string.gsub, string.sub, string.char
local tonumber, concat = tonumber, table.concat

local function from_hex(digits) return char(tonumber(digits, 16)) end

local function unescape(text)
  if not find(text, "[%%+]") then return text end
  return (gsub(gsub(text, "+", " "), "%%(%x%x)", from_hex))
end

-- Values by name: `true` for one without `=`, a table for several. Beyond `max` there are no more, and "truncated".
function core.parse_args(text, max)
  local found, count = {}, 0
  local from, len = 1, #text
  while from <= len do
    local to = find(text, "&", from, true) or len + 1
    if to > from then
      if max > 0 and count == max then return found, "truncated" end
      local pair = sub(text, from, to - 1)
      local equals = find(pair, "=", 1, true)
      local name = unescape(equals and sub(pair, 1, equals - 1) or pair)
      if name ~= "" then
        count = count + 1
        core.add_value(found, name, equals and unescape(sub(pair, equals + 1)) or true)
      end
    end
    from = to + 1
  end
  return found, nil
end

-- As ngx.escape_uri does.
local native = core.native
local COMPONENT = 2
local function escape(value)
  value = core.text_of(value)
  if native.ngx_escape_uri(native.context, value, #value, COMPONENT) ~= 1 then native.fail(4) end
  return native.string(native.reply.data, native.reply.data_len)
end

local function append(parts, name, value)
  if value == true then
    parts[#parts + 1] = escape(name)
  elseif type(value) == "string" or type(value) == "number" then
    parts[#parts + 1] = escape(name) .. "=" .. escape(value)
  elseif value ~= false and value ~= nil then
    error("attempt to use " .. type(value) .. " as query arg value", 4)
  end
end

function core.join_args(args)
  local parts = {}
  for name, value in pairs(args) do
    if type(value) == "table" then
      for i = 1, #value do append(parts, name, value[i]) end
    else
      append(parts, name, value)
    end
  end
  return concat(parts, "&")
end
