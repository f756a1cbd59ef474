--@ before
-- The loop patterns for Tarantool: a space in memory with a tree, no log.
box.cfg { wal_mode = "none", log_level = 1 }
local function fresh()
  if box.space.patterns then box.space.patterns:drop() end
  local space = box.schema.space.create("patterns")
  space:create_index("primary", { parts = { 1, "string" } })
  return space
end
--@ put
db:replace { key, key }
--@ add
if not db:get(key) then
  db:insert { key, key }
  sum = sum + 1
end
--@ append
local old = db:get(key)
db:replace { key, (old and old[2] or "") .. key }
--@ get
local found = db:get(key)
if found then sum = sum + #found[2] end
--@ scan
for _, found in db:pairs(nil, { iterator = "GE" }) do sum = sum + #found[1] + #found[2] end
--@ scan_back
for _, found in db:pairs(nil, { iterator = "LE" }) do sum = sum + #found[1] + #found[2] end
--@ delete
if db:delete(key) then sum = sum + 1 end
--@ replace
if db:get(key) then
  db:replace { key, key }
  sum = sum + 1
end
--@ increment
local name = "#" .. key
local old = db:get(name)
local new = (old and old[2] or 0) + draw(10)
db:replace { name, new }
sum = sum + new
--@ compare_and_set
local old = db:get(key)
if old and old[2] == key then
  db:replace { key, key }
  sum = sum + 1
end
--@ extend
local old = db:get(key)
if old then db:replace { key, old[2] .. "+" } end
--@ begin_walk
local last
--@ walk
local found = db:select(last, { iterator = "GT", limit = 1 })[1]
last = found and found[1]
--@ after
local loops = run
local function run(db, pattern, n)
  box.begin()
  local sum = loops(db, pattern, n)
  box.commit()
  return sum
end
-- Otherwise it would go on to serve.
local quit = os.exit
