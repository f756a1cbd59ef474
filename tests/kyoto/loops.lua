-- The loops by which key-value stores with Lua are compared, one a procedure.

local kt = __kyototycoon__
local db = kt.db

-- Sets, gets and removes every key, in order or at random; with `etc` it also adds, appends, and goes through
-- all records forward and back.
local function loop(inmap, outmap, is_random, has_etc)
  local count = tonumber(inmap.count)
  math.randomseed(17)
  local function key_of(i)
    if is_random then return tostring(math.random(count)) end
    return tostring(i)
  end
  local misses = 0
  for i = 1, count do
    local key = key_of(i)
    if not db:set(key, key) then return kt.RVEINTERNAL end
  end
  if has_etc then
    for i = 1, count do
      local key = key_of(i)
      if not db:add(key, key) and db:error():code() ~= kt.Error.DUPREC then return kt.RVEINTERNAL end
    end
    for i = 1, count do
      local key = key_of(i)
      if not db:append(key, key) then return kt.RVEINTERNAL end
    end
  end
  for i = 1, count do
    if not db:get(key_of(i)) then misses = misses + 1 end
  end
  if has_etc then
    local cur, seen = db:cursor(), 0
    cur:jump()
    while cur:get(true) do seen = seen + 1 end
    cur:jump_back()
    repeat
      seen = seen + 1
    until not cur:step_back()
    outmap.seen, outmap.twice = seen, seen == 2 * db:count()
  end
  for i = 1, count do
    if not db:remove(key_of(i)) then misses = misses + 1 end
  end
  outmap.misses, outmap.left = misses, db:count()
  return kt.RVSUCCESS
end

function order(inmap, outmap) return loop(inmap, outmap, false, false) end
function random(inmap, outmap) return loop(inmap, outmap, true, false) end
function etc(inmap, outmap) return loop(inmap, outmap, false, true) end
function both(inmap, outmap) return loop(inmap, outmap, true, true) end

-- All that can be done to records, in no order; `times` as many as keys.
function wicked(inmap, outmap)
  local count, times = tonumber(inmap.count), tonumber(inmap.times)
  math.randomseed(17)
  local cur, done = db:cursor(), {}
  local actions = {
    set = function(key) return db:set(key, key) end,
    add = function(key) return db:add(key, key) end,
    replace = function(key) return db:replace(key, key) end,
    append = function(key) return db:append(key, key) end,
    increment = function(key) return db:increment("#" .. key, 1) end,
    increment_double = function(key) return db:increment_double("%" .. key, 0.5) end,
    cas = function(key) return db:cas(key, db:get(key), key) end,
    remove = function(key) return db:remove(key) end,
    accept = function(key)
      return db:accept(key, function(_, value)
        if value and #value > 64 then return kt.Visitor.REMOVE end
        return (value or "") .. key
      end)
    end,
    jump = function(key) return cur:jump(key) end,
    jump_back = function(key) return cur:jump_back(key) end,
    step = function() return cur:step() end,
    get = function() return cur:get(true) end,
    seize = function() return cur:seize() end,
    set_value = function(key) return cur:set_value(key) end,
    transaction = function(key)
      return db:transaction(function() db:remove(key) return #key % 2 == 0 end)
    end,
  }
  local names = {}
  for name in pairs(actions) do names[#names + 1] = name end
  table.sort(names)
  for _ = 1, count * times do
    local name = names[math.random(#names)]
    if actions[name](tostring(math.random(count))) then done[name] = (done[name] or 0) + 1 end
  end
  for _, name in ipairs(names) do outmap[name] = (done[name] or 0) > 0 end
  outmap.consistent = #db:match_prefix("") == db:count()
  return kt.RVSUCCESS
end
