-- The methods that make texts of texts: `r:escape`, `r:md5`, `r:regex` and their like.

local core = ...

local apache, native = core.apache, core.native
local context, reply, ffi_string, fail = native.context, native.reply, native.string, native.fail
local methods, check, text_of = apache.methods, apache.check, apache.text_of
local transform, date, wildcard = native.apache_text, native.apache_date, native.apache_wildcard
local regex, capture = native.apache_regex, native.apache_capture
local type, tonumber = type, tonumber

local YES, NO, NO_EXPRESSION = 1, 0, 2

-- By their places in src/apache/text.rs.
local OPERATIONS = {
  "escape", "unescape", "escape_html", "os_escape_path", nil, "escape_logitem", "base64_encode",
  "base64_decode", "md5", "sha1",
}
local UNESCAPE_PATH, PARTIAL_PATH = 10, 4

local function transformed(operation, text)
  local code = transform(context, operation, text, #text)
  if code == YES then return ffi_string(reply.data, reply.data_len) end
  if code ~= NO then fail(4) end
  return nil
end

for place = 1, 10 do
  local name = OPERATIONS[place]
  if name then
    methods[name] = function(self, text)
      check(self, name)
      return transformed(place - 1, text_of(text, 1, name))
    end
  end
end

function methods.os_escape_path(self, path, is_part)
  check(self, "os_escape_path")
  return transformed(is_part == true and PARTIAL_PATH or 3, text_of(path, 1, "os_escape_path"))
end

function apache.unescape_path(path) return transformed(UNESCAPE_PATH, path) end

function methods.regex(self, text, pattern, flags)
  check(self, "regex")
  text, pattern = text_of(text, 1, "regex"), text_of(pattern, 2, "regex")
  local code = regex(context, text, #text, pattern, #pattern, tonumber(flags) or 0)
  if code == NO then return false end
  if code == NO_EXPRESSION then return false, ffi_string(reply.data, reply.data_len) end
  if code ~= YES then fail() end
  local captures = {}
  for i = 0, reply.number - 1 do
    if capture(context, i) == YES then captures[i] = ffi_string(reply.data, reply.data_len) end
  end
  return captures
end

-- In Apache these are called with a dot; here a colon is right, too.
local function without_request(first, ...)
  if type(first) == "table" and apache.metatable_of(first) == apache.request_meta then return ... end
  return first, ...
end

function methods.strcmp_match(...)
  local text, pattern, ignores_case = without_request(...)
  text, pattern = text_of(text, 1, "strcmp_match"), text_of(pattern, 2, "strcmp_match")
  local code = wildcard(context, text, #text, pattern, #pattern, ignores_case and 1 or 0)
  if code ~= YES and code ~= NO then fail() end
  return code == YES
end

-- Seconds since 1970; nil for what is no date.
function methods.date_parse_rfc(...)
  local text = text_of((without_request(...)), 1, "date_parse_rfc")
  if date(context, text, #text) ~= YES then return nil end
  return reply.number
end

-- Microseconds since 1970.
function methods.clock(self)
  check(self, "clock")
  native.apache_clock(context)
  return reply.number
end
