-- The methods that turn texts into texts: `r:escape`, `r:md5`, `r:regex` and the like.

local core = ...

local apache, native = core.apache, core.native
local context, reply, ffi_string, fail = native.context, native.reply, native.string, native.fail
local methods, check, text_of = apache.methods, apache.check, apache.text_of
local transform, date, wildcard = native.apache_text, native.apache_date, native.apache_wildcard
local regexes = core.regexes
local type, tonumber, sub = type, tonumber, string.sub

local YES, NO = 1, 0

-- By their numbers in src/apache/text.rs.
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

-- Apache's flags as options, by the lowest two bits: 1 ignores case, with 2 `^` and `$` match at lines.
local OPTIONS = { [0] = "s", "si", "sm", "sim" }

function methods.regex(self, text, pattern, flags)
  check(self, "regex")
  text, pattern = text_of(text, 1, "regex"), text_of(pattern, 2, "regex")
  local regex, why = regexes.get(pattern, OPTIONS[(tonumber(flags) or 0) % 4] or OPTIONS[0])
  if not regex then return false, why end
  local found = regexes.run(regex.address, text, #text, 0)
  if found < 0 then found, why = regexes.settle(regex, text, 0, found) end
  if not found then return false, why end
  if found == regexes.NOMATCH then return false end
  local captures, offsets = {}, regex.offsets
  for i = 0, regex.groups do
    local from, to = offsets[4 * i], offsets[4 * i + 2]
    if from >= 0 then captures[i] = sub(text, from + 1, to) end
  end
  return captures
end

-- In Apache these are called with a dot; here a colon works, too.
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

-- Seconds since 1970; nil if it is not a date.
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
