---@meta
-- The Tokaido API for editors that read LuaCATS annotations (lua-language-server), which then offer
-- completion and warn about arguments of the wrong type. This file is never run. To use it, copy it
-- next to the procedures, or name its folder in `.luarc.json`:
--     { "workspace.library": ["path/to/types"], "runtime.version": "LuaJIT" }

---A key or a value: any bytes, or a number, which is converted to its shortest decimal representation.
---@alias tokaido.Bytes string|number|integer

---The transaction that a procedure runs as, passed as its first argument. Its fields are databases by
---name, as in `tx.main` or `tx["hits-2026"]`. A database that has never been written to reads as empty.
---@class tokaido.Transaction
---@field main tokaido.Database
---@field [string] tokaido.Database
local Transaction = {}

---Returns a database by name, even if a method of the transaction has the same name.
---@param name string 1 to 64 of `a-z A-Z 0-9 _ - .`
---@return tokaido.Database
function Transaction:database(name) end

---Deletes a database with all of its records and frees its name; returns whether it existed.
---@param name string
---@return boolean was_there
function Transaction:drop_database(name) end

---Returns the transaction's time in milliseconds since the epoch. It does not change while the procedure runs.
---@return number
function Transaction:now_ms() end

---Returns whether this transaction may write.
---@return boolean
function Transaction:is_writable() end

---Runs a Redis command of the server inside this transaction and returns its reply, as in
---`tx:command("INCRBY", "k", 5)`: a number, a string, `false` for null, `{ok = …}` for a status, or an
---array. An error reply raises an error, and so does any call outside a server.
---@param name string
---@param ... tokaido.Bytes
---@return any
function Transaction:command(name, ...) end

---Calls another procedure by its name, such as `shop.buy`, in any language, inside this transaction, and returns its
---result. Arguments are converted like those of clients, except that Lua procedures of the same dialect get them
---unchanged. An error of the procedure is raised with its code and status. If the procedure may write, the transaction
---then fails even if the error is caught. The caller of this procedure needs no permission to call the other one.
---@param name string
---@param ... any
---@return any
function Transaction:call(name, ...) end

---A record with all of its fields.
---@class tokaido.Record
---@field value string
---@field flags integer
---@field version integer changes with every write
---@field expires_at_ms number? nil if the record never expires

---@class tokaido.PutOptions
---@field ttl_ms number? the record expires this many milliseconds from now
---@field expires_at_ms number? the record expires at this time
---@field flags integer? 0 to 4294967295, for memcached clients

---@class tokaido.Range
---@field prefix tokaido.Bytes? only keys that start with it
---@field from tokaido.Bytes? the smallest key
---@field after tokaido.Bytes? keys greater than this one
---@field to tokaido.Bytes? the greatest key
---@field before tokaido.Bytes? keys less than this one
---@field reverse boolean? from the greatest to the smallest
---@field limit integer? stop after this many

---Keys and values, ordered by the bytes of the keys. A database that the configuration makes a cache or a
---constant database (cdb) has the same methods but no order. A cache is not part of the transaction: each
---call is atomic by itself, takes effect at once, even in a read procedure, and stays if the procedure
---fails. Writing to a constant database raises an error.
---@class tokaido.Database
---@field name string
local Database = {}

---Returns the value of a key; nil if it does not exist.
---@param key tokaido.Bytes
---@return string?
function Database:get(key) end

---Returns whether a record exists.
---@param key tokaido.Bytes
---@return boolean
function Database:exists(key) end

---Returns the value, flags, version and expiry of a record; nil if it does not exist.
---@param key tokaido.Bytes
---@return tokaido.Record?
function Database:record(key) end

---Returns the values of those keys that exist, by key.
---@generic K: tokaido.Bytes
---@param keys K[]
---@return table<K, string>
function Database:get_many(keys) end

---Returns the values of all records under a key. Only a constant database can have more than one.
---@param key tokaido.Bytes
---@return string[]
function Database:get_all(key) end

