-- Questions to a list of companies, loaded with
--   tokaido load --db companies --key 3 --value 2,5 corps_age_income.txt
-- so that the key is a name, and the value is the market and the income, with a TAB between:
-- "東証1部	6,090千円". The income is in thousands of yen; "-千円" means that it is not known.

local tokaido = require "tokaido"

local companies = {}

-- Market and income of a value; the income is nil if it is not known.
local function parse(value)
  local market, income = value:match "^([^\t]*)\t([^\t]*)$"
  if not market then error("a value without two columns: " .. value) end
  local digits = income:match "^[%d,]+"
  return market, digits and tonumber((digits:gsub(",", "")))
end

-- For each market, how many companies say their income, and its mean.
companies.income_by_market = tokaido.read(function(tx)
  local markets = {}
  for _, value in tx.companies:scan() do
    local market, income = parse(value)
    if income then
      local sum = markets[market] or { companies = 0, total = 0 }
      sum.companies = sum.companies + 1
      sum.total = sum.total + income
      markets[market] = sum
    end
  end
  for _, sum in pairs(markets) do
    sum.mean = sum.total / sum.companies
    sum.total = nil
  end
  return markets
end)

-- The n companies with the highest incomes; those with the same one in the order of their names.
companies.top_by_income = tokaido.read(function(tx, n)
  local found = {}
  for name, value in tx.companies:scan() do
    local market, income = parse(value)
    if income then
      found[#found + 1] = { name = name, market = market, income = income }
    end
  end
  table.sort(found, function(a, b)
    if a.income ~= b.income then return a.income > b.income end
    return a.name < b.name
  end)
  for i = #found, n + 1, -1 do found[i] = nil end
  return found
end)

return companies
