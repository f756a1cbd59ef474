-- The 53 stations of the Tokaido, as `tokaido demo` loads them into the database `stations`.
--
-- The key is the number in two digits, from 00 (Nihonbashi in Edo) to 54 (Sanjo Ohashi in Kyoto).
-- The value is: kanji, name, province, km from Nihonbashi, with TABs between.

local tokaido = require "tokaido"

local LAST = 54

-- Made once, so that loops over the stations need not make them again.
local KEYS = {}
for number = 0, LAST do KEYS[number] = ("%02d"):format(number) end

local function parse(key, value)
  local kanji, name, province, km = value:match "^([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)$"
  return { number = key, kanji = kanji, name = name, province = province, km = tonumber(km) }
end

local function find(tx, name)
  for key, value in tx.stations:scan() do
    local station = parse(key, value)
    if station.name == name then return station end
  end
  error("there is no station called " .. tostring(name), 0)
end

local stations = {}

-- How far it is from one station to another.
stations.distance = tokaido.read(function(tx, from, to)
  local here, there = find(tx, from), find(tx, to)
  local km = math.abs(there.km - here.km)
  return { from = here.kanji, to = there.kanji, km = math.floor(km * 10 + 0.5) / 10 }
end)

-- The stations of a province, in the order of the road.
stations.province = tokaido.read(function(tx, province)
  local found = {}
  for key, value in tx.stations:scan() do
    local station = parse(key, value)
    if station.province == province then found[#found + 1] = station.kanji .. " " .. station.name end
  end
  return found
end)

-- Goes from one number to another, leaves a mark in the database `visits` at every station on the
-- way, and gives how many there were. A road that does not exist leaves no mark at all.
stations.travel = tokaido.write(function(tx, from, to)
  local count = 0
  for number = tonumber(from), tonumber(to) do
    local key = KEYS[number]
    if not key then error("the road ends at station " .. KEYS[LAST], 0) end
    tx.visits:increment(key)
    count = count + 1
  end
  return count
end)

-- Reads every station of the road, so many times over, and gives the number of reads.
stations.walk = tokaido.read(function(tx, times)
  local db, reads = tx.stations, 0
  for _ = 1, tonumber(times) do
    for number = 0, LAST do
      if db:get(KEYS[number]) then reads = reads + 1 end
    end
  end
  return reads
end)

-- One station, as a page of its own.
stations.page = tokaido.http("GET /stations/:number", function(tx, req, res)
  local key = req.params.number
  local value = tx.stations:get(key)
  if not value then error({ status = 404, message = "there is no station " .. key }, 0) end
  res:json(parse(key, value))
end)

return stations
