-- Scripts of `tokaido run`: what a handler sends is printed.

local core = ...

local ngx, joined = core.ngx, core.joined
local tostring, select, rawset, concat = tostring, select, rawset, table.concat

local function say(...) return core.write_text(joined("say", ...) .. "\n") end
local function print_text(...) return core.write_text(joined("print", ...)) end

local function print_line(...)
  local parts = {}
  for i = 1, select("#", ...) do parts[i] = tostring((select(i, ...))) end
  core.write_out(concat(parts, "\t"))
end

-- The globals of scripts. There is no request around them, so the functions that send do not send.
function core.make_session()
  ngx.say, ngx.print = say, print_text
  ngx.flush, ngx.eof = function() return 1 end, function() return 1 end
  ngx.exit = core.exit
  local globals = core.globals_of_script()
  rawset(globals, "print", print_line)
  return globals
end
