-- What Japanese companies pay, from a file with the columns code, market, name, average age and
-- average income, separated by tabs. It is loaded by
--
--   tokaido load --db companies --key 3 --value 2,4,5 FILE
--
-- so that a record is: name → market, age and income, separated by tabs, as
-- "東証1部<TAB>45.3歳<TAB>6,690千円". With `--value 5` the value is the income alone, and the
-- companies have no market. Some companies tell no income ("-千円"); they do not count.
--
--   redis-cli FCALL companies.top 0 10
--   curl http://127.0.0.1:7653/companies/markets

local tokaido = require "tokaido"

local companies = {}

local UNKNOWN_MARKET = "unknown"

-- Market and income in thousands of yen; the income is nil for one that does not tell it.
local function parse(value)
  local market, _, income = value:match "^([^\t]*)\t([^\t]*)\t([^\t]*)$"
  if not market then market, income = UNKNOWN_MARKET, value end
  local digits = income:gsub(",", ""):match "^(%d+)千円$"
  return market, tonumber(digits)
end

-- Average income by market, the best paying first: a list of {market, companies, average_income}.
companies.markets = tokaido.read(function(tx)
  local by_market, markets = {}, {}
  for _, value in tx.companies:scan() do
    local name, income = parse(value)
    if income then
      local market = by_market[name]
      if not market then
        market = { market = name, companies = 0, total = 0 }
        by_market[name] = market
        markets[#markets + 1] = market
      end
      market.companies = market.companies + 1
      market.total = market.total + income
    end
  end
  for _, market in ipairs(markets) do
    market.average_income = market.total / market.companies
    market.total = nil
  end
  table.sort(markets, function(a, b)
    if a.average_income ~= b.average_income then return a.average_income > b.average_income end
    return a.market < b.market
  end)
  return markets
end)

-- The `n` companies that pay best: a list of {name, market, income}.
companies.top = tokaido.read(function(tx, n)
  local all = {}
  for name, value in tx.companies:scan() do
    local market, income = parse(value)
    if income then all[#all + 1] = { name = name, market = market, income = income } end
  end
  table.sort(all, function(a, b)
    if a.income ~= b.income then return a.income > b.income end
    return a.name < b.name
  end)
  local top = {}
  for i = 1, math.min(tonumber(n) or 10, #all) do top[i] = all[i] end
  return top
end)

companies.markets_page = tokaido.http("GET /companies/markets", function(tx)
  return companies.markets(tx)
end)

companies.top_page = tokaido.http("GET /companies/top/:n", function(tx, req)
  return companies.top(tx, req.params.n)
end)

return companies
