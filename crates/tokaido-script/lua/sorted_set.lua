-- A sorted set, as `tx.main:sorted_set("z")` returns it. Ranks begin with 1.

local core = ...

local native, text, INDEX = core.native, core.text, core.INDEX
local context, reply, ffi_string, fail = native.context, native.reply, native.string, native.fail
local key_text, element_text, NO_COLON = text.key, text.element, text.NO_COLON
local page_next, position_of, read_range = native.page_next, core.position, core.read_range
local type, error, setmetatable, huge = type, error, setmetatable, math.huge

local NO, YES = 0, 1

-- The bits of a plan, as in src/bridge/collections/sorted_set.rs.
local BACKWARD, LOW_GIVEN, LOW_INCLUDED, HIGH_GIVEN, HIGH_INCLUDED = 1, 2, 4, 8, 16

local SortedSet = {}
local META = core.handles("sorted_set", SortedSet, {
  class = "SortedSet", name = "sorted set", write = "write with sorted_set:add(member, score)",
})

function core.Database:sorted_set(key)
  if type(key) ~= "string" then key = key_text(key, self) end
  local index = self[INDEX]
  if index == nil then error(NO_COLON, 2) end
  return setmetatable({ index = index, key = key }, META)
end

-- A score: any number but NaN. Called by a method, for the level of its errors.
local function check_score(score, what, level)
  if type(score) ~= "number" or score ~= score then
    error(what .. " is a number, this is " .. text.shown(score), level or 3)
  end
end

