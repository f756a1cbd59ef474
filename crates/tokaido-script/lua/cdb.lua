-- A constant database: reads work as in any other database, writes are refused.

local core = ...

local Cdb = {}
local reads = {
  "get", "get_all", "get_many", "exists", "record", "ttl", "count", "size",
}
for _, name in ipairs(reads) do Cdb[name] = core.Database[name] end

for name in pairs(core.Database) do
  if not Cdb[name] then
    Cdb[name] = function(self)
      if type(self) ~= "table" then error(core.text.NO_COLON, 2) end
      error(tostring(self) .. " is a constant one (cdb) and is not written to; make a new file with "
        .. "`tokaido cdb make`, and rename it over the one that is served", 2)
    end
  end
end

core.Cdb = Cdb
