-- dialect: ngx
-- route: GET /bench/ngx/dict
-- Processor seconds for 10^6 rounds of what the query names, once the loop is warm.
local dict = ngx.shared.memcached
local keys = {}
for i = 1, 1000 do
  keys[i] = "key:" .. i
  dict:set(keys[i], i)
end

local loops = {
  get = function(count)
    local sum = 0
    for i = 1, count do
      sum = sum + dict:get(keys[i % 1000 + 1])
    end
    return sum
  end,
  set = function(count)
    for i = 1, count do
      assert(dict:set(keys[i % 1000 + 1], i))
    end
  end,
  incr = function(count)
    for i = 1, count do
      assert(dict:incr(keys[i % 1000 + 1], 1))
    end
  end,
}

local loop = loops[ngx.var.args]
loop(1e5)
collectgarbage()
local start = os.clock()
loop(1e6)
ngx.say(os.clock() - start)