---Stores a record, replacing any existing one. Without options, it has no flags and never expires.
---@param key tokaido.Bytes
---@param value tokaido.Bytes
---@param options tokaido.PutOptions?
function Database:put(key, value, options) end

---Stores a record if none exists under the key; returns whether it was stored.
---@param key tokaido.Bytes
---@param value tokaido.Bytes
---@param options tokaido.PutOptions?
---@return boolean
function Database:add(key, value, options) end

---Stores a record if one exists under the key; returns whether it was stored.
---@param key tokaido.Bytes
---@param value tokaido.Bytes
---@param options tokaido.PutOptions?
---@return boolean
function Database:replace(key, value, options) end

---Stores `value` if the current value is `expected`; returns whether it was. A nil `expected` means that
---the record must not exist; a nil `value` deletes the record.
---@param key tokaido.Bytes
---@param expected tokaido.Bytes?
---@param value tokaido.Bytes?
---@return boolean
function Database:compare_and_set(key, expected, value) end

---Deletes a record; returns whether it existed.
---@param key tokaido.Bytes
---@return boolean
function Database:delete(key) end

---Adds to a counter and returns the new value: a number up to 2^53, beyond that an `int64_t`. A
---missing record counts as 0. Flags and expiry are kept.
---@param key tokaido.Bytes
---@param by integer? 1 if left out
---@return integer
function Database:increment(key, by) end

---Adds to a counter that may have a fraction, and returns the new value.
---@param key tokaido.Bytes
---@param by number
---@return number
function Database:increment_float(key, by) end

---Appends to the value of a key, creating it if it does not exist; returns the new length in bytes.
---@param key tokaido.Bytes
---@param suffix tokaido.Bytes
---@return integer
function Database:append(key, suffix) end

---Sets a record to expire after a number of milliseconds; returns whether the record existed.
---@param key tokaido.Bytes
---@param ttl_ms number
---@return boolean
function Database:expire(key, ttl_ms) end

---Removes the expiry of a record; returns whether the record existed.
---@param key tokaido.Bytes
---@return boolean
function Database:persist(key) end

---Returns the milliseconds until a record expires: `math.huge` if it never does, nil if there is no record.
---@param key tokaido.Bytes
---@return number?
function Database:ttl(key) end

---Returns the number of records, including expired ones that have not been removed yet. In a large database, this may be
---an estimate in a read-only transaction while others write, and in any transaction if the data is larger than memory or
---very much was written lately.
---@return integer
function Database:count() end

---Returns the total length of all keys and values, in bytes.
---@return integer
function Database:size() end

---Deletes every record.
function Database:clear() end

---Iterates over the keys and values of a range, in the order of the keys: `for key, value in db:scan{prefix = "a"} do`.
---The loop may write to the database, and may be left at any time. A string instead of a table is a prefix. A constant
---database is scanned in the order of its file and a cache in no particular order; in both, a scan reads the records
---outside the range as well and skips them, and cannot run in reverse.
---@param range (tokaido.Range|tokaido.Bytes)?
---@return fun(state: any, key: string?): string?, string?
---@return any
function Database:scan(range) end

---Iterates over the keys of a range, like `scan`.
---@param range (tokaido.Range|tokaido.Bytes)?
---@return fun(state: any, key: string?): string?
---@return any
function Database:keys(range) end

---Returns the hash under a key. It need not exist: it is created with its first field and deleted with its last one.
---@param key tokaido.Bytes
---@return tokaido.Hash
function Database:hash(key) end

---Returns the list under a key.
---@param key tokaido.Bytes
---@return tokaido.List
function Database:list(key) end

---Returns the set under a key.
---@param key tokaido.Bytes
---@return tokaido.Set
function Database:set(key) end

---Returns the sorted set under a key.
---@param key tokaido.Bytes
---@return tokaido.SortedSet
function Database:sorted_set(key) end

---Returns the stream under a key. It is created with its first entry or group, and stays, even without entries, until it
---is deleted.
---@param key tokaido.Bytes
---@return tokaido.Stream
function Database:stream(key) end

