-- The stations of the Tokaido, the old road from Nihonbashi in Edo to Sanjo Ohashi in Kyoto. They
-- are loaded by
--
--   tokaido load --db stations --key 1 --value 2,3,4,5 stations.tsv
--
-- so that a record is: number of two digits, 00 to 54 → name in kanji, name in Latin letters,
-- province and kilometres from Nihonbashi, separated by tabs. Visits are counted in another
-- database, by number.
--
--   redis-cli FCALL stations.between 0 Hakone Mishima
--   curl http://127.0.0.1:7653/stations/10

local tokaido = require "tokaido"

local stations = {}

local function station_of(number, value)
  local kanji, romaji, province, km = value:match "^([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)$"
  if not kanji then
    error("station " .. number .. " is not loaded with --value 2,3,4,5: " .. value)
  end
  return { number = number, kanji = kanji, romaji = romaji, province = province, km = tonumber(km) }
end

-- "7", 7 and "07" are the same station.
local function key_of(number)
  local n = tonumber(number)
  return n and ("%02d"):format(n) or tostring(number)
end

-- A station by its number, its kanji or its Latin name in any case; nil if there is none.
local function find(tx, name)
  local key = key_of(name)
  local value = tx.stations:get(key)
  if value then return station_of(key, value) end
  local wanted = tostring(name):lower()
  for number, text in tx.stations:scan() do
    local station = station_of(number, text)
    if station.kanji == name or station.romaji:lower() == wanted then return station end
  end
  return nil
end

local function must_find(tx, name)
  local station = find(tx, name)
  if station then return station end
  error { message = "no station " .. tostring(name), code = "NOSTATION", status = 404 }
end

stations.find = tokaido.read(function(tx, name)
  return must_find(tx, name)
end)

-- How far it is from one station to another, in km, and what lies between them.
stations.between = tokaido.read(function(tx, from, to)
  local a, b = must_find(tx, from), must_find(tx, to)
  local first, last = a.number, b.number
  local reverse = first > last
  if reverse then first, last = last, first end
  local on_the_way = {}
  for number, value in tx.stations:scan { after = first, before = last, reverse = reverse } do
    on_the_way[#on_the_way + 1] = station_of(number, value).romaji
  end
  -- Tenths of a kilometre, like the list: the difference of two floats would show more digits.
  local km = math.floor(math.abs(a.km - b.km) * 10 + 0.5) / 10
  return { from = a.romaji, to = b.romaji, km = km, on_the_way = on_the_way }
end)

-- The provinces in the order of the road: a list of {province, stations}.
stations.by_province = tokaido.read(function(tx)
  local provinces = {}
  for number, value in tx.stations:scan() do
    local station = station_of(number, value)
    local last = provinces[#provinces]
    if not last or last.province ~= station.province then
      last = { province = station.province, stations = {} }
      provinces[#provinces + 1] = last
    end
    last.stations[#last.stations + 1] = station.romaji
  end
  return provinces
end)

-- Counts a visit, and tells how many there have been.
stations.visit = tokaido.write(function(tx, number)
  local station = must_find(tx, number)
  return tx.visits:increment(station.number)
end)

stations.page = tokaido.http("GET /stations/:number", function(tx, req)
  local station = must_find(tx, req.params.number)
  station.visits = tonumber(tx.visits:get(station.number) or 0)
  return station
end)

stations.provinces_page = tokaido.http("GET /stations", function(tx)
  return stations.by_province(tx)
end)

return stations
