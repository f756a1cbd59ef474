-- dialect: ngx
-- route: GET /bench/ngx/fib_inside
-- A file of this dialect runs for each request, so this function is created anew.
local function fib(n)
  if n < 2 then
    return n
  end
  return fib(n - 1) + fib(n - 2)
end

local n = tonumber(ngx.var.arg_n) or 37
local start = os.clock()
local result = fib(n)
local seconds = os.clock() - start
ngx.say(result, " ", seconds)
