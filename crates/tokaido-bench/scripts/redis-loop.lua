-- The loop of bench.lua, as Redis runs it.
for i = 1, 100000 do
  local key = tostring(i)
  redis.call("SET", key, key)
end
for i = 1, 100000 do
  redis.call("GET", tostring(i))
end
for i = 1, 100000 do
  redis.call("DEL", tostring(i))
end
return 300000
