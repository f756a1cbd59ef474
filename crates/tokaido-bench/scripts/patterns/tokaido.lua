--@ before
-- The loop patterns as a procedure.
local tokaido = require "tokaido"
--@ put
db:put(key, key)
--@ add
if db:add(key, key) then sum = sum + 1 end
--@ append
db:append(key, key)
--@ get
local value = db:get(key)
if value then sum = sum + #value end
--@ scan
for key, value in db:scan() do sum = sum + #key + #value end
--@ scan_back
for key, value in db:scan { reverse = true } do sum = sum + #key + #value end
--@ delete
if db:delete(key) then sum = sum + 1 end
--@ replace
if db:replace(key, key) then sum = sum + 1 end
--@ increment
sum = sum + db:increment("#" .. key, draw(10))
--@ compare_and_set
if db:compare_and_set(key, key, key) then sum = sum + 1 end
--@ extend
local value = db:get(key)
if value then db:put(key, value .. "+") end
--@ begin_walk
local step, scan, last = db:scan()
--@ walk
last = step(scan, last)
--@ after
return {
  run = tokaido.write(function(tx, pattern, n)
    return run(tx.main, pattern, tonumber(n))
  end),
}
