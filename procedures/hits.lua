-- Counts how often pages are seen.
--
--   redis-cli FCALL hits.count 1 /index
--   redis-cli FCALL hits.top 0 / 10
--   curl -X POST http://127.0.0.1:7653/hits/index
--   curl http://127.0.0.1:7653/hits/index

local tokaido = require "tokaido"

local hits = {}

-- Counts one more hit of a page, and tells how many it has.
hits.count = tokaido.write(function(tx, page)
  return tx.hits:increment(page, 1)
end)

-- The pages that start with `prefix` and have the most hits: up to `limit` pairs of page and count.
hits.top = tokaido.read(function(tx, prefix, limit)
  local pages = {}
  for page, count in tx.hits:scan { prefix = prefix } do
    pages[#pages + 1] = { page, tonumber(count) }
  end
  table.sort(pages, function(a, b)
    if a[2] ~= b[2] then return a[2] > b[2] end
    return a[1] < b[1]
  end)
  local top = {}
  for i = 1, math.min(tonumber(limit) or 10, #pages) do top[i] = pages[i] end
  return top
end)

-- A page's hits.
hits.page = tokaido.http("GET /hits/:page", function(tx, req)
  local page = req.params.page
  return { page = page, hits = tonumber(tx.hits:get(page) or 0) }
end)

-- One more hit.
hits.visit = tokaido.http("POST /hits/:page", function(tx, req)
  local page = req.params.page
  return { page = page, hits = hits.count(tx, page) }
end)

return hits
