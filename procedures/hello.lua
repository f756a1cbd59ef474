-- The smallest procedures: a page, and something to compute.
--
--   curl http://127.0.0.1:7653/hello
--   curl http://127.0.0.1:7653/fib/30

local tokaido = require "tokaido"

local hello = {}

hello.world = tokaido.http("GET /hello", function()
  return "hello, world"
end)

local function fib(n)
  if n < 2 then return n end
  return fib(n - 1) + fib(n - 2)
end

-- fib(37) takes about a tenth of a second; far above that the time limit ends it.
hello.fib = tokaido.http("GET /fib/:n", function(tx, req)
  local n = tonumber(req.params.n)
  if not n or n < 0 or n ~= math.floor(n) then
    return 400, "n is a whole number, as in /fib/30"
  end
  return tokaido.text(fib(n))
end)

return hello
