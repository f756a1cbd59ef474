--@ before
-- dialect: kyototycoon
-- The loop patterns for Kyoto Tycoon.
local kt = __kyototycoon__
--@ put
db:set(key, key)
--@ add
if db:add(key, key) then sum = sum + 1 end
--@ append
db:append(key, key)
--@ get
local value = db:get(key)
if value then sum = sum + #value end
--@ scan
local cursor = db:cursor()
cursor:jump()
while true do
  local key, value = cursor:get(true)
  if not key then break end
  sum = sum + #key + #value
end
--@ scan_back
cursor:jump_back()
while true do
  local key, value = cursor:get()
  if not key then break end
  sum = sum + #key + #value
  cursor:step_back()
end
--@ delete
if db:remove(key) then sum = sum + 1 end
--@ replace
if db:replace(key, key) then sum = sum + 1 end
--@ increment
sum = sum + db:increment("#" .. key, draw(10))
--@ compare_and_set
if db:cas(key, key, key) then sum = sum + 1 end
--@ extend
local value = db:get(key)
if value then db:set(key, value .. "+") end
--@ begin_walk
local cursor = db:cursor()
cursor:jump()
--@ walk
if not cursor:get(true) then cursor:jump() end
--@ after
function patterns(inmap, outmap)
  outmap.sum = run(kt.db, inmap.pattern, tonumber(inmap.keys))
  return kt.RVSUCCESS
end
