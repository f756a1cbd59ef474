--@ before
-- The loop patterns over a Lua table: no store at all.
local arg = { ... }
local function fresh()
  return {}
end
--@ put
db[key] = key
--@ add
if not db[key] then
  db[key] = key
  sum = sum + 1
end
--@ append
db[key] = (db[key] or "") .. key
--@ get
local value = db[key]
if value then sum = sum + #value end
--@ scan
for key, value in pairs(db) do sum = sum + #key + #value end
--@ scan_back
for key, value in pairs(db) do sum = sum + #key + #value end
--@ delete
if db[key] then
  db[key] = nil
  sum = sum + 1
end
--@ replace
if db[key] then
  db[key] = key
  sum = sum + 1
end
--@ increment
local name = "#" .. key
db[name] = (db[name] or 0) + draw(10)
sum = sum + db[name]
--@ compare_and_set
if db[key] == key then
  db[key] = key
  sum = sum + 1
end
--@ extend
local value = db[key]
if value then db[key] = value .. "+" end
--@ begin_walk
local last
--@ walk
if last and not db[last] then last = nil end
last = next(db, last)
--@ after
local function quit() end
