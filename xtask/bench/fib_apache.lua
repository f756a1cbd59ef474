-- dialect: mod_lua
-- route: GET /bench/mod_lua/fib
local function fib(n)
  if n < 2 then
    return n
  end
  return fib(n - 1) + fib(n - 2)
end

function handle(r)
  local start = os.clock()
  assert(fib(37) == 24157817)
  r:puts(os.clock() - start, "\n")
  return apache2.OK
end
