-- What the handles of hashes, lists, sets, sorted sets and streams share. A handle is a database and a key. It
-- holds no part of the value, so the next call sees whatever was written by other means.

local core = ...

local text = core.text
local type, error, pairs, tostring, setmetatable = type, error, pairs, tostring, setmetatable

-- Databases without collections also have the methods that make handles, but there they only raise.
local function refuse(class, method, engine)
  class[method] = function(self)
    if type(self) ~= "table" then error(text.NO_COLON, 2) end
    error(tostring(self) .. " is a " .. engine .. ", which has no hashes, lists or sets; use a database "
      .. "that the store has itself, as tx.main", 2)
  end
end

-- The metatable of handles whose methods are in `class`.
function core.handle_meta(class, what)
  core[what.class] = class
  setmetatable(class, {
    __index = function(_, name)
      error("a " .. what.name .. " has no method '" .. tostring(name) .. "'", 2)
    end,
  })
  return {
    __index = class,
    __newindex = function(_, name)
      error("a " .. what.name .. " has no field '" .. tostring(name) .. "'; " .. what.write, 2)
    end,
    __tostring = function(self) return what.name .. " " .. self.key end,
    __metatable = core.OURS,
  }
end

-- The metatable of the handles that `db:method(key)` makes.
function core.handles(method, class, what)
  refuse(core.Cache, method, "cache")
  refuse(core.Cdb, method, "constant one (cdb)")
  return core.handle_meta(class, what)
end

-- The number of entries in the first page of a loop, and the maximum for the others.
core.PAGE_ENTRIES_FIRST, core.PAGE_ENTRIES_MAX = 16, 128

-- A position or a rank, as an integer that a double holds exactly.
function core.position(position, what, level)
  if type(position) == "number" and position == math.floor(position)
    and position >= -2 ^ 53 and position <= 2 ^ 53 then
    return position
  end
  error(what .. " is an integer, this is " .. text.shown(position), level or 3)
end

-- Refuses options that no range of a collection has. Called by a function that the method calls.
function core.check_options(range, options, what, names)
  if type(range) ~= "table" then
    error("a range of " .. what .. " is a table, as {reverse = true}, this is "
      .. text.described(range), 4)
  end
  for name in pairs(range) do
    if not options[name] then
      error("a range of " .. what .. " has no option '" .. tostring(name) .. "'; there are " .. names, 4)
    end
  end
end
