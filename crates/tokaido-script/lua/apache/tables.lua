-- Tables of headers, and similar ones: the case of names is ignored, values are texts, and setting a value to nil
-- removes it.

local core = ...

local type, error, tostring, setmetatable, rawget = type, error, tostring, setmetatable, rawget
local lower, gsub, upper = string.lower, string.gsub, string.upper

core.apache = { PAGE = "docs/mod_lua.md" }
local apache = core.apache

-- The function that `r:regex` compiles with.
core.compile_regex = core.native.apache_regex_compile

-- Gives the actual metatable of a table, not what the table claims.
apache.metatable_of = core.libraries.debug.getmetatable

-- The key under which a table has its content; no script can name it.
local CONTENT = function() end

local function described(value)
  return value == nil and "nil" or type(value)
end

-- A text, given as a text or as a number; otherwise an error worded like those of Lua's own functions.
function apache.text_of(value, place, name, level)
  local kind = type(value)
  if kind == "string" then return value end
  if kind == "number" then return tostring(value) end
  error("bad argument #" .. place .. " to '" .. name .. "' (string expected, got "
    .. described(value) .. ")", level or 3)
end
local text_of = apache.text_of

local function find(content, name)
  return content.places[lower(name)]
end

-- Adds a value after those of the same name.
local function add(content, name, value)
  local count, key = content.count + 1, lower(name)
  content.names[count], content.values[count], content.count = name, value, count
  if not content.places[key] then content.places[key] = count end
end

-- A value that is removed leaves its slot empty.
local function remove(content, name)
  local key = lower(name)
  if not content.places[key] then return end
  for i = 1, content.count do
    local other = content.names[i]
    if other and lower(other) == key then content.names[i] = false end
  end
  content.places[key] = nil
end

local meta = {
  __index = function(self, name)
    local content = rawget(self, CONTENT)
    local place = find(content, text_of(name, 2, "__index"))
    return place and content.values[place]
  end,
  __newindex = function(self, name, value)
    local content = rawget(self, CONTENT)
    name = text_of(name, 2, "__newindex")
    if value == nil then
      remove(content, name)
      return
    end
    value = text_of(value, 3, "__newindex")
    local place = find(content, name)
    if place then
      local kept = content.names[place]
      remove(content, name)
      content.names[place], content.values[place] = kept, value
      content.places[lower(name)] = place
    else
      add(content, name, value)
    end
  end,
  __tostring = function() return "Apr.Table" end,
  __metatable = core.OURS,
}

function apache.new_table()
  return setmetatable({ [CONTENT] = { names = {}, values = {}, places = {}, count = 0 } }, meta)
end

function apache.add(self, name, value) add(rawget(self, CONTENT), name, value) end

-- Calls a function with each name and value.
function apache.each(self, visit)
  local content = rawget(self, CONTENT)
  for i = 1, content.count do
    local name = content.names[i]
    if name then visit(name, content.values[i]) end
  end
end

-- Adds a value to its name's list, and to the first values if it is the first one of its name.
function apache.first_and_all(firsts, lists, name, value)
  local list = lists[name]
  if list then
    list[#list + 1] = value
  else
    firsts[name], lists[name] = value, { value }
  end
end

-- What `*_table` gives: the first value of each name, and all its values as a list.
function apache.as_tables(self)
  local firsts, lists, spelled = {}, {}, {}
  apache.each(self, function(name, value)
    local key = lower(name)
    name = spelled[key] or name
    spelled[key] = name
    apache.first_and_all(firsts, lists, name, value)
  end)
  return firsts, lists
end

-- A header's name in the usual spelling; requests are read with all names in lower case.
function apache.spelled(name)
  return (gsub(gsub(name, "^%l", upper), "%-%l", upper))
end
