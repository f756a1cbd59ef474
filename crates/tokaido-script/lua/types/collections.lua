---@meta
-- Hashes, lists, sets, sorted sets and streams, for editors, like tokaido.lua in the same folder.

---A hash: fields, each with a value. It is the same value as a hash of the Redis commands. If the key holds a value of
---another kind, the methods of this class and those below raise an error with the code `WRONGTYPE`.
---@class tokaido.Hash
---@field key string
local Hash = {}

---Returns the value of a field; nil if it does not exist.
---@param field tokaido.Bytes
---@return string?
function Hash:get(field) end

---Returns whether a field exists.
---@param field tokaido.Bytes
---@return boolean
function Hash:has(field) end

---Returns the values of those fields that exist, by field.
---@generic K: tokaido.Bytes
---@param fields K[]
---@return table<K, string>
function Hash:get_many(fields) end

---Returns the number of fields.
---@return integer
function Hash:count() end

---Sets a field; returns whether it is new.
---@param field tokaido.Bytes
---@param value tokaido.Bytes
---@return boolean
function Hash:set(field, value) end

---Sets a field if it does not exist; returns whether it was set.
---@param field tokaido.Bytes
---@param value tokaido.Bytes
---@return boolean
function Hash:add(field, value) end

---Deletes a field; returns whether it existed.
---@param field tokaido.Bytes
---@return boolean
function Hash:delete(field) end

---Adds to the counter in a field and returns the new value, like `db:increment`.
---@param field tokaido.Bytes
---@param by integer? 1 if left out
---@return integer
function Hash:increment(field, by) end

---Adds to the counter in a field, which may have a fraction, and returns the new value.
---@param field tokaido.Bytes
---@param by number
---@return number
function Hash:increment_float(field, by) end

---Returns a random field with its value; nil if there is none.
---@return string? field
---@return string? value
function Hash:random() end

---Iterates over the fields and their values, in no particular order: `for field, value in hash:scan() do`. The loop may
---write, even to the hash; a field that exists throughout is visited once.
---@return fun(state: any, field: string?): string?, string?
---@return any
function Hash:scan() end

---Returns all fields with their values.
---@return table<string, string>
function Hash:all() end

---A list: an ordered sequence of items. Positions begin with 1; negative ones count from the end.
---@class tokaido.List
---@field key string
local List = {}

---Returns the number of items.
---@return integer
function List:count() end

---Returns the item at a position; nil if there is none.
---@param position integer
---@return string?
function List:get(position) end

---Inserts an item before the first one; returns the new number of items.
---@param item tokaido.Bytes
---@return integer
function List:push_left(item) end

---Appends an item after the last one; returns the new number of items.
---@param item tokaido.Bytes
---@return integer
function List:push_right(item) end

---Removes and returns the first item; nil if there is none.
---@return string?
function List:pop_left() end

---Removes and returns the last item; nil if there is none.
---@return string?
function List:pop_right() end

---Replaces the item at a position; returns whether there was one.
---@param position integer
---@param item tokaido.Bytes
---@return boolean
function List:set(position, item) end

---Inserts an item before the one at a position; the position after the last item appends it. Returns the new number of
---items, or nil if there is no such position.
---@param position integer
---@param item tokaido.Bytes
---@return integer?
function List:insert(position, item) end

---Removes and returns the item at a position; nil if there is none.
---@param position integer
---@return string?
function List:remove(position) end

---Removes all items except those from one position to another, inclusive.
---@param first integer
---@param last integer
function List:trim(first, last) end

---Returns the position of the first item equal to this one; nil if there is none.
---@param item tokaido.Bytes
---@return integer?
function List:find(item) end

---Returns the items from one position to another, inclusive.
---@param first integer
---@param last integer
---@return string[]
function List:range(first, last) end

---Iterates over positions and items: `for position, item in list:scan() do`. The loop may write; it continues by position.
---@param range tokaido.ListRange?
---@return fun(state: any, position: integer?): integer?, string?
---@return any
function List:scan(range) end

---@class tokaido.ListRange
---@field first integer? the first position, 1 if left out
---@field last integer? the last position, -1 if left out
---@field reverse boolean? from the last to the first

---A set of unique members.
---@class tokaido.Set
---@field key string
local Set = {}

---Returns whether a member exists.
---@param member tokaido.Bytes
---@return boolean
function Set:has(member) end

