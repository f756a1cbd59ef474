-- Operations on many records, on whole databases, and on the objects that stand for them.

local core = ...

local kyoto, native = core.kyoto, core.native
local context, reply = native.context, native.reply
local open, regex_of, distance = native.open, native.cabinet_regex, native.cabinet_distance
local fail, failed, invalid, refuse = kyoto.fail, kyoto.failed, kyoto.invalid, kyoto.refuse
local text_of, item_text = kyoto.text_of, kyoto.item_text
local type, pairs, ipairs, tonumber, tostring = type, pairs, ipairs, tonumber, tostring
local setmetatable, error, xpcall, next = setmetatable, error, xpcall, next
local sort, match, sub = core.bounded.table.sort, core.patterns.match, string.sub

local INDEX, ENGINE, NAME, UNDO = core.INDEX, kyoto.ENGINE, kyoto.NAME, kyoto.UNDO
local engine_of, ffi_string = kyoto.engine_of, native.string
local CODE, MESSAGE = kyoto.CODE, kyoto.MESSAGE
local YES, NO, UNWRITTEN, NO_EXPRESSION = 1, 0, 2, 2
local INVALID, LOGIC = 2, 8

-- The key under which a database has whether it belongs to the server, and is not the script's to close.
local IS_OWN = function() end

local shared = kyoto.shared

function shared.set_bulk(self, records, xt)
  if type(records) ~= "table" then invalid("db_set_bulk") end
  local count = 0
  for key, value in pairs(records) do
    key, value = item_text(key), item_text(value)
    if key and value then
      if not self:set(key, value, xt) then return -1 end
      count = count + 1
    end
  end
  return count
end

function shared.remove_bulk(self, keys)
  if type(keys) ~= "table" then invalid("db_remove_bulk") end
  local count = 0
  for _, key in ipairs(keys) do
    if self:remove(key) then
      count = count + 1
    elseif self[CODE] ~= 7 then
      return -1
    end
  end
  return count
end

function shared.get_bulk(self, keys)
  if type(keys) ~= "table" then invalid("db_get_bulk") end
  local found = {}
  for _, key in ipairs(keys) do
    local value = self:get(key)
    if value then found[key] = value end
  end
  return found
end

-- Keys that `is_wanted` accepts, at most `max` of them; those of an ordered database begin at `from`.
local function search(self, from, max, is_wanted)
  max = tonumber(max) or -1
  local keys, count = {}, 0
  local step, walk
  if engine_of(self).is_ordered and from and from ~= "" then
    step, walk = core.cabinet.walk.step, core.cabinet.walk.new(self, from, true)
  else
    step, walk = core.cabinet.records(self)
  end
  for key in step, walk do
    if count == max then break end
    local wanted = is_wanted(key)
    if wanted then
      count = count + 1
      keys[count] = key
    elseif wanted == nil then
      break
    end
  end
  return keys
end

function shared.match_prefix(self, prefix, max)
  prefix = text_of(prefix)
  if prefix == nil then invalid("db_match_prefix") end
  local len, is_ordered = #prefix, engine_of(self).is_ordered
  return search(self, prefix, max, function(key)
    if sub(key, 1, len) == prefix then return true end
    -- After the last key with the prefix there are no others.
    if is_ordered then return nil end
    return false
  end)
end

