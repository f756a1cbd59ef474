-- dialect: tokyotyrant
local function fib(n)
  if n < 2 then
    return n
  end
  return fib(n - 1) + fib(n - 2)
end

function fib_tyrant(key, value)
  local start = os.clock()
  assert(fib(37) == 24157817)
  return os.clock() - start
end
