-- The clock, and dates as protocols write them.

local core = ...

local ngx, native = core.ngx, core.native
local context, reply, time_ms = native.context, native.reply, native.ngx_time_ms
local date = core.libraries.os.date
local type, tonumber, error, floor, match = type, tonumber, error, math.floor, string.match

-- The clock is read on each use, so there is nothing to update.
function ngx.update_time() end

function ngx.now()
  time_ms(context)
  return reply.number / 1000
end

function ngx.time()
  time_ms(context)
  return floor(reply.number / 1000)
end

function ngx.today() return (date("%Y-%m-%d", ngx.time())) end
function ngx.localtime() return (date("%Y-%m-%d %H:%M:%S", ngx.time())) end
function ngx.utctime() return (date("!%Y-%m-%d %H:%M:%S", ngx.time())) end

-- The last second of the year 9999.
local SECONDS_MAX = 253402300799

local function seconds_of(time)
  if type(time) ~= "number" then error("number argument only", 3) end
  if not (time > 0) then return 0 end
  return floor(time < SECONDS_MAX and time or SECONDS_MAX)
end

function ngx.http_time(time)
  return (date("!%a, %d %b %Y %H:%M:%S GMT", seconds_of(time)))
end

-- From then on a two-digit year would be misread.
local YEAR_2038 = 2145916800

function ngx.cookie_time(time)
  local seconds = seconds_of(time)
  if seconds >= YEAR_2038 then return (date("!%a, %d-%b-%Y %H:%M:%S GMT", seconds)) end
  return (date("!%a, %d-%b-%y %H:%M:%S GMT", seconds))
end

local MONTHS = {
  Jan = 1, Feb = 2, Mar = 3, Apr = 4, May = 5, Jun = 6, Jul = 7, Aug = 8, Sep = 9, Oct = 10, Nov = 11, Dec = 12,
}
local DAYS = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }

local function is_leap(year) return year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0) end

-- Days from the beginning of 1970 to the beginning of a year.
local function days_before(year)
  local past = year - 1
  return 365 * (year - 1970) + (floor(past / 4) - floor(past / 100) + floor(past / 400)) - 477
end

local function seconds_from(day, month, year, hour, minute, second)
  day, month, year = tonumber(day), MONTHS[month], tonumber(year)
  hour, minute, second = tonumber(hour), tonumber(minute), tonumber(second)
  if not month or hour > 23 or minute > 59 or second > 59 then return nil end
  local days = month == 2 and is_leap(year) and 29 or DAYS[month]
  if day < 1 or day > days then return nil end
  local whole = days_before(year) + day - 1
  for earlier = 1, month - 1 do
    whole = whole + (earlier == 2 and is_leap(year) and 29 or DAYS[earlier])
  end
  return ((whole * 24 + hour) * 60 + minute) * 60 + second
end

-- The three forms of RFC 9110.
function ngx.parse_http_time(text)
  if type(text) ~= "string" then error("string argument only", 2) end
  local day, month, year, hour, minute, second =
    match(text, "^%a*, *(%d%d) (%a%a%a) (%d%d%d%d) (%d%d):(%d%d):(%d%d)")
  if day then return (seconds_from(day, month, year, hour, minute, second)) end
  day, month, year, hour, minute, second =
    match(text, "^%a*, *(%d%d)%-(%a%a%a)%-(%d%d) (%d%d):(%d%d):(%d%d)")
  if day then
    year = tonumber(year)
    return (seconds_from(day, month, year + (year < 70 and 2000 or 1900), hour, minute, second))
  end
  month, day, hour, minute, second, year =
    match(text, "^%a* (%a%a%a) ([ %d]%d) (%d%d):(%d%d):(%d%d) (%d%d%d%d)")
  if day then return (seconds_from(day, month, year, hour, minute, second)) end
  return nil
end
