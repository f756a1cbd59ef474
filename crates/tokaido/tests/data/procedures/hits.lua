-- What the tests call.

local tokaido = require "tokaido"

local hits = {}

hits.count = tokaido.write(function(tx, page)
  return tx.hits:increment(page, 1)
end)

hits.echo = tokaido.read(function(_, ...)
  return { ... }
end)

hits.refuse = tokaido.write(function(tx, page)
  tx.hits:increment(page, 1)
  error("refused on purpose")
end)

return hits