---An HTTP request. Each field is fetched when it is first read.
---@class tokaido.Request
---@field method string
---@field path string as it was sent: percent-encoded, without the query
---@field params table<string, string> what the route's `:name` and `*name` matched, decoded
---@field query table<string, string> decoded; the last value of a name that occurs more than once
---@field query_string string as it was sent
---@field headers table<string, string> names in lower case
---@field body string
local Request = {}

---Returns the body, decoded from JSON. If it is not JSON, raises an error that is answered with status 400.
---@return any
function Request:json() end

---The response to send. What the handler returns is the body: a string is sent as text, a table as
---JSON. A number returned before it is the status.
---@class tokaido.Response
---@field status integer 200 unless set
---@field headers table<string, string|number|string[]>
local Response = {}

---Appends to the body.
---@param text tokaido.Bytes
function Response:write(text) end

---Appends a value to the body, as JSON.
---@param value any
function Response:json(value) end

---JSON. Integers keep all 64 bits. A table with keys 1 to n is an array, and so is an empty one, unless
---`object` or `decode` made it an object.
---@class tokaido.json
---@field null any stands for `null` in a table
local json = {}

---Returns a value as JSON. Object keys are sorted.
---@param value any
---@return string
function json.encode(value) end

---Returns the value of a JSON text; `null` becomes `json.null`. Raises an error that says where if the text is not JSON.
---@param text string
---@return any
function json.decode(text) end

---Like `decode`, but returns nil and a message instead of raising an error.
---@param text string
---@return any value
---@return string? message
function json.try_decode(text) end

---Marks a table as an object, so that it is encoded as `{}` even when it is empty.
---@param value table?
---@return table
function json.object(value) end

---The module `tokaido`, as procedure files require it.
---@class tokaido
---@field json tokaido.json
local tokaido = {}

---Makes a function a procedure that reads: it runs on a snapshot, on any core, and never waits for a writer.
---@generic F: fun(tx: tokaido.Transaction, ...: any): ...
---@param run F
---@return F
function tokaido.read(run) end

---Makes a function a procedure that writes: it runs alone, and either all of it happens or nothing.
---@generic F: fun(tx: tokaido.Transaction, ...: any): ...
---@param run F
---@return F
function tokaido.write(run) end

---Makes a function the handler of a route such as `"GET /hits/:page"`. `:name` matches one segment of the
---path, `*name` at the end matches the rest. GET, HEAD and OPTIONS handlers run on a snapshot, others
---write, unless `tokaido.http(route, tokaido.write(run))` says otherwise.
---@param route string
---@param run fun(tx: tokaido.Transaction, req: tokaido.Request, res: tokaido.Response): any, any
---@return fun(tx: tokaido.Transaction, req: tokaido.Request, res: tokaido.Response): any, any
function tokaido.http(route, run) end

---Writes a line to the server's log. The first of several arguments may be a level: "error",
---"warn", "info" or "debug".
---@param ... any
function tokaido.log(...) end

---Returns the given number of random bytes from the system, which nobody can guess: for tokens and keys.
---Use `math.random` for everything else.
---@param len integer 0 to 1048576
---@return string
function tokaido.random_bytes(len) end

---Returns a random UUID (version 4), such as "0f8fad5b-d9cb-469f-a165-70867728950e".
---@return string
function tokaido.uuid() end

---Returns a 64-bit integer from a string or number, exactly; nil if it is not one.
---@param value any
---@return integer?
function tokaido.integer(value) end

---Returns the text that is stored for a key or value: integers have no exponent or suffix.
---@param value any
---@return string
function tokaido.text(value) end

---In scripts (`tokaido run`, `tokaido shell`): calls `run(tx, ...)` in a write transaction that is
---durable when this returns. If `run` raises an error, the transaction is rolled back.
---@generic T
---@param run fun(tx: tokaido.Transaction, ...: any): T
---@param ... any
---@return T
function tokaido.transact(run, ...) end

---In scripts: calls `run(tx, ...)` on a snapshot.
---@generic T
---@param run fun(tx: tokaido.Transaction, ...: any): T
---@param ... any
---@return T
function tokaido.snapshot(run, ...) end

return tokaido
