-- Procedures on a cache and a constant database. The server under test must have them: see
-- tests/engines.

local tokaido = require "tokaido"

local engines = {}

-- A read procedure that counts, in the cache.
engines.count = tokaido.read(function(tx, times)
  local hot, last = tx.hot, 0
  for _ = 1, tonumber(times) do last = hot:increment("count") end
  return last
end)

engines.fail_after_both = tokaido.write(function(tx)
  tx.main:put("k", "tree")
  tx.hot:put("k", "cache")
  error "no"
end)

-- Every value that the file has under a key, and the first and the last record as one view.
engines.port = tokaido.read(function(tx, name)
  return tx.ports:get_all(name)
end)

engines.ends = tokaido.read(function(tx)
  return { tx.ports:get("first"), tx.ports:get("last"), tx.ports:count() }
end)

return engines
