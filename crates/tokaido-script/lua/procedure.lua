-- `tokaido.read`, `tokaido.write` and `tokaido.http`: what makes a function a procedure.

local core = ...

local setmetatable, getmetatable, type, error = setmetatable, getmetatable, type, error

local READ_METHODS = { GET = true, HEAD = true, OPTIONS = true }
local METHODS = {
  GET = true, HEAD = true, OPTIONS = true, POST = true, PUT = true, PATCH = true, DELETE = true,
}

-- A procedure is called like the function it was made from, with the transaction passed on.
local Procedure = {
  __call = function(self, ...) return self.run(...) end,
  __newindex = function() error("a procedure cannot be changed", 2) end,
  __tostring = function(self) return self.mode .. " procedure" end,
}

local function is_procedure(value)
  return type(value) == "table" and getmetatable(value) == Procedure
end

local function check_function(run, what)
  if type(run) ~= "function" then
    error(what .. " takes a function, this is " .. core.text.described(run), 3)
  end
end

local procedure = { is = is_procedure }

function procedure.read(run)
  check_function(run, "tokaido.read")
  return setmetatable({ run = run, mode = "read" }, Procedure)
end

function procedure.write(run)
  check_function(run, "tokaido.write")
  return setmetatable({ run = run, mode = "write" }, Procedure)
end

local function check_route(route)
  local method, pattern
  if type(route) == "string" then method, pattern = route:match "^(%u+) (/%S*)$" end
  if not method then
    error([[a route is a method and a path, as "GET /hits/:page"]], 3)
  end
  if not METHODS[method] then error("no method " .. method .. " is served", 3) end
  local rest = pattern
  while rest ~= "" do
    local segment, after = rest:match "^/([^/]*)(.*)$"
    if (segment == ":" or segment == "*") then
      error("a parameter of a route needs a name, as in /hits/:page", 3)
    end
    if segment:sub(1, 1) == "*" and after ~= "" then
      error("*" .. segment:sub(2) .. " takes the rest of the path, so it comes last", 3)
    end
    rest = after
  end
  return method, pattern
end

function procedure.http(route, handler)
  local method, pattern = check_route(route)
  local mode = READ_METHODS[method] and "read" or "write"
  if is_procedure(handler) then
    if handler.route then error("a handler is a function, or one in tokaido.read or .write", 2) end
    handler, mode = handler.run, handler.mode
  end
  check_function(handler, "tokaido.http")
  return setmetatable(
    { run = handler, mode = mode, method = method, pattern = pattern, route = route }, Procedure)
end

core.procedure = procedure
