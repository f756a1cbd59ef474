-- `cjson` and its settings, with error messages as in lua-cjson. The dialect decides how values and JSON are converted, and
-- how a call fails.

local core = ...

local error, type, select, tostring, tonumber = error, type, select, tostring, tonumber
local floor, format = math.floor, string.format

-- Maximum number of digits of a number in JSON.
local DIGITS_MAX = 14
-- Maximum of any other setting.
local INTEGER_MAX = 2 ^ 31 - 1

-- Raises a message. A dialect may do it in its own way.
function core.fail_call(message) error(message, 0) end

local function bad(place, name, why)
  core.fail_call(format("bad argument #%d to '%s' (%s)", place, name, why))
end

local function described(value)
  if value == nil then return "no value" end
  return type(value)
end

-- A text, or a number as text.
local function text(value, place, name)
  if type(value) == "string" then return value end
  if type(value) == "number" then return tostring(value) end
  bad(place, name, "string expected, got " .. described(value))
end

-- A setting that is on or off, or another of its words.
local function word(value, current, place, name, words)
  if value == nil then return current end
  if type(value) == "boolean" then return value and "on" or "off" end
  if type(value) ~= "string" and type(value) ~= "number" then
    bad(place, name, "string expected, got " .. type(value))
  end
  if not words[value] then bad(place, name, format("invalid option '%s'", tostring(value))) end
  return value
end

local function shown(word)
  if word == "on" then return true end
  if word == "off" then return false end
  return word
end

local ON_OFF = { on = true, off = true }
local ON_OFF_NULL = { on = true, off = true, null = true }

local function integer(value, current, place, name, least, most)
  if value == nil then return current end
  local number = tonumber(value)
  if not number then bad(place, name, "number expected, got " .. type(value)) end
  number = number < 0 and -floor(-number) or floor(number)
  if number < least or number > most then
    bad(1, name, format("expected integer between %d and %d", least, most))
  end
  return number
end

local function check_count(count, most, name)
  if count > most then bad(most + 1, name, "found too many arguments") end
end

core.call_arguments = { bad = bad, text = text, integer = integer, INTEGER_MAX = INTEGER_MAX }

-- A cjson with its own settings, as `cjson.new()` makes it, and a function that resets these to their initial
-- values. `how` has `encode(value, settings)` and `decode(text, settings)`, which give nil and a message if they
-- fail, and `changed()`, which is called before a setting changes.
function core.new_cjson(how)
  local set, json = {}, { _NAME = "cjson", _VERSION = "2.1.0", null = core.null }

  function set.reset()
    set.sparse_converts, set.sparse_ratio, set.sparse_safe = "off", 2, 10
    set.encode_depth, set.decode_depth, set.digits = 1000, 1000, DIGITS_MAX
    set.encode_invalid, set.decode_invalid, set.keeps = "off", "on", "on"
    set.empty_tables_are_objects, set.escapes_slashes = "on", "on"
  end
  set.reset()

  function json.encode(...)
    if select("#", ...) ~= 1 then bad(1, "encode", "expected 1 argument") end
    local encoded, message = how.encode((...), set)
    if encoded == nil then core.fail_call(message) end
    return encoded
  end

  function json.decode(...)
    if select("#", ...) ~= 1 then bad(1, "decode", "expected 1 argument") end
    local decoded, message = how.decode(text((...), 1, "decode"), set)
    if message then core.fail_call(message) end
    return decoded
  end

  function json.encode_sparse_array(...)
    local name = "encode_sparse_array"
    check_count(select("#", ...), 3, name)
    local converts, ratio, safe = ...
    how.changed()
    set.sparse_converts = word(converts, set.sparse_converts, 1, name, ON_OFF)
    set.sparse_ratio = integer(ratio, set.sparse_ratio, 2, name, 0, INTEGER_MAX)
    set.sparse_safe = integer(safe, set.sparse_safe, 3, name, 0, INTEGER_MAX)
    return shown(set.sparse_converts), set.sparse_ratio, set.sparse_safe
  end

  -- A setting of one integer.
  local function number_setting(name, field, most)
    json[name] = function(...)
      check_count(select("#", ...), 1, name)
      how.changed()
      set[field] = integer((...), set[field], 1, name, 1, most)
      return set[field]
    end
  end
  number_setting("encode_max_depth", "encode_depth", INTEGER_MAX)
  number_setting("decode_max_depth", "decode_depth", INTEGER_MAX)
  number_setting("encode_number_precision", "digits", how.digits_max or DIGITS_MAX)

  -- A setting of one word.
  local function word_setting(name, field, words)
    json[name] = function(...)
      check_count(select("#", ...), 1, name)
      how.changed()
      set[field] = word((...), set[field], 1, name, words)
      return shown(set[field])
    end
  end
  word_setting("encode_keep_buffer", "keeps", ON_OFF)
  word_setting("encode_invalid_numbers", "encode_invalid", ON_OFF_NULL)
  word_setting("decode_invalid_numbers", "decode_invalid", ON_OFF)
  if how.has_newer_settings then
    word_setting("encode_empty_table_as_object", "empty_tables_are_objects", ON_OFF)
    word_setting("encode_escape_forward_slash", "escapes_slashes", ON_OFF)
  end

  function json.new() return (core.new_cjson(how)) end
  return json, set.reset
end