---Returns the number of members.
---@return integer
function Set:count() end

---Adds a member; returns whether it is new.
---@param member tokaido.Bytes
---@return boolean
function Set:add(member) end

---Removes a member; returns whether it existed.
---@param member tokaido.Bytes
---@return boolean
function Set:remove(member) end

---Removes and returns a random member; nil if there is none.
---@return string?
function Set:pop() end

---Returns a random member; nil if there is none.
---@return string?
function Set:random() end

---Iterates over the members, in no particular order: `for member in set:scan() do`. The loop may write, as for a hash.
---@return fun(state: any, member: string?): string?
---@return any
function Set:scan() end

---Returns all members.
---@return string[]
function Set:all() end

---Returns the members of this set or any of the others, which may be in other databases.
---@param ... tokaido.Set
---@return string[]
function Set:union(...) end

---Returns the members that this set and all of the others have in common.
---@param ... tokaido.Set
---@return string[]
function Set:intersection(...) end

---Returns the members of this set that none of the others has.
---@param ... tokaido.Set
---@return string[]
function Set:difference(...) end

---Replaces whatever is under the key with a set of exactly these members; returns how many there are.
---@param members tokaido.Bytes[]
---@return integer
function Set:replace(members) end

---A sorted set: members, each with a score, in the order of their scores, or of their bytes where the scores are the
---same. The member with the lowest score has rank 1.
---@class tokaido.SortedSet
---@field key string
local SortedSet = {}

---Returns the score of a member; nil if it does not exist.
---@param member tokaido.Bytes
---@return number?
function SortedSet:score(member) end

---Returns whether a member exists.
---@param member tokaido.Bytes
---@return boolean
function SortedSet:has(member) end

---Returns the rank of a member and its score; nil if it does not exist.
---@param member tokaido.Bytes
---@param reverse boolean? if true, the highest score has rank 1
---@return integer? rank
---@return number? score
function SortedSet:rank(member, reverse) end

---Returns the number of members, or of those in a range.
---@param range tokaido.SortedRange?
---@return integer
function SortedSet:count(range) end

---Sets the score of a member, adding it if it does not exist; returns whether it is new.
---@param member tokaido.Bytes
---@param score number any but NaN
---@return boolean
function SortedSet:add(member, score) end

---Adds to the score of a member and returns the new score. A missing member counts as 0.
---@param member tokaido.Bytes
---@param by number? 1 if left out
---@return number
function SortedSet:increment(member, by) end

---Removes a member; returns whether it existed.
---@param member tokaido.Bytes
---@return boolean
function SortedSet:remove(member) end

---Removes the members of a range; returns how many were removed.
---@param range tokaido.SortedRange?
---@return integer
function SortedSet:remove_range(range) end

---Removes and returns the member with the lowest score; nil if there is none.
---@return string? member
---@return number? score
function SortedSet:pop_min() end

---Removes and returns the member with the highest score; nil if there is none.
---@return string? member
---@return number? score
function SortedSet:pop_max() end

---Returns a random member with its score; nil if there is none.
---@return string? member
---@return number? score
function SortedSet:random() end

---Iterates over members and their scores: `for member, score in sorted_set:scan{reverse = true, limit = 10} do`. The
---loop may write. Members are loaded in batches, each of which begins after the last member of the one before.
---@param range tokaido.SortedRange?
---@return fun(state: any, member: string?): string?, number?
---@return any
function SortedSet:scan(range) end

---Iterates over the members in a range of bytes, if all members have the same score; otherwise it is not defined which
---members are visited.
---@param range (tokaido.Range|tokaido.Bytes)?
---@return fun(state: any, member: string?): string?, number?
---@return any
function SortedSet:scan_members(range) end

---@class tokaido.SortedRange
---@field from number? the lowest score
---@field after number? scores greater than this one
---@field to number? the highest score
---@field before number? scores less than this one
---@field first integer? position of the first of these, from the end where the scan starts; negative: from the other end
---@field last integer? position of the last of these
---@field reverse boolean? from the highest score to the lowest
---@field limit integer? stop after this many

---A stream: entries, each with fields and their values, in the order of their ids, which only increase. An id is a time
---in milliseconds and a number, such as `"1700000000000-0"`; without the number, it is the first id of its time.
---@class tokaido.Stream
---@field key string
local Stream = {}

