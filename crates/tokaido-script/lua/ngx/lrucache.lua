-- `resty.lrucache`: a cache within a VM, for a limited number of values of any kind. The least recently used one is
-- evicted first.

local core = ...

local type, error, setmetatable = type, error, setmetatable

local Cache = { _VERSION = "0.13" }
local cache_meta = { __index = Cache }

-- The entries form a ring in the order of their use, whose head is not an entry.
local function unlink(entry)
  entry.before.after, entry.after.before = entry.after, entry.before
end

local function link_first(head, entry)
  entry.before, entry.after = head, head.after
  head.after.before, head.after = entry, entry
end

local function empty(self)
  local head = {}
  head.before, head.after = head, head
  self.head, self.entries, self.size = head, {}, 0
end

function Cache.new(max)
  if type(max) ~= "number" then error("the size is a number, this is " .. core.text.described(max), 2) end
  if max < 1 then return nil, "size too small" end
  local self = { max = max }
  empty(self)
  return setmetatable(self, cache_meta)
end

-- Three results: the value, nil if it has expired; the expired value; the flags.
function Cache:get(key)
  local entry = self.entries[key]
  if not entry or entry.value == nil then return nil end
  unlink(entry)
  link_first(self.head, entry)
  if entry.expires_at and entry.expires_at < core.ngx.now() then
    return nil, entry.value, entry.flags
  end
  return entry.value, nil, entry.flags
end

local function remove(self, entry)
  unlink(entry)
  self.entries[entry.key] = nil
  self.size = self.size - 1
end

function Cache:delete(key)
  local entry = self.entries[key]
  if not entry then return false end
  remove(self, entry)
  return true
end

local FLAGS_MAX = 2 ^ 32 - 1

function Cache:set(key, value, ttl, flags)
  local entry = self.entries[key]
  if entry then
    unlink(entry)
  else
    if self.size >= self.max then remove(self, self.head.before) end
    entry = { key = key }
    self.entries[key], self.size = entry, self.size + 1
  end
  link_first(self.head, entry)
  entry.value = value
  entry.expires_at = ttl and core.ngx.now() + ttl
  entry.flags = type(flags) == "number" and flags >= 0 and flags <= FLAGS_MAX and flags or 0
end

function Cache:count() return self.size end

function Cache:capacity() return self.max end

-- Keys from the most recently used one on, in a table that may be given.
function Cache:get_keys(max, keys)
  keys = keys or {}
  max = max and max > 0 and max or self.size
  local count, entry = 0, self.head.after
  while count < max and entry ~= self.head do
    count = count + 1
    keys[count], entry = entry.key, entry.after
  end
  keys[count + 1] = nil
  return keys
end

function Cache:flush_all() empty(self) end

local function make() return Cache end
core.modules["resty.lrucache"], core.modules["resty.lrucache.pureffi"] = make, make
