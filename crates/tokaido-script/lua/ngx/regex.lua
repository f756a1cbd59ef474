-- Compiled regular expressions: kept by options and pattern, run, and freed when there are too many.
--
-- A match is a call of C that writes its offsets, which are read in place; in a loop all of it is machine code. An
-- expression may be freed whenever another one is compiled, so whoever calls code of a script, or gives control back to
-- it, asks for the expression again after that.

local core = ...

local native, ffi = core.native, core.ffi
local context, reply, ffi_string = native.context, native.reply, native.string
local compile, free, deep, dfa = native.regex_compile, native.regex_free, native.regex_deep, native.regex_dfa
local type, tonumber, tostring, error, pairs = type, tonumber, tostring, error, pairs
local find, gmatch = string.find, string.gmatch

local run = ffi.cast("int32_t (*)(const void *, const char *, size_t, size_t)", core.rust.regex_run)

-- Up to so many expressions, and bytes of what was compiled, are kept twice: those used since the last time that
-- there were too many, and those used before that.
local COUNT_MAX, BYTES_MAX = 512, 8 * 2 ^ 20

local NO, YES = 0, 1

-- By options, then by pattern.
local young, old, count, bytes = {}, {}, 0, 0

local function free_all(generation)
  for _, by_pattern in pairs(generation) do
    for _, regex in pairs(by_pattern) do free(context, regex.number) end
  end
end

local function keep(regex, pattern, options)
  if count >= COUNT_MAX or bytes >= BYTES_MAX then
    local gone = old
    old, young, count, bytes = young, {}, 0, 0
    free_all(gone)
  end
  local by_pattern = young[options]
  if not by_pattern then
    by_pattern = {}
    young[options] = by_pattern
  end
  by_pattern[pattern] = regex
  count, bytes = count + 1, bytes + regex.size
end

-- The names of groups, each with its numbers.
local function read_names(list)
  if list == "" then return nil end
  local names = {}
  for number, name in gmatch(list, "(%d+) ([^\n]*)\n") do
    names[#names + 1] = { name = name, group = tonumber(number) }
  end
  return names
end

local function make(pattern, options)
  local code = compile(context, pattern, #pattern, options, #options)
  if code ~= YES and code ~= NO then native.fail(4) end
  if code == NO then return nil, ffi_string(reply.data, reply.data_len) end
  local is_dfa = find(options, "d", 1, true) ~= nil
  return {
    number = reply.number,
    address = ffi.cast("const void *", reply.integer),
    -- Of each offset, 64 bits long, the lower half.
    offsets = ffi.cast("const int32_t *", reply.key),
    -- A DFA finds no groups.
    groups = is_dfa and 0 or reply.flags,
    size = reply.expires_at_ms,
    names = not is_dfa and read_names(ffi_string(reply.data, reply.data_len)) or nil,
    joins_names = find(options, "D", 1, true) ~= nil,
    is_dfa = is_dfa,
    is_utf = find(options, "[uU]") ~= nil,
  }
end

local function get_slowly(pattern, options)
  if type(pattern) ~= "string" then
    error("a regular expression is a string, this is " .. core.text.described(pattern), 4)
  end
  if type(options) ~= "string" then
    error("the options of a regular expression are a string, these are " .. core.text.described(options), 4)
  end
  local by_pattern = old[options]
  local regex = by_pattern and by_pattern[pattern]
  if regex then
    by_pattern[pattern] = nil
  else
    local why
    regex, why = make(pattern, options)
    if not regex then
      if find(why, "unknown flag", 1, true) == 1 then error(why, 4) end
      return nil, why
    end
  end
  keep(regex, pattern, options)
  return regex
end

local regexes = { run = run }

-- The compiled expression; or nil, and why it cannot be compiled.
function regexes.get(pattern, options)
  options = options or ""
  local by_pattern = young[options]
  local regex = by_pattern and by_pattern[pattern]
  if regex then return regex end
  return get_slowly(pattern, options)
end

-- What the numbers of PCRE2 were in the first PCRE, which is what scripts compare with.
local NUMBERS = {
  [-47] = -8, [-46] = -27, [-48] = -6, [-53] = -21, [-36] = -11, [-33] = -24, [-42] = -16, [-40] = -17, [-43] = -19,
  [-39] = -20,
}

local function message_of(found)
  -- Between these lie the ways in which a text is not UTF-8.
  if found <= -3 and found >= -23 then found = -10 end
  return "pcre_exec() failed: " .. (NUMBERS[found] or found)
end

local NOMATCH, STACK_LIMIT, BAD_OFFSET, STOPPED = -1, -46, -33, -1000
regexes.NOMATCH, regexes.BAD_OFFSET = NOMATCH, BAD_OFFSET
regexes.message_of = message_of

-- Goes on where `run` gave a negative number: gives the one that counts in the end. Nil for an error, and its message.
function regexes.settle(regex, subject, start, found)
  if found == NOMATCH then return found end
  if regex.is_dfa then
    if dfa(context, regex.number, subject, #subject, start) ~= YES then native.fail(4) end
    found = reply.number
  elseif found == STACK_LIMIT then
    if deep(context, regex.number, subject, #subject, start) ~= YES then native.fail(4) end
    found = reply.number
  end
  if found >= NOMATCH then return found end
  if found == STOPPED then error("the match was stopped", 0) end
  return nil, message_of(found)
end

function regexes.set_stack(size)
  native.regex_set_stack(context, size)
end

core.regexes = regexes
