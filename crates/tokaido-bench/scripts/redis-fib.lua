-- fib(n) by recursion, and the seconds that it takes, for EVAL.
local function fib(n)
  if n < 2 then
    return n
  end
  return fib(n - 1) + fib(n - 2)
end

local function now()
  local time = redis.call("TIME")
  return time[1] + time[2] / 1000000
end

local start = now()
local result = fib(tonumber(ARGV[1]))
return string.format("%d %.6f", result, now() - start)
