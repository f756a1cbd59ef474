-- The path of a request through hooks, handler and filters.

local core = ...

local apache = core.apache
local begin, finish_request = apache.begin, apache.finish_request
local respond, code_of, check, text_of = apache.respond, apache.code_of, apache.check, apache.text_of
local methods = apache.methods
local type, error, tostring, xpcall, rawget = type, error, tostring, xpcall, rawget
local create, resume, status = coroutine.create, core.bounded.coroutine.resume, coroutine.status
local concat = table.concat
local native, context = core.native, core.native.context

local OK, DECLINED = 0, -1

-- The functions of each phase, in the order of their files.
local hooks = {
  quick_handler = {}, translate_name = {}, access_checker = {}, type_checker = {}, fixups = {},
  insert_filter = {}, log = {},
}
apache.hooks = hooks

-- Scripts that answer requests: by path, and by a route without parameter names.
local by_path, by_route = {}, {}

local has_hooks = false

function apache.add_hook(phase, run)
  has_hooks = true
  local list = hooks[phase]
  list[#list + 1] = run
end

function apache.add_script(script)
  by_path[script.path], by_route[script.method .. " " .. script.pattern] = script, script
end

-- Calls the functions of a phase until one handles it.
local function run_first(phase, r)
  local list = hooks[phase]
  for i = 1, #list do
    local code = code_of(list[i](r))
    if code ~= DECLINED then return code end
  end
  return DECLINED
end

-- Calls all functions of a phase, until one objects.
local function run_all(phase, r)
  local list = hooks[phase]
  for i = 1, #list do
    local code = code_of(list[i](r))
    if code ~= DECLINED and code ~= OK then return code end
  end
  return OK
end

-- Runs a filter over a text: what it yields first goes before the text, what it yields last goes after it.
local function filtered(filter, r, text)
  local globals, run, pieces = filter.globals, filter.run, {}
  local thread = create(run)
  local function step(bucket)
    globals.bucket = bucket
    local ok, piece = resume(thread, r)
    globals.bucket = nil
    if not ok then error(piece, 0) end
    if type(piece) == "number" then piece = tostring(piece) end
    pieces[#pieces + 1] = type(piece) == "string" and piece or nil
  end
  step(nil)
  -- A filter that does not yield declines.
  if status(thread) == "dead" then return text end
  if text ~= "" then step(text) end
  if status(thread) ~= "dead" then step(nil) end
  return concat(pieces)
end

function apache.filter_input(request, body)
  return filtered(request.script.input_filter, request.r, body)
end

-- The output filters of files by function name: {filter =, paths = of all files that have one of that name}.
local offered = {}

function apache.offer_output_filter(name, filter, path)
  local offer = offered[name] or { paths = {} }
  offered[name] = offer
  offer.filter = filter
  offer.paths[#offer.paths + 1] = path
end

-- The filter of another file, if it is unambiguous.
local function find_filter(name)
  local offer = offered[name]
  if offer and #offer.paths > 1 then
    error("several files have an output filter '" .. name .. "': " .. concat(offer.paths, ", ") .. "; rename all but one", 3)
  end
  return offer and offer.filter
end

local function add_filter(request, filter)
  request.pieces = request.pieces or {}
  request.filters = request.filters or {}
  request.filters[#request.filters + 1] = filter
end

-- A filter is a function of the answering file, or the output_filter of another one.
function methods.add_output_filter(self, name)
  local request = check(self, "add_output_filter")
  name = text_of(name, 1, "add_output_filter")
  local run = rawget(request.script.globals, name)
  local filter = type(run) == "function" and { run = run, globals = request.script.globals }
    or find_filter(name)
  if not filter then
    error("no output filter '" .. name .. "'; it is the name of a function of this file, or of the output_filter of another", 2)
  end
  add_filter(request, filter)
end

local function send_filtered(request)
  local text = concat(request.pieces)
  request.pieces = nil
  for i = 1, #request.filters do text = filtered(request.filters[i], request.r, text) end
  if native.response_write(context, text, #text) ~= 1 then native.fail(3) end
end

-- Asks the hooks which script should answer; if there is none, the result is not found.
local function translated(r, request)
  local script, uri = request.script, r.uri
  local code = run_first("translate_name", r)
  if code ~= OK and code ~= DECLINED then return nil, code end
  if r.filename ~= script.path then return by_path[r.filename], 404 end
  if r.uri ~= uri then return by_route[r.method .. " " .. r.uri] or by_route["* " .. r.uri], 404 end
  return script
end

-- The phases up to the handler; gives its result, or that of the phase that ended the request.
local function run_phases(r, request)
  local code = run_first("quick_handler", r)
  if code ~= DECLINED then return code end
  if #hooks.translate_name > 0 then
    local script, refused = translated(r, request)
    if not script then return refused end
    request.script = script
  end
  code = run_all("access_checker", r)
  if code == OK then code = run_first("type_checker", r) end
  if code ~= OK and code ~= DECLINED then return code end
  code = run_all("fixups", r)
  if code ~= OK then return code end
  run_all("insert_filter", r)
  local filter = request.script.output_filter
  if filter then add_filter(request, filter) end
  return code_of(request.script.run(r))
end

local LEVEL_ERROR = 0

-- The response is made; a failure here changes nothing of it.
local function run_log_hooks(r, request)
  request.is_answered = true
  for i = 1, #hooks.log do
    local ok, failure = xpcall(hooks.log[i], core.on_error, r)
    if not ok then
      local message = tostring(failure.message)
      native.log(context, LEVEL_ERROR, message, #message)
    end
  end
end

local function answer_in_phases(script)
  local r, request = begin(script)
  local code = run_phases(r, request)
  local is_own = code == OK or code == -2 or code >= 200 and code < 300
  if request.pieces and is_own then send_filtered(request) end
  respond(request, code)
  run_log_hooks(r, request)
  finish_request()
end

-- Makes a script a procedure.
function apache.procedure(script)
  return function()
    if has_hooks or script.output_filter then return answer_in_phases(script) end
    local r, request = begin(script)
    local code = code_of(script.run(r))
    if request.pieces then send_filtered(request) end
    respond(request, code)
    finish_request()
  end
end

local runs = core.runs
function core.dispatch(index) runs[index]() end
