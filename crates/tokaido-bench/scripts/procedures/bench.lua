-- The procedures that `tokaido bench suite` and `cargo xtask bench server` call; what others run instead is beside.

local tokaido = require "tokaido"

local bench = {}

-- 300,000 operations in one transaction: each key set, got and removed.
bench.loop = tokaido.write(function(tx)
  local main = tx.main
  for i = 1, 100000 do
    local key = tostring(i)
    main:put(key, key)
  end
  for i = 1, 100000 do
    main:get(tostring(i))
  end
  for i = 1, 100000 do
    main:delete(tostring(i))
  end
  return 300000
end)

bench.hello = tokaido.http("GET /bench/hello", function()
  return "hello, world\n"
end)

local function fib(n)
  if n < 2 then
    return n
  end
  return fib(n - 1) + fib(n - 2)
end

bench.fib = tokaido.http("GET /bench/fib", function()
  return fib(37) .. "\n"
end)

-- The result, and the seconds of the processor that it takes.
bench.timed_fib = tokaido.read(function(_, n)
  n = tonumber(n) or 37
  local start = os.clock()
  local result = fib(n)
  return result .. " " .. os.clock() - start
end)

-- 10^7 gets of a value of 64 bytes.
bench.timed_gets = tokaido.write(function(tx)
  local main = tx.main
  main:put("a", ("x"):rep(64))
  local start = os.clock()
  for _ = 1, 10000000 do
    main:get("a")
  end
  return os.clock() - start
end)

return bench
