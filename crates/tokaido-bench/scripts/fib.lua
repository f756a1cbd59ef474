-- fib(n) by recursion, and the processor seconds that it takes: for `tokaido run`, lua5.1, luajit and tarantool.
local n = tonumber((...)) or 37

local function fib(n)
  if n < 2 then
    return n
  end
  return fib(n - 1) + fib(n - 2)
end

local start = os.clock()
local result = fib(n)
local seconds = os.clock() - start
print(result, seconds)
