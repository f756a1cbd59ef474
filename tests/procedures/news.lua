-- Writes that tell of themselves.

local tokaido = require "tokaido"

local news = {}

news.tell = tokaido.write(function(tx, channel, text)
  tx.main:put(channel, text)
  return tx:command("PUBLISH", channel, text)
end)

-- What it publishes must never be heard.
news.tell_and_fail = tokaido.write(function(tx, channel, text)
  tx:command("PUBLISH", channel, text)
  error("refused on purpose")
end)

news.whisper = tokaido.read(function(tx, channel, text)
  return tx:command("PUBLISH", channel, text)
end)

news.post = tokaido.http("POST /news/:channel", function(tx, req)
  tx.main:put(req.params.channel, req.body)
  return { heard = tx:command("PUBLISH", req.params.channel, req.body) }
end)

return news
