-- What the demo asks beyond the example procedures: work on many stations in one call.

local tokaido = require "tokaido"

local LAST = 54

-- Created once, so that loops over the stations need not create them again.
local KEYS = {}
for number = 0, LAST do KEYS[number] = ("%02d"):format(number) end

local journey = {}

-- Travels from one number to another, counts a visit at every station on the way, and returns how
-- many there were. If the road ends before that, no visit is counted.
journey.travel = tokaido.write(function(tx, from, to)
  local count = 0
  for number = tonumber(from), tonumber(to) do
    local key = KEYS[number]
    if not key then
      error { code = "ROAD_ENDS", message = "the road ends at station " .. KEYS[LAST] }
    end
    tx.visits:increment(key)
    count = count + 1
  end
  return count
end)

-- Reads every station of the road `times` times, and returns the number of reads.
journey.walk = tokaido.read(function(tx, times)
  local db, reads = tx.stations, 0
  for _ = 1, tonumber(times) do
    for number = 0, LAST do
      if db:get(KEYS[number]) then reads = reads + 1 end
    end
  end
  return reads
end)

return journey
