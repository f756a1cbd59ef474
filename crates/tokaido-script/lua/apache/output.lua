-- What a handler sends: `r:puts` and the like, and the end of the response.

local core = ...

local apache, native = core.apache, core.native
local context, fail = native.context, native.fail
local response_write, response_header = native.response_write, native.response_header
local response_clear, respond = native.response_clear, native.respond
local methods, check, text_of = apache.methods, apache.check, apache.text_of
local select, type, tonumber, error, lower = select, type, tonumber, error, string.lower
local floor, find, format = math.floor, string.find, string.format

local YES = 1

-- The body as the handler gave it, without a type if the handler set none.
local BARE = 3

local function check_unanswered(request, level)
  if request.is_answered then
    error("the answer is made, and what is called for the log changes nothing of it", level + 1)
  end
end

-- Sends a piece of the body, or keeps it for the filters.
local function send(request, text, level)
  check_unanswered(request, level)
  local pieces = request.pieces
  if pieces then
    pieces[#pieces + 1] = text
  elseif response_write(context, text, #text) ~= YES then
    fail(level + 1)
  end
end

apache.send = send

function methods.puts(self, ...)
  local request, count = check(self, "puts"), select("#", ...)
  if count == 1 then
    send(request, text_of(..., 1, "puts"), 3)
    return
  end
  for i = 1, count do send(request, text_of(select(i, ...), i, "puts"), 3) end
end

function methods.write(self, text)
  local request = check(self, "write")
  text = text_of(text, 1, "write")
  send(request, text, 3)
  return #text
end

-- A response is sent as a whole when its handler is done.
function methods.flush(self)
  check(self, "flush")
  return true
end

local NAMES = {
  [300] = "Multiple Choices", [301] = "Moved Permanently", [302] = "Found", [303] = "See Other",
  [304] = "Not Modified", [307] = "Temporary Redirect", [308] = "Permanent Redirect",
  [400] = "Bad Request", [401] = "Unauthorized", [402] = "Payment Required", [403] = "Forbidden",
  [404] = "Not Found", [405] = "Method Not Allowed", [406] = "Not Acceptable",
  [408] = "Request Timeout", [409] = "Conflict", [410] = "Gone", [411] = "Length Required",
  [412] = "Precondition Failed", [413] = "Request Entity Too Large", [414] = "Request-URI Too Long",
  [415] = "Unsupported Media Type", [416] = "Requested Range Not Satisfiable",
  [417] = "Expectation Failed", [421] = "Misdirected Request", [422] = "Unprocessable Entity",
  [423] = "Locked", [424] = "Failed Dependency", [425] = "Too Early", [426] = "Upgrade Required",
  [428] = "Precondition Required", [429] = "Too Many Requests",
  [431] = "Request Header Fields Too Large", [451] = "Unavailable For Legal Reasons",
  [500] = "Internal Server Error", [501] = "Not Implemented", [502] = "Bad Gateway",
  [503] = "Service Unavailable", [504] = "Gateway Timeout", [505] = "HTTP Version Not Supported",
  [506] = "Variant Also Negotiates", [507] = "Insufficient Storage", [508] = "Loop Detected",
  [510] = "Not Extended", [511] = "Network Authentication Required",
}

-- Headers that only the server sets.
local OWN = { ["content-length"] = true, ["transfer-encoding"] = true, date = true, server = true }

local function send_header(name, value, add)
  if not OWN[lower(name)] and response_header(context, name, #name, value, #value, add) ~= YES then
    fail(5)
  end
end

-- Called only if there are headers: code that makes a function is not compiled.
local function send_table(headers, is_typed)
  apache.each(headers, function(name, value)
    if not (is_typed and lower(name) == "content-type") then send_header(name, value, 1) end
  end)
end

local function end_response(status)
  if respond(context, status, BARE, "", 0) ~= YES then fail(3) end
end

-- Ends a response that is the handler's own.
local function end_with(request, status)
  if not (status >= 200 and status <= 599) then status = 500 end
  local content_type = request.content_type
  if request.err_headers_out then send_table(request.err_headers_out, content_type) end
  if request.headers_out then send_table(request.headers_out, content_type) end
  if content_type then send_header("content-type", content_type, 0) end
  end_response(status)
end

-- A response whose body is the server's: of the headers that the handler set, only those for errors are sent,
-- and where a redirect leads.
local function end_with_status(request, status)
  if response_clear(context) ~= YES then fail(3) end
  request.pieces = nil
  local headers, own = request.headers_out, request.responses and request.responses[status]
  local location = headers and status >= 300 and status < 400 and headers.Location
  if own and find(own, "^https?://") then status, location, own = 302, own, nil end
  if request.err_headers_out then send_table(request.err_headers_out, true) end
  if location then send_header("location", location, 0) end
  local body = own
  if own then
    send_header("content-type", "text/html; charset=iso-8859-1", 0)
  elseif status >= 400 then
    send_header("content-type", "application/json", 0)
    body = format('{"error":{"message":"%s"}}\n', NAMES[status] or "Error")
  end
  if body and response_write(context, body, #body) ~= YES then fail(3) end
  request.status = status
  end_response(status)
end

-- Sets the body of responses with that status, for when a function gives the status as its result.
function methods.custom_response(self, status, text)
  local request = check(self, "custom_response")
  status, text = tonumber(status), text_of(text, 2, "custom_response")
  if not status or not NAMES[status] or status < 400 then
    error("custom_response takes the status of an error and a text", 2)
  end
  if find(text, "^/") then
    error("custom_response takes a text or a whole URL, and no path: nothing is redirected within the server; see "
      .. apache.PAGE, 2)
  end
  request.responses = request.responses or {}
  request.responses[status] = text
end

local OK, DECLINED, DONE = 0, -1, -2

-- A result as C reads it: anything that is not a whole number is OK.
function apache.code_of(result)
  if type(result) ~= "number" and type(result) ~= "string" then return OK end
  local number = tonumber(result)
  if not number or number ~= floor(number) then return OK end
  return number
end

-- Ends the response according to the result of the function that answered.
function apache.respond(request, code)
  if code == OK or code == DONE then return end_with(request, request.status or 200) end
  if code == DECLINED then return end_with_status(request, 404) end
  if code >= 200 and code < 300 then
    request.status = code
    return end_with(request, code)
  end
  end_with_status(request, NAMES[code] and code or 500)
end
