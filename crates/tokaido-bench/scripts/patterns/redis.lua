--@ before
local call = redis.call
--@ put
call("SET", key, key)
--@ add
sum = sum + call("SETNX", key, key)
--@ append
call("APPEND", key, key)
--@ get
local value = call("GET", key)
if value then sum = sum + #value end
--@ scan
local cursor = "0"
repeat
  local page = call("SCAN", cursor, "COUNT", 1000)
  cursor = page[1]
  local keys = page[2]
  local values = #keys > 0 and call("MGET", unpack(keys)) or {}
  for i = 1, #keys do sum = sum + #keys[i] + #values[i] end
until cursor == "0"
--@ scan_back
-- Keys have no order, so both directions are the same.
repeat
  local page = call("SCAN", cursor, "COUNT", 1000)
  cursor = page[1]
  local keys = page[2]
  local values = #keys > 0 and call("MGET", unpack(keys)) or {}
  for i = 1, #keys do sum = sum + #keys[i] + #values[i] end
until cursor == "0"
--@ delete
sum = sum + call("DEL", key)
--@ replace
if call("SET", key, key, "XX") then sum = sum + 1 end
--@ increment
sum = sum + call("INCRBY", "#" .. key, draw(10))
--@ compare_and_set
if call("GET", key) == key then
  call("SET", key, key)
  sum = sum + 1
end
--@ extend
local value = call("GET", key)
if value then call("SET", key, value .. "+") end
--@ begin_walk
local cursor = "0"
--@ walk
cursor = call("SCAN", cursor, "COUNT", 1)[1]
--@ after
return run(nil, ARGV[1], tonumber(ARGV[2]))
