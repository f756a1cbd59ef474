-- Procedures that give back what they are given, or one value of each kind.

local tokaido = require "tokaido"

local values = {}

values.echo = tokaido.read(function(_, ...)
  return { ... }
end)

values.kinds = tokaido.read(function()
  return { "text", 42, true, { 1, 2 } }
end)

values.none = tokaido.read(function() end)

return values
