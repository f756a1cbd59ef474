-- dialect: mod_lua
-- route: GET /bench/mod_lua/fib
local function fib(n)
  if n < 2 then
    return n
  end
  return fib(n - 1) + fib(n - 2)
end

function handle(r)
  local n = tonumber(r:parseargs().n) or 37
  local start = os.clock()
  local result = fib(n)
  local seconds = os.clock() - start
  r:puts(result, " ", seconds, "\n")
  return apache2.OK
end
