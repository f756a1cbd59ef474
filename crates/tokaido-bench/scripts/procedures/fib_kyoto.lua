-- dialect: kyototycoon
local function fib(n)
  if n < 2 then
    return n
  end
  return fib(n - 1) + fib(n - 2)
end

function fib_kyoto(inmap, outmap)
  local start = os.clock()
  assert(fib(37) == 24157817)
  outmap.seconds = os.clock() - start
  return __kyototycoon__.RVSUCCESS
end
