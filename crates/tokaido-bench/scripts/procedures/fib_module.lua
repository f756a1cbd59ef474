-- dialect: ngx
-- fib(37), and the seconds of the processor that it takes.
local function fib(n)
  if n < 2 then
    return n
  end
  return fib(n - 1) + fib(n - 2)
end

return function()
  local start = os.clock()
  assert(fib(37) == 24157817)
  return os.clock() - start
end
