-- What a request carries: arguments, forms, the body, cookies.

local core = ...

local apache, native = core.apache, core.native
local context, reply, ffi_string, fail = native.context, native.reply, native.string, native.fail
local methods, check, text_of = apache.methods, apache.check, apache.text_of
local first_and_all = apache.first_and_all
local apache_pairs, request_pair, request_field = native.apache_pairs, native.request_pair, native.request_field
local type, error, tonumber, os_date = type, error, tonumber, core.libraries.os.date
local byte, match, sub = string.byte, string.match, string.sub
local find, lower = string.find, string.lower

local YES = 1
local BODY = 3
local ARGUMENTS, FORM, MULTIPART = 0, 1, 2

-- Maximum length of a form that parsebody takes by default, in bytes.
local FORM_LEN_MAX = 8192

-- Maximum number of cookies that are checked.
local COOKIES_MAX = 1000

local function each_pair_of(kind, text, boundary, visit)
  local code = apache_pairs(context, kind, text, #text, boundary, #boundary)
  if code ~= YES then fail(4) end
  for i = 0, reply.number - 1 do
    request_pair(context, i)
    visit(ffi_string(reply.key, reply.key_len), ffi_string(reply.data, reply.data_len))
  end
end

-- As in Apache: names ignore case, and the last value of each counts.
function methods.parseargs(self)
  check(self, "parseargs")
  local arguments = apache.new_table()
  each_pair_of(ARGUMENTS, self.args or "", "", function(name, value) arguments[name] = value end)
  return apache.as_tables(arguments)
end

-- The body after the input filters.
function apache.body_of(request)
  local body = request.body
  if not body then
    if request_field(context, BODY) ~= YES then fail(4) end
    body = ffi_string(reply.data, reply.data_len)
    if request.script.input_filter then
      if request.is_filtering_input then error("an input filter gets the body in pieces, and does not ask for it", 3) end
      request.is_filtering_input = true
      body = apache.filter_input(request, body)
    end
    request.body = body
  end
  return body
end

-- Names in URL-encoded forms come in reverse, those in multipart forms do not. A body is read only once.
function methods.parsebody(self, len_max)
  local request = check(self, "parsebody")
  local firsts, lists = {}, {}
  local content_type = self.headers_in["Content-Type"] or ""
  local is_form = find(lower(content_type), "^application/x%-www%-form%-urlencoded")
  local boundary = match(content_type, '^multipart/form%-data; *boundary="?([^";]+)')
  if not (is_form or boundary) or request.is_body_read then return firsts, lists end
  local body = apache.body_of(request)
  request.is_body_read = true
  if #body > (tonumber(len_max) or FORM_LEN_MAX) then return firsts, lists end
  if boundary then
    each_pair_of(MULTIPART, body, boundary, function(name, value)
      first_and_all(firsts, lists, name, value)
    end)
    return firsts, lists
  end
  local names, values, count = {}, {}, 0
  each_pair_of(FORM, body, "", function(name, value)
    count = count + 1
    names[count], values[count] = name, value
  end)
  for i = count, 1, -1 do first_and_all(firsts, lists, names[i], values[i]) end
  return firsts, lists
end

-- The body and its length, only once, for a request that should have one.
function methods.requestbody(self, filename, len_max)
  local request = check(self, "requestbody")
  if filename ~= nil then
    error("r:requestbody with the name of a file is not offered: a handler writes no files; see "
      .. apache.PAGE, 2)
  end
  local method = self.method
  if method ~= "POST" and method ~= "PUT" or request.is_body_read then return nil end
  local body = apache.body_of(request)
  request.is_body_read = true
  if len_max ~= nil and #body > (tonumber(len_max) or 0) then return nil end
  return body, #body
end

local SPACE, TAB = 32, 9

local function is_blank(text, at)
  local char = byte(text, at)
  return char == SPACE or char == TAB
end

-- The name and the value of a cookie. No pattern does this: a pattern that looks for blanks, and for what may not follow,
-- starts over at each of them, within C, where no limit reaches it.
local function pair_of(piece)
  local equals = find(piece, "=", 1, true)
  if not equals then return nil end
  local first, last = 1, #piece
  while is_blank(piece, first) do first = first + 1 end
  while last > equals and is_blank(piece, last) do last = last - 1 end
  return sub(piece, first, equals - 1), sub(piece, equals + 1, last)
end

-- A cookie that comes more than once counts as none.
function methods.getcookie(self, name)
  check(self, "getcookie")
  name = text_of(name, 1, "getcookie")
  local header = self.headers_in.Cookie
  if not header or name == "" then return nil end
  local found, at = nil, 1
  for _ = 1, COOKIES_MAX do
    local stop = find(header, ";", at, true)
    local piece = sub(header, at, stop and stop - 1)
    local key, value = pair_of(piece)
    if key == name then
      if found then return nil end
      found = value
    end
    if not stop then break end
    at = stop + 1
  end
  return found
end

local function date_of(seconds)
  return os_date("!%a, %d %b %Y %H:%M:%S GMT", seconds)
end

local function attribute(name, value)
  if value == nil or value == "" then return "" end
  value = text_of(value, 1, "setcookie", 4)
  if find(value, "[;%c]") then error("the " .. name .. " of a cookie has no ';' and no control characters", 3) end
  return "; " .. name .. "=" .. value
end

-- `r:setcookie(key, value, secure, expires)`, or all of it in a table, with httponly, path and domain.
function methods.setcookie(self, key, value, secure, expires)
  check(self, "setcookie")
  local path, domain, is_http_only
  if type(key) == "table" then
    local given = key
    key, value, secure, expires = given.key, given.value, given.secure, given.expires
    path, domain, is_http_only = given.path or "/", given.domain, given.httponly
  end
  key = text_of(key, 1, "setcookie")
  value = methods.escape(self, text_of(value == nil and "" or value, 2, "setcookie"))
  if key == "" or find(key, "[=;, %c]") then
    error("the name of a cookie has none of '=', ';', ',', spaces and control characters", 2)
  end
  local line = key .. "=" .. value
  if secure then line = line .. "; Secure" end
  if (tonumber(expires) or 0) > 0 then line = line .. attribute("Expires", date_of(expires)) end
  if is_http_only then line = line .. "; HttpOnly" end
  line = line .. attribute("Domain", domain) .. attribute("Path", path)
  apache.add(self.err_headers_out, "Set-Cookie", line)
end
