-- Compiled regular expressions: cached by options and pattern, and run. mod_lua uses them, too.
--
-- A match is a C call that writes its offsets, which are read in place; in a loop all of it is machine code. Rust owns
-- the expressions and frees them between calls into Lua. A coroutine may outlast a call; so between getting an
-- expression and the last read of its offsets no script code runs, not even a metamethod.

local core = ...

local native, ffi = core.native, core.ffi
local context, reply, ffi_string = native.context, native.reply, native.string
local compile, deep, dfa = core.compile_regex or native.regex_compile, native.regex_deep, native.regex_dfa
local type, tonumber, error = type, tonumber, error
local find, gmatch, floor = string.find, string.gmatch, math.floor

local run = ffi.cast("int32_t (*)(const void *, const char *, size_t, size_t)", core.rust.regex_run)

local NO, YES = 0, 1

-- By options, then by pattern; and the value of `regexes_number` when they were made.
local kept, kept_number = {}, reply.regexes_number

local function keep(regex, pattern, options)
  local by_pattern = kept[options]
  if not by_pattern then
    by_pattern = {}
    kept[options] = by_pattern
  end
  by_pattern[pattern] = regex
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
    -- The lower half of each 64-bit offset.
    offsets = ffi.cast("const int32_t *", reply.key),
    -- A DFA finds no groups.
    groups = is_dfa and 0 or reply.flags,
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
  local regex, why = make(pattern, options)
  if not regex then
    if find(why, "unknown flag", 1, true) == 1 then error(why, 4) end
    return nil, why
  end
  keep(regex, pattern, options)
  return regex
end

local regexes = { run = run }

-- The compiled expression; or nil, and why it cannot be compiled.
function regexes.get(pattern, options)
  options = options or ""
  if kept_number ~= reply.regexes_number then
    kept = {}
    kept_number = reply.regexes_number
  end
  local by_pattern = kept[options]
  local regex = by_pattern and by_pattern[pattern]
  if regex then return regex end
  return get_slowly(pattern, options)
end

-- PCRE2's error numbers as those of the first PCRE, which scripts compare with.
local NUMBERS = {
  [-47] = -8, [-46] = -27, [-48] = -6, [-53] = -21, [-36] = -11, [-33] = -24, [-42] = -16, [-40] = -17, [-43] = -19,
  [-39] = -20,
}

local function message_of(found)
  -- The numbers between these are the ways in which a text is not valid UTF-8.
  if found <= -3 and found >= -23 then found = -10 end
  return "pcre_exec() failed: " .. (NUMBERS[found] or found)
end

local NOMATCH, STACK_LIMIT, BAD_OFFSET, BAD_MATCH, STOPPED = -1, -46, -33, -60, -1000
regexes.NOMATCH, regexes.BAD_OFFSET = NOMATCH, BAD_OFFSET
regexes.message_of = message_of

-- Continues after `run` gave a negative number: gives the one that counts. Nil for an error, and its message.
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
  if found == BAD_MATCH then
    return nil, "the match begins behind its end, or before the search did: \\K does that in what a lookaround calls"
  end
  return nil, message_of(found)
end

-- The position, from 0, at which a context makes the search begin; nil, and why, if it is invalid.
function regexes.start_of(ctx)
  local pos = ctx.pos
  if not pos then return 0 end
  if type(pos) ~= "number" then
    error("the pos of a context is a number, this is " .. core.text.described(pos), 3)
  end
  if pos < 1 then return 0 end
  -- NaN is not a position either.
  if pos >= 1 then return floor(pos) - 1 end
  return nil, message_of(BAD_OFFSET)
end

function regexes.set_stack(size)
  native.regex_set_stack(context, size)
end

core.regexes = regexes