local score_of = native.sorted_score
function SortedSet:score(member)
  if type(member) ~= "string" then member = element_text(member, self, "a member") end
  local key = self.key
  local code = score_of(context, self.index, key, #key, member, #member)
  if code == YES then return reply.number end
  if code ~= NO then fail() end
  return nil
end

function SortedSet:has(member)
  if type(member) ~= "string" then member = element_text(member, self, "a member") end
  local key = self.key
  local code = score_of(context, self.index, key, #key, member, #member)
  if code == YES then return true end
  if code ~= NO then fail() end
  return false
end

local rank_of = native.sorted_rank
function SortedSet:rank(member, reverse)
  if type(member) ~= "string" then member = element_text(member, self, "a member") end
  local key = self.key
  local plan = reverse and BACKWARD or 0
  local code = rank_of(context, self.index, key, #key, member, #member, plan)
  if code == YES then return reply.flags, reply.number end
  if code ~= NO then fail() end
  return nil
end

local add = native.sorted_add
function SortedSet:add(member, score)
  if type(member) ~= "string" then member = element_text(member, self, "a member") end
  if type(self) ~= "table" then error(NO_COLON, 2) end
  check_score(score, "a score")
  local key = self.key
  local code = add(context, self.index, key, #key, member, #member, score)
  if code == YES then return true end
  if code ~= NO then fail() end
  return false
end

local increment = native.sorted_increment
function SortedSet:increment(member, by)
  if type(self) ~= "table" then error(NO_COLON, 2) end
  if type(member) ~= "string" then member = element_text(member, self, "a member") end
  if by == nil then by = 1 else check_score(by, "the increment") end
  local key = self.key
  if increment(context, self.index, key, #key, member, #member, by) ~= YES then fail() end
  return reply.number
end

local remove = native.sorted_remove
function SortedSet:remove(member)
  if type(member) ~= "string" then member = element_text(member, self, "a member") end
  local key = self.key
  local code = remove(context, self.index, key, #key, member, #member)
  if code == YES then return true end
  if code ~= NO then fail() end
  return false
end

local pop = native.sorted_pop
function SortedSet:pop_min()
  local key = self.key
  local code = pop(context, self.index, key, #key, 0)
  if code == YES then return ffi_string(reply.data, reply.data_len), reply.number end
  if code ~= NO then fail() end
  return nil
end

function SortedSet:pop_max()
  local key = self.key
  local code = pop(context, self.index, key, #key, BACKWARD)
  if code == YES then return ffi_string(reply.data, reply.data_len), reply.number end
  if code ~= NO then fail() end
  return nil
end

local random = native.sorted_random
function SortedSet:random()
  local key = self.key
  local code = random(context, self.index, key, #key)
  if code == YES then return ffi_string(reply.data, reply.data_len), reply.number end
  if code ~= NO then fail() end
  return nil
end

local OPTIONS = {
  from = true, after = true, to = true, before = true, first = true, last = true,
  reverse = true, limit = true,
}

-- The plan and the two scores of a range. Called two levels below the method.
local function bounds(range)
  local plan, low, high = 0, 0, 0
  local from, after, to, before = range.from, range.after, range.to, range.before
  if from ~= nil then
    check_score(from, "from", 5)
    plan, low = LOW_GIVEN + LOW_INCLUDED, from
  end
  if after ~= nil then
    check_score(after, "after", 5)
    if from == nil or after >= from then plan, low = LOW_GIVEN, after end
  end
  if to ~= nil then
    check_score(to, "to", 5)
    plan, high = plan + HIGH_GIVEN + HIGH_INCLUDED, to
  end
  if before ~= nil then
    check_score(before, "before", 5)
    if to == nil then
      plan, high = plan + HIGH_GIVEN, before
    elseif before <= to then
      plan, high = plan - HIGH_INCLUDED, before
    end
  end
  if range.reverse then plan = plan + BACKWARD end
  return plan, low, high
end

local count, count_in = native.sorted_count, native.sorted_count_in
local OPTION_NAMES = "from, after, to, before, first, last, reverse, limit"

-- The plan and the two scores of a range, how many of its members to skip, and how many members
-- are wanted at most. Called by the method, for the level of its errors.
local function read_scores(self, range)
  if type(self) ~= "table" then error(NO_COLON, 3) end
  if range == nil then return 0, 0, 0, 0, huge end
  core.check_options(range, OPTIONS, "a sorted set", OPTION_NAMES)
  local plan, low, high = bounds(range)
  local first, last, wanted = range.first, range.last, range.limit
  if wanted == nil then wanted = huge else text.number(wanted, "limit", 3) end
  if first == nil and last == nil then return plan, low, high, 0, wanted end
  first = first == nil and 1 or position_of(first, "first", 4)
  last = last == nil and -1 or position_of(last, "last", 4)
  if first < 0 or last < 0 then
    local key = self.key
    if count_in(context, self.index, key, #key, plan, low, high) ~= YES then fail(4) end
    local members = reply.number
    if first < 0 then first = members + first + 1 end
    if last < 0 then last = members + last + 1 end
  end
  if first < 1 then first = 1 end
  local between = last - first + 1
  if between < wanted then wanted = between end
  return plan, low, high, first - 1, wanted
end

function SortedSet:count(range)
  if range == nil then
    local key = self.key
    if count(context, self.index, key, #key) ~= YES then fail() end
    return reply.number
  end
  local plan, low, high, skipped, wanted = read_scores(self, range)
  local key = self.key
  if count_in(context, self.index, key, #key, plan, low, high) ~= YES then fail() end
  local left = reply.number - skipped
  if left > wanted then left = wanted end
  if left < 0 then left = 0 end
  return left
end

local remove_in = native.sorted_remove_in
function SortedSet:remove_range(range)
  local plan, low, high, skipped, wanted = read_scores(self, range)
  if wanted <= 0 then return 0 end
  local key = self.key
  if remove_in(context, self.index, key, #key, plan, low, high, skipped, wanted) ~= YES then fail() end
  return reply.number
end

-- Takes the loaded page; tells whether it has anything. The next page starts after its last member.
local function take_page(state, is_over)
  local members, scores, loaded = {}, {}, 0
  while page_next(context) == YES do
    loaded = loaded + 1
    members[loaded] = ffi_string(reply.key, reply.key_len)
    scores[loaded] = reply.number
  end
  state.members, state.scores, state.loaded = members, scores, loaded
  state.left, state.is_over = state.left - loaded, is_over
  return loaded > 0
end

-- How many entries the next page should have; 0 for no further page.
local PAGE_ENTRIES_MAX = core.PAGE_ENTRIES_MAX
local function entries_of(state)
  if state.is_over then return 0 end
  local entries, left = state.entries, state.left
  if entries < PAGE_ENTRIES_MAX then state.entries = entries * 2 end
  if left < entries then return left end
  return entries
end

local page = native.sorted_page
local function load_page(state)
  local entries = entries_of(state)
  if entries <= 0 then return false end
  local key, plan, low, high, code = state.key, state.plan, state.low, state.high, nil
  local loaded = state.loaded
  if loaded > 0 then
    local last, score = state.members[loaded], state.scores[loaded]
    code = page(context, state.index, key, #key, plan, low, high, last, #last, score, entries)
  else
    code = page(context, state.index, key, #key, plan, low, high, "", -1, state.skipped, entries)
  end
  -- The error level is that of the loop: fail, load_page, the iterator, the loop.
  if code ~= YES and code ~= NO then fail(4) end
  local has_any = take_page(state, code == NO)
  return has_any
end

local function next_member(state)
  local at = state.at + 1
  if at > state.loaded then
    if not load_page(state) then return nil end
    at = 1
  end
  state.at = at
  return state.members[at], state.scores[at]
end

local PAGE_ENTRIES_FIRST = core.PAGE_ENTRIES_FIRST
function SortedSet:scan(range)
  local plan, low, high, skipped, wanted = read_scores(self, range)
  return next_member, {
    index = self.index, key = self.key, plan = plan, low = low, high = high, skipped = skipped,
    left = wanted, is_over = false, entries = PAGE_ENTRIES_FIRST,
    members = false, scores = false, loaded = 0, at = 0,
  }, nil
end

-- Scans by the members themselves.
local page_of_members = native.sorted_page_of_members
local function load_members(state)
  local entries = entries_of(state)
  if entries <= 0 then return false end
  local key, plan, low, high = state.key, state.plan, state.low, state.high
  local last, last_len, score = "", -1, 0
  local loaded = state.loaded
  if loaded > 0 then
    last, score = state.members[loaded], state.scores[loaded]
    last_len = #last
  end
  local code = page_of_members(
    context, state.index, key, #key, plan, low, #low, high, #high, last, last_len, score, entries
  )
  if code ~= YES and code ~= NO then fail(4) end
  local has_any = take_page(state, code == NO)
  return has_any
end

local function next_member_between(state)
  local at = state.at + 1
  if at > state.loaded then
    if not load_members(state) then return nil end
    at = 1
  end
  state.at = at
  return state.members[at], state.scores[at]
end

-- Where a scan by members starts. Called by the method, for the level of its errors.
local function begin_members(self, range)
  local low, low_included, high, high_included
  range, low, low_included, high, high_included = read_range(self, range)
  local plan = 0
  if low then plan = plan + LOW_GIVEN + (low_included and LOW_INCLUDED or 0) end
  if high then plan = plan + HIGH_GIVEN + (high_included and HIGH_INCLUDED or 0) end
  if range.reverse then plan = plan + BACKWARD end
  return {
    index = self.index, key = self.key, plan = plan, low = low or "", high = high or "",
    left = range.limit or huge, is_over = false, entries = PAGE_ENTRIES_FIRST,
    members = false, scores = false, loaded = 0, at = 0,
  }
end

function SortedSet:scan_members(range)
  local state = begin_members(self, range)
  return next_member_between, state, nil
end
