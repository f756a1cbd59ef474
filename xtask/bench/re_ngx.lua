-- dialect: ngx
-- route: GET /bench/ngx/re
-- Seconds of the processor for 10^7 searches, once the loop is warm.
local find, regex = ngx.re.find, [[\w+\.]]

local function search(count)
  local found
  for _ = 1, count do
    found = find("hello, world.", regex, "jo")
  end
  assert(found == 8)
end

search(1e6)
collectgarbage()
local start = os.clock()
search(1e7)
ngx.say(os.clock() - start)
