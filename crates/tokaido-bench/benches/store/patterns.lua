-- The loop patterns of docs/performance.md. peers/kyoto.cc has the same in C++, step by step, and
-- the sums of both are compared.

local tokaido = require "tokaido"
local bxor, band, lshift, rshift = bit.bxor, bit.band, bit.lshift, bit.rshift

-- Numbers in no order, the same on both sides: Marsaglia's xorshift of 32 bits.
local state = 0
local function draw(n)
  local x = state
  x = bxor(x, lshift(x, 13))
  x = bxor(x, rshift(x, 17))
  x = bxor(x, lshift(x, 5))
  state = x
  return band(x, 0x7fffffff) % n
end

local patterns = {}

patterns.order = tokaido.write(function(tx, name, n, is_random, has_etc)
  local db = tx[name]
  local sum = 0
  state = 88675123
  for i = 1, n do
    local key = tostring(is_random and draw(n) + 1 or i)
    db:put(key, key)
  end
  if has_etc then
    for i = 1, n do
      local key = tostring(is_random and draw(n) + 1 or i)
      if db:add(key, key) then sum = sum + 1 end
    end
    for i = 1, n do
      local key = tostring(is_random and draw(n) + 1 or i)
      db:append(key, key)
    end
  end
  for i = 1, n do
    local value = db:get(tostring(is_random and draw(n) + 1 or i))
    if value then sum = sum + #value end
  end
  if has_etc then
    for key, value in db:scan() do sum = sum + #key + #value end
    for key, value in db:scan { reverse = true } do sum = sum + #key + #value end
  end
  for i = 1, n do
    if db:delete(tostring(is_random and draw(n) + 1 or i)) then sum = sum + 1 end
  end
  return sum
end)

patterns.wicked = tokaido.write(function(tx, name, n, iterations)
  local db = tx[name]
  local sum = 0
  local step, scan, last = db:scan()
  state = 88675123
  for _ = 1, n * iterations do
    local key = tostring(draw(n) + 1)
    local action = draw(12)
    if action == 0 then
      db:put(key, key)
    elseif action == 1 then
      if db:add(key, key) then sum = sum + 1 end
    elseif action == 2 then
      if db:replace(key, key) then sum = sum + 1 end
    elseif action == 3 then
      db:append(key, key)
    elseif action == 4 then
      sum = sum + db:increment("#" .. key, draw(10))
    elseif action == 5 then
      if db:compare_and_set(key, key, key) then sum = sum + 1 end
    elseif action == 6 then
      if db:delete(key) then sum = sum + 1 end
    elseif action == 7 then
      local value = db:get(key)
      if value then db:put(key, value .. "+") end
    elseif action == 8 then
      -- Behind the last record it begins again. What a cursor meets when others delete under it
      -- differs from store to store, so it is no part of the sum.
      last = step(scan, last)
    else
      local value = db:get(key)
      if value then sum = sum + #value end
    end
  end
  return sum
end)

return patterns