function shared.match_regex(self, pattern, max)
  pattern = text_of(pattern)
  if pattern == nil then invalid("db_match_regex") end
  if regex_of(context, "", 0, pattern, #pattern, "", -1) == NO_EXPRESSION then
    fail(self, LOGIC, "the expression cannot be compiled")
    return nil
  end
  return search(self, nil, max, function(key)
    local code = regex_of(context, key, #key, pattern, #pattern, "", -1)
    if code ~= YES and code ~= NO then native.fail(4) end
    return code == YES
  end)
end

-- The nearest ones first; equally near ones in the order of their keys.
function shared.match_similar(self, origin, range, is_utf8, max)
  origin = text_of(origin)
  if origin == nil then invalid("db_match_similar") end
  range, max = tonumber(range) or 1, tonumber(max) or -1
  local found = {}
  local step, walk = core.cabinet.records(self)
  for key in step, walk do
    if distance(context, origin, #origin, key, #key, is_utf8 and 1 or 0) ~= YES then native.fail(3) end
    if reply.number <= range then found[#found + 1] = { reply.number, key } end
  end
  sort(found, function(a, b)
    if a[1] ~= b[1] then return a[1] < b[1] end
    return a[2] < b[2]
  end)
  local keys = {}
  for i = 1, max < 0 and #found or math.min(max, #found) do keys[i] = found[i][2] end
  return keys
end

local MSET, MADD, MREPLACE, MAPPEND = 0, 1, 2, 3
local MERGES = { [MSET] = "set", [MADD] = "add", [MREPLACE] = "replace", [MAPPEND] = "append" }

local function is_database(value) return type(value) == "table" and value[NAME] ~= nil end

function shared.merge(self, sources, mode)
  local method = MERGES[tonumber(mode) or MSET]
  if type(sources) ~= "table" or not method then invalid("db_merge") end
  for _, source in ipairs(sources) do
    if not is_database(source) then invalid("db_merge") end
    local step, walk = core.cabinet.records(source)
    for key, value, at_ms in step, walk do
      local xt
      if at_ms >= 0 then xt = -math.floor(at_ms / 1000) end
      -- Existing or missing records are left out as the mode says.
      self[method](self, key, value, xt)
    end
  end
  return true
end

-- Map and reduce, in memory. Keys are reduced in order, and values come in the order in which they were
-- emitted. The options about temporary databases have no meaning here.
function shared.mapreduce(self, map, reduce, _, _, _, _, _, log, proc)
  if type(map) ~= "function" or type(reduce) ~= "function" then invalid("db_mapreduce") end
  local groups, keys = {}, {}
  local function emit(key, value)
    key, value = text_of(key), text_of(value)
    if key == nil or value == nil then return false end
    local group = groups[key]
    if not group then
      group = {}
      groups[key], keys[#keys + 1] = group, key
    end
    group[#group + 1] = value
    return true
  end
  local function tell(name, message) if log then log(name, message) end end
  local function stopped(why) return fail(self, LOGIC, why) end

  tell("map", "started the map process")
  if proc and not proc(emit) then return stopped("the first call of the processor failed") end
  local step, walk = core.cabinet.records(self)
  for key, value in step, walk do
    if not map(key, value, emit) then return stopped("the mapper failed") end
  end
  if proc and not proc(emit) then return stopped("the second call of the processor failed") end
  tell("reduce", "started the reduce process")
  sort(keys)
  for _, key in ipairs(keys) do
    local group, place = groups[key], 0
    local function iterate()
      place = place + 1
      return group[place]
    end
    if not reduce(key, iterate) then return stopped("the reducer failed") end
  end
  if proc and not proc() then return stopped("the third call of the processor failed") end
  tell("clean", "the map and reduce processes are done")
  return true
end

function shared.error(self) return kyoto.Error:new(self[CODE], self[MESSAGE]) end

function shared.path(self)
  if self[INDEX] < 0 then
    fail(self, INVALID, "not opened")
    return nil
  end
  return self[NAME]
end

function shared.status(self)
  local count, size = self:count(), self:size()
  if count < 0 then return nil end
  local engine = engine_of(self)
  return {
    path = self[NAME], count = tostring(count), size = tostring(size),
    type = engine.kind, realtype = engine.kind,
  }
end

-- Calls a file processor, which gets a name and two numbers, but no file.
local function process(self, processor)
  if processor == nil then return true end
  local count, size = self:count(), self:size()
  local ok
  if type(processor) == "function" then
    ok = processor(self[NAME], count, size)
  else
    ok = processor:process(self[NAME], count, size)
  end
  if not ok then return fail(self, LOGIC, "the processor failed") end
  return true
end

-- What was written is durable when the call is answered, whatever is said here.
function shared.synchronize(self, _, processor) return process(self, processor) end
function shared.occupy(self, _, processor) return process(self, processor) end

local FILES = "a script does not touch files, and `tokaido backup` copies a store in use"
function shared.copy() refuse("DB:copy", FILES) end
function shared.dump_snapshot() refuse("DB:dump_snapshot", FILES) end
function shared.load_snapshot() refuse("DB:load_snapshot", FILES) end

-- Databases that were made, so that they can be looked up again, and those of them whose number may change
-- in the next call.
local known, unsettled = setmetatable({}, { __mode = "k" }), {}

-- Finds the database of that name, and its engine.
local function settle(self)
  local name = self[NAME]
  local code = open(context, name, #name)
  if code ~= YES and code ~= UNWRITTEN then native.fail(4) end
  self[INDEX], self[ENGINE] = reply.number, reply.flags
  kyoto.set_meta(self, engine_of(self).meta)
  return code == YES
end

-- Must run at the beginning of each call. Whatever a stopped call had left to restore went with its
-- transaction. If an error occurs on the way, the list stays as it was.
function kyoto.settle()
  for db in next, known do db[UNDO] = false end
  if #unsettled == 0 then return end
  local left = {}
  for i = 1, #unsettled do
    local db = unsettled[i]
    if not settle(db) then left[#left + 1] = db end
  end
  unsettled = left
end

-- At the end of a call, aborts the transactions that it left open.
function kyoto.unsettle()
  for db in next, known do
    if db[UNDO] then kyoto.give_up(db) end
  end
end

local forget_databases = core.forget_databases
function core.forget_databases()
  forget_databases()
  unsettled = {}
  for db in next, known do
    if db[NAME] then unsettled[#unsettled + 1] = db end
  end
end

local function made(name, is_own)
  local db = {
    [INDEX] = -1, [NAME] = name, [CODE] = 0, [MESSAGE] = "no error", [UNDO] = false,
    [ENGINE] = 0, [IS_OWN] = is_own,
  }
  known[db] = true
  return kyoto.set_meta(db, kyoto.kinds[0].meta)
end

-- Makes the object for one of the server's databases.
function kyoto.database(name)
  local db = made(name, true)
  unsettled[#unsettled + 1] = db
  return db
end

-- Maximum length of a path, in bytes.
local PATH_LEN_MAX = 4096

local IN_MEMORY = "databases in memory are caches of the server's configuration, which `open` takes by name"

-- `open("casket.kct#bnum=1000")` takes the server's database `casket`.
function shared.open(self, path)
  if self[NAME] then return fail(self, INVALID, "already opened") end
  path = text_of(path) or ":"
  if #path > PATH_LEN_MAX then
    return fail(self, INVALID, "a path has at most " .. PATH_LEN_MAX .. " bytes")
  end
  if match(path, "^[-+:*%%]#?") and #match(path, "^[^#]*") == 1 then refuse("DB:open of " .. path, IN_MEMORY) end
  local name = match(match(path, "^[^#]*"), "([^/]*)$")
  name = match(name, "^(.+)%.kc[a-z]$") or name
  local code = open(context, name, #name)
  if code ~= YES and code ~= UNWRITTEN then
    return fail(self, INVALID, ffi_string(reply.data, reply.data_len))
  end
  self[NAME] = name
  if not settle(self) then unsettled[#unsettled + 1] = self end
  return true
end

function shared.close(self)
  if self[IS_OWN] then return fail(self, INVALID, "databases of the server stay open") end
  if not self[NAME] then return fail(self, INVALID, "not opened") end
  if self[UNDO] then kyoto.give_up(self) end
  self[INDEX], self[NAME] = -1, false
  for i = #unsettled, 1, -1 do
    if unsettled[i] == self then table.remove(unsettled, i) end
  end
  return true
end

local DB = {
  OREADER = 1, OWRITER = 2, OCREATE = 4, OTRUNCATE = 8, OAUTOTRAN = 16, OAUTOSYNC = 32,
  ONOLOCK = 64, OTRYLOCK = 128, ONOREPAIR = 256,
  MSET = MSET, MADD = MADD, MREPLACE = MREPLACE, MAPPEND = MAPPEND, XNOLOCK = 1, XNOCOMP = 256,
}

function DB.new(_, pointer)
  if pointer ~= nil then refuse("DB:new with a pointer", "scripts have no pointers") end
  return made(false, false)
end

-- Opens a database, calls `run(db)`, and closes it; gives nil, or the error.
function DB.process(_, run, path, mode)
  if type(run) ~= "function" then invalid("db_process") end
  local db = made(false, false)
  if not db:open(path, mode) then return db:error() end
  local ok, raised = xpcall(run, core.keep_error, db)
  local is_closed = db:close()
  if not ok then error(raised, 0) end
  if not is_closed then return db:error() end
  return nil
end

function DB.new_ptr() refuse("DB:new_ptr", "scripts have no pointers") end
function DB.delete_ptr() refuse("DB:delete_ptr", "scripts have no pointers") end

kyoto.DB = DB

-- Whether the methods above are those of a database of that engine is known to its metatable.
local debug_setmetatable = core.libraries.debug.setmetatable
function kyoto.set_meta(db, meta)
  debug_setmetatable(db, meta)
  return db
end

local function meta_of(methods)
  local get, set, remove = methods.get, methods.set, methods.remove
  return {
    __index = function(self, key)
      local method = methods[key]
      if method ~= nil then return method end
      return (get(self, key))
    end,
    __newindex = function(self, key, value)
      if value == nil then remove(self, key) else set(self, key, value) end
    end,
    __tostring = function(self)
      if not self[NAME] then return "(not opened)" end
      return self[NAME] .. ": " .. self:count() .. ": " .. self:size()
    end,
    __metatable = core.OURS,
  }
end

-- By what `open` tells of the engine, as in lua/transaction.lua.
local function kind_of(engine, kind, is_ordered)
  for name, method in pairs(shared) do engine.DB[name] = method end
  local made_of = { kind = kind, is_ordered = is_ordered, meta = meta_of(engine.DB) }
  for name, entry in pairs(engine) do made_of[name] = entry end
  return made_of
end

local tree, cache = kyoto.engines[1], kyoto.engines[2]
kyoto.kinds = {
  [0] = kind_of(tree, "tree", true), kind_of(cache, "cache", false), kind_of(tree, "cdb", false),
}
setmetatable(DB, { __index = tree.DB })
