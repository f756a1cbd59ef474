-- Loop patterns over a dictionary. A comment that begins with an at sign is replaced by the statements of that name in the file of a system. They
-- find their key in `key`, and add to `sum` what can be seen of their effects. So all systems run the same loops, and none of them pays for a
-- function that would wrap its calls.

local state

-- Pseudo-random numbers, the same in every language: the minimal standard generator of Park and Miller.
local function draw(n)
  state = state * 16807 % 2147483647
  return state % n
end

local function order(db, n, is_random, has_etc)
  local sum = 0
  state = 88675123
  for i = 1, n do
    local key = tostring(is_random and draw(n) + 1 or i)
    --@ put
  end
  if has_etc then
    for i = 1, n do
      local key = tostring(is_random and draw(n) + 1 or i)
      --@ add
    end
    for i = 1, n do
      local key = tostring(is_random and draw(n) + 1 or i)
      --@ append
    end
  end
  for i = 1, n do
    local key = tostring(is_random and draw(n) + 1 or i)
    --@ get
  end
  if has_etc then
    --@ scan
    --@ scan_back
  end
  for i = 1, n do
    local key = tostring(is_random and draw(n) + 1 or i)
    --@ delete
  end
  return sum
end

local function wicked(db, n, iterations)
  local sum = 0
  state = 88675123
  --@ begin_walk
  for _ = 1, n * iterations do
    local key = tostring(draw(n) + 1)
    local action = draw(12)
    if action == 0 then
      --@ put
    elseif action == 1 then
      --@ add
    elseif action == 2 then
      --@ replace
    elseif action == 3 then
      --@ append
    elseif action == 4 then
      --@ increment
    elseif action == 5 then
      --@ compare_and_set
    elseif action == 6 then
      --@ delete
    elseif action == 7 then
      --@ extend
    elseif action == 8 then
      -- After the last record it starts again. What a cursor meets when records are deleted under
      -- it differs between systems, so it is not part of the sum.
      --@ walk
    else
      --@ get
    end
  end
  return sum
end

-- Runs a pattern by its name.
local function run(db, pattern, n)
  local iterations = pattern:match("^wicked(%d)$")
  if iterations then
    return wicked(db, n, tonumber(iterations))
  end
  return order(db, n, pattern == "random" or pattern == "both", pattern == "etc" or pattern == "both")
end
