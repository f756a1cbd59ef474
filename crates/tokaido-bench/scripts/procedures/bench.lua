-- The procedures that `tokaido bench suite` calls; what others run instead is beside.

local tokaido = require "tokaido"

local bench = {}

bench.hello = tokaido.http("GET /bench/hello", function()
  return "hello, world\n"
end)

local function fib(n)
  if n < 2 then
    return n
  end
  return fib(n - 1) + fib(n - 2)
end

-- The result, and the processor seconds that it takes.
bench.timed_fib = tokaido.read(function(_, n)
  n = tonumber(n) or 37
  local start = os.clock()
  local result = fib(n)
  return result .. " " .. os.clock() - start
end)

-- Processor seconds for this many gets of a value of 64 bytes.
bench.timed_gets = tokaido.write(function(tx, count)
  local main = tx.main
  main:put("a", ("x"):rep(64))
  local start = os.clock()
  for _ = 1, tonumber(count) do
    main:get("a")
  end
  return os.clock() - start
end)

return bench
