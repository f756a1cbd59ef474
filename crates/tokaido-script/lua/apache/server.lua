-- What belongs to the server and not to the request: values that requests leave for each other, files, the log.

local core = ...

local apache, native = core.apache, core.native
local context, reply, ffi_string, fail = native.context, native.reply, native.string, native.fail
local methods, check, text_of, fields = apache.methods, apache.check, apache.text_of, apache.fields
local type, error, pairs, tonumber, match = type, error, pairs, tonumber, string.match

local YES, NO = 1, 0
local TEXT, NUMBER, BOOLEAN = 1, 2, 3

function methods.ivm_get(self, name)
  check(self, "ivm_get")
  name = text_of(name, 1, "ivm_get")
  local kind = native.apache_value(context, name, #name)
  if kind == TEXT then return ffi_string(reply.data, reply.data_len) end
  if kind == NUMBER then return reply.number end
  if kind == BOOLEAN then return reply.number == 1 end
  return nil
end

-- nil removes the value.
function methods.ivm_set(self, name, value)
  check(self, "ivm_set")
  name = text_of(name, 1, "ivm_set")
  local kind, number, text = type(value), 0, ""
  if kind == "string" then
    kind, text = TEXT, value
  elseif kind == "number" then
    kind, number = NUMBER, value
  elseif kind == "boolean" then
    kind, number = BOOLEAN, value and 1 or 0
  elseif value == nil then
    kind = NO
  else
    error("ivm_set takes a string, a number, a boolean or nil, this is " .. core.text.described(value), 2)
  end
  if native.apache_set_value(context, name, #name, kind, number, text, #text) ~= YES then fail() end
end

local function document_root()
  if native.apache_root(context) ~= YES then
    error("this server has no document root, so r:sendfile, r:stat and r.document_root are not offered; the operator names one with --mod-lua-document-root, see "
      .. apache.PAGE, 3)
  end
  return ffi_string(reply.data, reply.data_len)
end
fields.document_root, fields.context_document_root = document_root, document_root

-- Appends a file to the body; gives its length, or false if it cannot be read.
function methods.sendfile(self, path)
  local request = check(self, "sendfile")
  path = text_of(path, 1, "sendfile")
  document_root()
  local code = native.apache_file(context, path, #path)
  if code == NO then return false end
  if code ~= YES then fail() end
  local text = ffi_string(reply.data, reply.data_len)
  apache.send(request, text, 3)
  return #text
end

-- What the file system knows of a file; nil if there is none. Times are in microseconds, 1 is a file, 2 a folder.
function methods.stat(self, path)
  check(self, "stat")
  path = text_of(path, 1, "stat")
  document_root()
  local code = native.apache_stat(context, path, #path)
  if code == NO then return nil end
  if code ~= YES then fail() end
  local size, mtime, atime, ctime, filetype =
    match(ffi_string(reply.data, reply.data_len), "^(%d+) (%-?%d+) (%-?%d+) (%-?%d+) (%d)$")
  return {
    size = tonumber(size), mtime = tonumber(mtime), atime = tonumber(atime), ctime = tonumber(ctime),
    filetype = tonumber(filetype),
  }
end

-- Apache's levels in the server's log: error, warn, info, debug.
local LEVELS = {
  emerg = 0, alert = 0, crit = 0, err = 0, warn = 1, notice = 2, info = 2, debug = 3,
  trace1 = 3, trace2 = 3, trace3 = 3, trace4 = 3, trace5 = 3, trace6 = 3, trace7 = 3, trace8 = 3,
}
for name, level in pairs(LEVELS) do
  methods[name] = function(self, message)
    check(self, name)
    message = text_of(message, 1, name)
    native.log(context, level, message, #message)
  end
end

function fields.started()
  native.apache_started(context)
  return reply.number
end

function fields.limit_req_body()
  native.apache_body_max(context)
  return reply.number
end

function methods.construct_url(self, path)
  check(self, "construct_url")
  path = text_of(path, 1, "construct_url")
  local port = self.port
  return "http://" .. self.server_name .. (port == 80 and "" or ":" .. port) .. path
end

function methods.get_server_name_for_url(self)
  check(self, "get_server_name_for_url")
  return self.server_name
end

-- Client and server decide whether the connection is kept alive.
function methods.set_keepalive(self)
  check(self, "set_keepalive")
  return true
end

function methods.ssl_var_lookup(self) check(self, "ssl_var_lookup") return nil end