---Appends an entry and returns its id. Redis commands show its fields in the order of their names.
---@param fields table<tokaido.Bytes, tokaido.Bytes>
---@param options tokaido.StreamAdd?
---@return string
function Stream:add(fields, options) end

---Returns the number of entries.
---@return integer
function Stream:count() end

---Returns the largest id that any entry has ever had, including deleted ones; nil if there is no stream.
---@return string?
function Stream:last_id() end

---Returns the fields of an entry; nil if no entry has that id.
---@param id tokaido.Bytes
---@return table<string, string>?
function Stream:get(id) end

---Deletes an entry; returns whether it existed.
---@param id tokaido.Bytes
---@return boolean
function Stream:delete(id) end

---Deletes the first entries until at most `max_count` are left, and those before `min_id`; returns how many were deleted.
---@param options tokaido.StreamTrim
---@return integer
function Stream:trim(options) end

---Iterates over the entries of a range, by id, with their fields:
---`for id, fields in stream:scan { after = id, limit = 10 } do`. The loop may write; entries added after its position
---may or may not be visited.
---@param range tokaido.StreamRange?
---@return fun(state: any, id: string?): string?, table<string, string>?
---@return any
function Stream:scan(range) end

---Returns a consumer group, among whose consumers the entries are divided. It need not exist.
---@param name tokaido.Bytes
---@return tokaido.StreamGroup
function Stream:group(name) end

---@class tokaido.StreamAdd: tokaido.StreamTrim
---@field id tokaido.Bytes? must be larger than all ids before it; if left out, it is taken from the clock

---@class tokaido.StreamTrim
---@field max_count integer? the maximum number of entries to keep
---@field min_id tokaido.Bytes? the lowest id to keep

---@class tokaido.StreamRange
---@field from tokaido.Bytes? the lowest id
---@field after tokaido.Bytes? ids greater than this one
---@field to tokaido.Bytes? the highest id; without a number, the last id of its time
---@field before tokaido.Bytes? ids less than this one
---@field reverse boolean? from the highest id to the lowest
---@field limit integer? stop after this many

---A consumer group of a stream. An entry that a consumer has read and nobody has acknowledged is pending.
---All methods except `exists`, `create` and `destroy` raise an error if the group does not exist.
---@class tokaido.StreamGroup
---@field key string the name of the group
---@field stream string the key of the stream
local StreamGroup = {}

---Returns whether the group exists.
---@return boolean
function StreamGroup:exists() end

---Creates the group, and the stream if it does not exist; returns whether the group is new.
---@param after tokaido.Bytes? entries after this id are new to the group (`"0-0"`: all); if left out, those added from now on
---@return boolean
function StreamGroup:create(after) end

---Deletes the group with its consumers and pending entries; returns whether it existed.
---@return boolean
function StreamGroup:destroy() end

---Delivers new entries to a consumer, which is created with the first ones.
---@param consumer tokaido.Bytes
---@param count integer the maximum number of entries
---@return { id: string, fields: table<string, string> }[]
function StreamGroup:read(consumer, count) end

---Acknowledges an entry; returns whether it was pending.
---@param id tokaido.Bytes
---@return boolean
function StreamGroup:acknowledge(id) end

---Assigns a pending entry to a consumer if it was last delivered, to any consumer, at least `idle_ms` milliseconds ago.
---Returns its fields, or nil if it is not pending, was delivered more recently, or was deleted.
---@param consumer tokaido.Bytes
---@param id tokaido.Bytes
---@param idle_ms number
---@return table<string, string>?
function StreamGroup:claim(consumer, id, idle_ms) end

---Returns the pending entries, by id: the consumer of each, how long ago it was delivered, and how many times.
---@param range tokaido.PendingRange?
---@return { id: string, consumer: string, idle_ms: number, deliveries: integer }[]
function StreamGroup:pending(range) end

---Returns the number of pending entries, the id after which entries are new, and the number of pending entries of each
---consumer.
---@return { pending: integer, last_id: string, consumers: table<string, integer> }
function StreamGroup:summary() end

---@class tokaido.PendingRange
---@field consumer tokaido.Bytes? only entries of this consumer
---@field idle_ms number? only entries delivered at least this many milliseconds ago
---@field from tokaido.Bytes? the lowest id
---@field after tokaido.Bytes? ids greater than this one
---@field to tokaido.Bytes? the highest id
---@field before tokaido.Bytes? ids less than this one
---@field limit integer? the maximum number of entries
