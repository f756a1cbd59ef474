-- Moves between two databases, each in one transaction, for the tests of backups.
local tokaido = require "tokaido"
local bank = {}

bank.open = tokaido.write(function(tx, account, balance)
  tx.left:put(account, balance)
  tx.right:put(account, balance)
end)

bank.move = tokaido.write(function(tx, account, amount, counter)
  tx.left:increment(account, -tonumber(amount))
  tx.right:increment(account, tonumber(amount))
  return tx.left:increment(counter, 1)
end)

return bank
