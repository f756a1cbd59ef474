-- dialect: kyototycoon
-- The loop patterns as patterns.lua has them, step by step, in the Lua of Kyoto Tycoon.

local kt = __kyototycoon__
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

function order(inmap, outmap)
  local db, n = kt.dbs[inmap.database], tonumber(inmap.keys)
  local is_random, has_etc = inmap.is_random == "true", inmap.has_etc == "true"
  local sum = 0
  state = 88675123
  for i = 1, n do
    local key = tostring(is_random and draw(n) + 1 or i)
    db:set(key, key)
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
    local cursor = db:cursor()
    cursor:jump()
    while true do
      local key, value = cursor:get(true)
      if not key then break end
      sum = sum + #key + #value
    end
    cursor:jump_back()
    while true do
      local key, value = cursor:get()
      if not key then break end
      sum = sum + #key + #value
      cursor:step_back()
    end
  end
  for i = 1, n do
    if db:remove(tostring(is_random and draw(n) + 1 or i)) then sum = sum + 1 end
  end
  outmap.sum = sum
  return kt.RVSUCCESS
end

function wicked(inmap, outmap)
  local db, n = kt.dbs[inmap.database], tonumber(inmap.keys)
  local iterations = tonumber(inmap.iterations)
  local sum = 0
  local cursor = db:cursor()
  cursor:jump()
  state = 88675123
  for _ = 1, n * iterations do
    local key = tostring(draw(n) + 1)
    local action = draw(12)
    if action == 0 then
      db:set(key, key)
    elseif action == 1 then
      if db:add(key, key) then sum = sum + 1 end
    elseif action == 2 then
      if db:replace(key, key) then sum = sum + 1 end
    elseif action == 3 then
      db:append(key, key)
    elseif action == 4 then
      sum = sum + db:increment("#" .. key, draw(10))
    elseif action == 5 then
      if db:cas(key, key, key) then sum = sum + 1 end
    elseif action == 6 then
      if db:remove(key) then sum = sum + 1 end
    elseif action == 7 then
      local value = db:get(key)
      if value then db:set(key, value .. "+") end
    elseif action == 8 then
      -- Behind the last record it begins again. What a cursor meets when others delete under it
      -- differs from store to store, so it is no part of the sum.
      if not cursor:get(true) then cursor:jump() end
    else
      local value = db:get(key)
      if value then sum = sum + #value end
    end
  end
  outmap.sum = sum
  return kt.RVSUCCESS
end
