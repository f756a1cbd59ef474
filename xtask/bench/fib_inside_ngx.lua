-- dialect: ngx
-- route: GET /bench/ngx/fib_inside
-- A file of the dialect is run for each request, and so makes this function anew.
local function fib(n)
  if n < 2 then
    return n
  end
  return fib(n - 1) + fib(n - 2)
end

local start = os.clock()
assert(fib(37) == 24157817)
ngx.say(os.clock() - start)
