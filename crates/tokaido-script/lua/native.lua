-- The native functions, made callable. Rust passes their addresses and C types; each becomes a
-- cdata function pointer that is never reassigned, which LuaJIT turns into a constant of the trace.
--
-- No pointer leaves this prelude: a cdata pointer in user code would give access to all memory.

local core = ...

local ffi = ffi

-- Parts of libraries that later files need and user code must not see; sandbox.lua removes the globals.
core.libraries = { debug = debug, os = os, jit = jit }

-- Room for the code of a server with many procedures (LuaJIT's own limits suit one script), and
-- traces that continue after a call that cannot be compiled.
jit.opt.start("maxtrace=8000", "maxrecord=16000", "minstitch=3", "maxmcode=40960")

local native = {
  context = ffi.cast("void *", core.rust.context),
  -- The same layout as `Reply` in src/bridge/context.rs.
  reply = ffi.cast(ffi.typeof [[
    struct {
      const char *data;
      const char *key;
      uint32_t data_len;
      uint32_t key_len;
      double number;
      int64_t integer;
      double flags;
      double expires_at_ms;
      const char *ahead;
      double ahead_number;
      double ahead_len;
      double regexes_number;
    } *
  ]], core.rust.reply),
}

for name, entry in pairs(core.rust.native) do
  native[name] = ffi.cast(entry.c_type, entry.address)
end

local reply, ffi_string = native.reply, ffi.string
local getinfo, match, error, setmetatable = debug.getinfo, string.match, error, setmetatable

-- An error with a code, as `error {message = …, code = …}` raises it, and with a position like other errors.
local coded_meta = { __tostring = function(raised) return raised.message end }
local function coded(code, message, level)
  local info = getinfo(level + 1, "Sl")
  if info and info.currentline > 0 then
    message = info.short_src .. ":" .. info.currentline .. ": " .. message
  end
  return setmetatable({ message = message, code = code }, coded_meta)
end

-- Raises the message of a native function that answered FAILED. Level 3 is the caller of the method
-- that made the native call.
function native.fail(level)
  level = level or 3
  local message = ffi_string(reply.data, reply.data_len)
  local of_kind = match(message, "^WRONGTYPE (.*)")
  if of_kind then error(coded("WRONGTYPE", of_kind, level)) end
  error(message, level)
end

-- The key under which a database has its index. No program can name it, so none can change it.
core.INDEX = function() end

-- What `getmetatable` gives for all objects of the prelude. `rawset` refuses them.
core.OURS = "tokaido"

native.string = ffi_string
core.native = native
core.ffi = ffi
