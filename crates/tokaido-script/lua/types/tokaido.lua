---@meta
-- The API of Tokaido for editors that read LuaCATS annotations (lua-language-server): completion,
-- and a warning where an argument does not fit. This file is never run. To use it, copy it beside
-- the procedures, or name its folder in `.luarc.json`:
--     { "workspace.library": ["path/to/types"], "runtime.version": "LuaJIT" }

---A key or a value: any bytes, or a number, which becomes its shortest decimal.
---@alias tokaido.Bytes string|number|integer

---What a procedure gets first: the transaction that it is. Its fields are databases by name, as in
---`tx.main` or `tx["hits-2026"]`. A database that nobody has written to reads as empty.
---@class tokaido.Transaction
---@field main tokaido.Database
---@field [string] tokaido.Database
local Transaction = {}

---A database by name, also one that is called like a method of the transaction.
---@param name string 1 to 64 of `a-z A-Z 0-9 _ - .`
---@return tokaido.Database
function Transaction:database(name) end

---Deletes a database with all of its records, and gives its name back.
---@param name string
---@return boolean was_there
function Transaction:drop_database(name) end

---The transaction's time in milliseconds since the epoch. It stands still while the procedure runs.
---@return number
function Transaction:now_ms() end

---Whether this transaction may write.
---@return boolean
function Transaction:is_writable() end

---Runs a Redis command of the server inside this transaction, and gives its reply, as in
---`tx:command("INCRBY", "k", 5)`: a number, a string, `false` for null, `{ok = …}` for a status, or an
---array. An error reply is raised as an error, and so is any
---call outside of a server.
---@param name string
---@param ... tokaido.Bytes
---@return any
function Transaction:command(name, ...) end

---Calls another procedure by its name, such as `shop.buy`, of whatever language, inside this transaction, and gives its
---result. Arguments are passed as clients pass them, but to a file of Lua as they are. An error is raised, with the code
---and status of the procedure; if that may write, the transaction fails even where the error is caught. Whoever called
---this procedure need not have the right to call that one.
---@param name string
---@param ... any
---@return any
function Transaction:call(name, ...) end

---A record with all that it has.
---@class tokaido.Record
---@field value string
---@field flags integer
---@field version integer changes at every write
---@field expires_at_ms number? nil: it never expires

---@class tokaido.PutOptions
---@field ttl_ms number? the record expires so many milliseconds from now
---@field expires_at_ms number? the record expires at this time
---@field flags integer? 0 to 4294967295, for memcached clients

---@class tokaido.Range
---@field prefix tokaido.Bytes? only keys that start with it
---@field from tokaido.Bytes? the smallest key
---@field after tokaido.Bytes? keys greater than this one
---@field to tokaido.Bytes? the greatest key
---@field before tokaido.Bytes? keys less than this one
---@field reverse boolean? from the greatest to the smallest
---@field limit integer? stop after so many

---Keys and values, ordered by key as bytes. One that the configuration makes a cache or a constant
---database (cdb) has the same methods, and no order. A cache is no part of the transaction: a call
---is atomic alone, takes effect at once, also in a read procedure, and stays if the procedure fails.
---A constant database raises where it would be written to.
---@class tokaido.Database
---@field name string
local Database = {}

---The value under a key; nil if there is none.
---@param key tokaido.Bytes
---@return string?
function Database:get(key) end

---Whether there is a record.
---@param key tokaido.Bytes
---@return boolean
function Database:exists(key) end

---Value, flags, version and expiry of a record; nil if there is none.
---@param key tokaido.Bytes
---@return tokaido.Record?
function Database:record(key) end

---The values of those keys that have one, by key.
---@generic K: tokaido.Bytes
---@param keys K[]
---@return table<K, string>
function Database:get_many(keys) end

---The values of every record under a key. Only a constant database can have more than one.
---@param key tokaido.Bytes
---@return string[]
function Database:get_all(key) end

---Puts a record, in place of what was there. Without options it has no flags and never expires.
---@param key tokaido.Bytes
---@param value tokaido.Bytes
---@param options tokaido.PutOptions?
function Database:put(key, value, options) end

---Puts a record if none is there; tells whether it did.
---@param key tokaido.Bytes
---@param value tokaido.Bytes
---@param options tokaido.PutOptions?
---@return boolean
function Database:add(key, value, options) end

---Puts a record if one is there; tells whether it did.
---@param key tokaido.Bytes
---@param value tokaido.Bytes
---@param options tokaido.PutOptions?
---@return boolean
function Database:replace(key, value, options) end

---Puts `value` if the record's value is `expected`; tells whether it was. A nil `expected` stands
---for no record; a nil `value` deletes.
---@param key tokaido.Bytes
---@param expected tokaido.Bytes?
---@param value tokaido.Bytes?
---@return boolean
function Database:compare_and_set(key, expected, value) end

---Deletes a record; tells whether there was one.
---@param key tokaido.Bytes
---@return boolean
function Database:delete(key) end

---Adds to a counter, and gives the new value: a number up to 2^53, beyond that an `int64_t`. A
---missing record counts as 0. Flags and expiry stay.
---@param key tokaido.Bytes
---@param by integer? 1 if left out
---@return integer
function Database:increment(key, by) end

---Adds to a counter that may have a fraction, and gives the new value.
---@param key tokaido.Bytes
---@param by number
---@return number
function Database:increment_float(key, by) end

---Appends to a value, or puts it if there is none; gives the new length in bytes.
---@param key tokaido.Bytes
---@param suffix tokaido.Bytes
---@return integer
function Database:append(key, suffix) end

