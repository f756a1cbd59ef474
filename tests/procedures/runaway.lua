-- Procedures that do not end by themselves.

local tokaido = require "tokaido"

local runaway = {}

runaway.spin = tokaido.write(function(tx)
  tx.main:put("spinning", "1")
  while true do
  end
end)

runaway.spin_protected = tokaido.write(function(tx)
  tx.main:put("spinning", "1")
  while true do
    pcall(function()
      while true do
      end
    end)
  end
end)

runaway.hoard = tokaido.write(function(tx)
  tx.main:put("hoarding", "1")
  local hoard = {}
  for i = 1, math.huge do
    hoard[i] = ("x"):rep(1000) .. i
  end
end)

return runaway
