-- dialect: ngx
-- route: GET /bench/ngx/re
-- Processor seconds for this many searches (?count=), in one of the ways below (?way=), once the loop is warm.
local find, pattern = ngx.re.find, [[\w+\.]]
local count = tonumber(ngx.var.arg_count) or 1e7

local ways = {}

function ways.jo(count)
  local found
  for _ = 1, count do
    found = find("hello, world.", pattern, "jo")
  end
  return found
end

function ways.without_options(count)
  local found
  for _ = 1, count do
    found = find("hello, world.", pattern)
  end
  return found
end

function ways.string_find(count)
  local find, found = string.find
  for _ = 1, count do
    found = find("hello, world.", "%w+%.")
  end
  return found
end

-- The obvious measurement: a single call between two readings of a clock that is read once for each request.
if ngx.var.arg_way == "naive" then
  ngx.update_time()
  local start = ngx.now()
  find("hello, world.", pattern, "jo")
  ngx.update_time()
  ngx.say(ngx.now() - start)
  return
end

local search = ways[ngx.var.arg_way or "jo"]
search(count / 10)
collectgarbage()
local start = os.clock()
local found = search(count)
local seconds = os.clock() - start
assert(found == 8)
ngx.say(seconds)