---Lets a record expire so many milliseconds from now; tells whether there was one.
---@param key tokaido.Bytes
---@param ttl_ms number
---@return boolean
function Database:expire(key, ttl_ms) end

---Takes a record's expiry away; tells whether there was a record.
---@param key tokaido.Bytes
---@return boolean
function Database:persist(key) end

---Milliseconds until a record expires, `math.huge` if it never does; nil if there is no record.
---@param key tokaido.Bytes
---@return number?
function Database:ttl(key) end

---How many records there are, with those that have expired and were not removed yet. Where nothing can be written, that may
---be an estimate while others write to a large database.
---@return integer
function Database:count() end

---How many bytes the keys and values have together.
---@return integer
function Database:size() end

---Deletes every record.
function Database:clear() end

---Keys and values of a range, in order of the keys (a constant database: of the file; a cache: in
---none, and all of both is gone through, whatever the range, and never in reverse): `for key, value in db:scan{prefix = "a"} do`. The loop may
---write to the database, and may be left at any time. A string alone is a prefix.
---@param range (tokaido.Range|tokaido.Bytes)?
---@return fun(state: any, key: string?): string?, string?
---@return any
function Database:scan(range) end

---The keys of a range, as `scan`.
---@param range (tokaido.Range|tokaido.Bytes)?
---@return fun(state: any, key: string?): string?
---@return any
function Database:keys(range) end

---The hash under a key. It need not be there: its first field makes it, and it goes with its last one.
---@param key tokaido.Bytes
---@return tokaido.Hash
function Database:hash(key) end

---The list under a key.
---@param key tokaido.Bytes
---@return tokaido.List
function Database:list(key) end

---The set under a key.
---@param key tokaido.Bytes
---@return tokaido.Set
function Database:set(key) end

---The sorted set under a key.
---@param key tokaido.Bytes
---@return tokaido.SortedSet
function Database:sorted_set(key) end

---The stream under a key. Its first entry makes it, or its first group, and it stays without entries until it is deleted.
---@param key tokaido.Bytes
---@return tokaido.Stream
function Database:stream(key) end

---An HTTP request. Each field is fetched when it is first read.
---@class tokaido.Request
---@field method string
---@field path string as it was sent, percent-encoded, without the query
---@field params table<string, string> what the route's `:name` and `*name` matched, decoded
---@field query table<string, string> decoded; of a name that comes twice, the last
---@field query_string string as it was sent
---@field headers table<string, string> names in lower case
---@field body string
local Request = {}

---The body as JSON. What is none is answered with status 400.
---@return any
function Request:json() end

---The response to come. What the handler returns is the body: a string is sent as text, a table as
---JSON; a number before it is the status.
---@class tokaido.Response
---@field status integer 200 unless set
---@field headers table<string, string|number|string[]>
local Response = {}

---Appends to the body.
---@param text tokaido.Bytes
function Response:write(text) end

---Appends a value as JSON to the body.
---@param value any
function Response:json(value) end

---JSON. Integers are exact over 64 bits. A table with keys 1 to n is an array; an empty one is an
---array, too, unless `object` or `decode` made it.
---@class tokaido.json
---@field null any what stands for `null` in a table
local json = {}

---JSON of a value; object keys are sorted.
---@param value any
---@return string
function json.encode(value) end

---A value from JSON; `null` is `json.null`. Raises where the text stops being JSON.
---@param text string
---@return any
function json.decode(text) end

---As `decode`, but gives nil and a message instead of raising.
---@param text string
---@return any value
---@return string? message
function json.try_decode(text) end

---Marks a table as an object, so that it is `{}` even when it is empty.
---@param value table?
---@return table
function json.object(value) end

---The module `tokaido`, as procedure files require it.
---@class tokaido
---@field json tokaido.json
local tokaido = {}

---A procedure that reads: it runs on a snapshot, on any core, and never waits for a writer.
---@generic F: fun(tx: tokaido.Transaction, ...: any): ...
---@param run F
---@return F
function tokaido.read(run) end

---A procedure that writes: it runs alone, and all of it happens or nothing.
---@generic F: fun(tx: tokaido.Transaction, ...: any): ...
---@param run F
---@return F
function tokaido.write(run) end

---A handler of a route, as `"GET /hits/:page"`; `:name` takes one segment of the path, `*name` at
---the end the rest. GET, HEAD and OPTIONS run on a snapshot, others write; `tokaido.http(route,
---tokaido.write(run))` says otherwise.
---@param route string
---@param run fun(tx: tokaido.Transaction, req: tokaido.Request, res: tokaido.Response): any, any
---@return fun(tx: tokaido.Transaction, req: tokaido.Request, res: tokaido.Response): any, any
function tokaido.http(route, run) end

---Writes a line to the server's log. The first of several arguments may be a level: "error",
---"warn", "info" or "debug".
---@param ... any
function tokaido.log(...) end

---So many random bytes of the system, which nobody can guess: for tokens and keys. `math.random` is
---for everything else.
---@param len integer 0 to 1048576
---@return string
function tokaido.random_bytes(len) end

---A random UUID (version 4), as in "0f8fad5b-d9cb-469f-a165-70867728950e".
---@return string
function tokaido.uuid() end

---A 64-bit integer from a string or number, exactly; nil if it is none.
---@param value any
---@return integer?
function tokaido.integer(value) end

---What a value becomes as a key or value: integers without exponent or suffix.
---@param value any
---@return string
function tokaido.text(value) end

---In scripts (`tokaido run`, `tokaido shell`): calls `run(tx, ...)` in a write transaction that is
---durable when this returns. If it raises, nothing of it remains.
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
