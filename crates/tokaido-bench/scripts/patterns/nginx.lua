--@ before
-- The loop patterns as a handler over an nginx dictionary, which answers GET /bench/ngx/patterns?PATTERN,KEYS and empties it for "clear".
--@ put
db:set(key, key)
--@ add
if db:add(key, key) then sum = sum + 1 end
--@ append
db:set(key, (db:get(key) or "") .. key)
--@ get
local value = db:get(key)
if value then sum = sum + #value end
--@ scan
for _, key in ipairs(db:get_keys(0)) do sum = sum + #key + #db:get(key) end
--@ scan_back
for _, key in ipairs(db:get_keys(0)) do sum = sum + #key + #db:get(key) end
--@ delete
if db:get(key) then
  db:delete(key)
  sum = sum + 1
end
--@ replace
if db:replace(key, key) then sum = sum + 1 end
--@ increment
sum = sum + db:incr("#" .. key, draw(10), 0)
--@ compare_and_set
if db:get(key) == key then
  db:set(key, key)
  sum = sum + 1
end
--@ extend
local value = db:get(key)
if value then db:set(key, value .. "+") end
--@ begin_walk
--@ walk
db:get_keys(1)
--@ after
local db = ngx.shared.memcached
local pattern, n = ngx.var.args:match("^(%w+),(%d+)$")
if pattern then
  ngx.say(run(db, pattern, tonumber(n)))
else
  db:flush_all()
  ngx.say(db:flush_expired())
end
