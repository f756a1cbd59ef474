-- A counter of page hits: what the tests of every client call.

local tokaido = require "tokaido"

local hits = {}

hits.count = tokaido.write(function(tx, page)
  return tx.hits:increment(page, 1)
end)

hits.get = tokaido.read(function(tx, page)
  return tx.hits:get(page)
end)

-- Counts, and then fails: nothing of it may remain.
hits.count_and_fail = tokaido.write(function(tx, page)
  tx.hits:increment(page, 1)
  error("refused on purpose")
end)

hits.page = tokaido.http("GET /hits/:page", function(tx, req)
  return tx.hits:get(req.params.page) or "0"
end)

return hits
