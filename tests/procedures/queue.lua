-- A queue of Redis' lists.

local tokaido = require "tokaido"

local queue = {}

queue.push = tokaido.write(function(tx, key, item)
  return tx:command("RPUSH", key, item)
end)

-- What would wait elsewhere gives nothing here.
queue.pop = tokaido.write(function(tx, key)
  return tx:command("BLPOP", key, "0") or nil
end)

return queue
