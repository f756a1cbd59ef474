---@meta
-- Hashes, lists, sets, sorted sets and streams, for editors as tokaido.lua beside this file.

---A hash: fields, each with a value. What commands of Redis call a hash is the same value. Where the key holds a
---value of another kind, methods of this and of the classes below raise an error with the code `WRONGTYPE`.
---@class tokaido.Hash
---@field key string
local Hash = {}

---The value of a field; nil if there is none.
---@param field tokaido.Bytes
---@return string?
function Hash:get(field) end

---Whether there is a field.
---@param field tokaido.Bytes
---@return boolean
function Hash:has(field) end

---The values of those fields that there are, by field.
---@generic K: tokaido.Bytes
---@param fields K[]
---@return table<K, string>
function Hash:get_many(fields) end

---How many fields there are.
---@return integer
function Hash:count() end

---Sets a field; tells whether it is new.
---@param field tokaido.Bytes
---@param value tokaido.Bytes
---@return boolean
function Hash:set(field, value) end

---Sets a field if there is none of that name; tells whether it did.
---@param field tokaido.Bytes
---@param value tokaido.Bytes
---@return boolean
function Hash:add(field, value) end

---Deletes a field; tells whether there was one.
---@param field tokaido.Bytes
---@return boolean
function Hash:delete(field) end

---Adds to the counter in a field, and gives the new value, as `db:increment`.
---@param field tokaido.Bytes
---@param by integer? 1 if left out
---@return integer
function Hash:increment(field, by) end

---Adds to the counter in a field, which may have a fraction, and gives the new value.
---@param field tokaido.Bytes
---@param by number
---@return number
function Hash:increment_float(field, by) end

---A field that chance chooses, with its value; nil if there is none.
---@return string? field
---@return string? value
function Hash:random() end

---Fields with their values, in no order that means anything: `for field, value in hash:scan() do`. The loop may
---write, also to the hash; what is there all the while comes once.
---@return fun(state: any, field: string?): string?, string?
---@return any
function Hash:scan() end

---All fields with their values.
---@return table<string, string>
function Hash:all() end

---A list: items in the order in which they were put. Positions begin with 1; negative ones count from the end.
---@class tokaido.List
---@field key string
local List = {}

---How many items there are.
---@return integer
function List:count() end

---The item of a position; nil if there is none.
---@param position integer
---@return string?
function List:get(position) end

---Puts an item before the first one; gives the number of items then.
---@param item tokaido.Bytes
---@return integer
function List:push_left(item) end

---Puts an item behind the last one; gives the number of items then.
---@param item tokaido.Bytes
---@return integer
function List:push_right(item) end

---Takes the first item; nil if there is none.
---@return string?
function List:pop_left() end

---Takes the last item; nil if there is none.
---@return string?
function List:pop_right() end

---Puts an item in the place of another; tells whether there was one.
---@param position integer
---@param item tokaido.Bytes
---@return boolean
function List:set(position, item) end

---Puts an item before the one of a position, or behind the last one; gives the number of items then, or nil if
---there is no such position.
---@param position integer
---@param item tokaido.Bytes
---@return integer?
function List:insert(position, item) end

---Takes the item of a position out; nil if there is none.
---@param position integer
---@return string?
function List:remove(position) end

---Removes all items but those from one position to another.
---@param first integer
---@param last integer
function List:trim(first, last) end

---The position of the first such item; nil if there is none.
---@param item tokaido.Bytes
---@return integer?
function List:find(item) end

---The items from one position to another.
---@param first integer
---@param last integer
---@return string[]
function List:range(first, last) end

---Positions with their items: `for position, item in list:scan() do`. The loop may write; it goes on by position.
---@param range tokaido.ListRange?
---@return fun(state: any, position: integer?): integer?, string?
---@return any
function List:scan(range) end

---@class tokaido.ListRange
---@field first integer? the first position, 1 if left out
---@field last integer? the last position, -1 if left out
---@field reverse boolean? from the last to the first

---A set: members, each once.
---@class tokaido.Set
---@field key string
local Set = {}

---Whether there is a member.
---@param member tokaido.Bytes
---@return boolean
function Set:has(member) end

---How many members there are.
---@return integer
function Set:count() end

---Adds a member; tells whether it is new.
---@param member tokaido.Bytes
---@return boolean
function Set:add(member) end

---Removes a member; tells whether there was one.
---@param member tokaido.Bytes
---@return boolean
function Set:remove(member) end

---Takes a member out that chance chooses; nil if there is none.
---@return string?
function Set:pop() end

---A member that chance chooses; nil if there is none.
---@return string?
function Set:random() end

---Members, in no order that means anything: `for member in set:scan() do`. As of a hash, the loop may write.
---@return fun(state: any, member: string?): string?
---@return any
function Set:scan() end

---All members.
---@return string[]
function Set:all() end

---The members that this set or any of the others has. They may be of other databases.
---@param ... tokaido.Set
---@return string[]
function Set:union(...) end

---The members that this set and all of the others have.
---@param ... tokaido.Set
---@return string[]
function Set:intersection(...) end

---The members that this set has, and none of the others.
---@param ... tokaido.Set
---@return string[]
function Set:difference(...) end

---Makes this the set of just these members, in place of whatever is under the key; gives how many they are.
---@param members tokaido.Bytes[]
---@return integer
function Set:replace(members) end

---A sorted set: members, each with a score, in the order of the scores, and of their bytes where these are the
---same. The member with the lowest score has rank 1.
---@class tokaido.SortedSet
---@field key string
local SortedSet = {}

---The score of a member; nil if there is none.
---@param member tokaido.Bytes
---@return number?
function SortedSet:score(member) end

---Whether there is a member.
---@param member tokaido.Bytes
---@return boolean
function SortedSet:has(member) end

---The rank of a member, and its score; nil if there is none.
---@param member tokaido.Bytes
---@param reverse boolean? the highest score has rank 1
---@return integer? rank
---@return number? score
function SortedSet:rank(member, reverse) end

---How many members there are, or how many are in a range.
---@param range tokaido.SortedRange?
---@return integer
function SortedSet:count(range) end

---Gives a member a score; tells whether the member is new.
---@param member tokaido.Bytes
---@param score number any but NaN
---@return boolean
function SortedSet:add(member, score) end

---Adds to the score of a member, and gives the new one. A missing member has 0.
---@param member tokaido.Bytes
---@param by number? 1 if left out
---@return number
function SortedSet:increment(member, by) end

---Removes a member; tells whether there was one.
---@param member tokaido.Bytes
---@return boolean
function SortedSet:remove(member) end

---Removes the members of a range; gives how many they were.
---@param range tokaido.SortedRange?
---@return integer
function SortedSet:remove_range(range) end

---Takes out the member with the lowest score; nil if there is none.
---@return string? member
---@return number? score
function SortedSet:pop_min() end

---Takes out the member with the highest score; nil if there is none.
---@return string? member
---@return number? score
function SortedSet:pop_max() end

---A member that chance chooses, with its score; nil if there is none.
---@return string? member
---@return number? score
function SortedSet:random() end

---Members with their scores: `for member, score in sorted_set:scan{reverse = true, limit = 10} do`. The loop may
---write; it goes on behind the member where it stands.
---@param range tokaido.SortedRange?
---@return fun(state: any, member: string?): string?, number?
---@return any
function SortedSet:scan(range) end

---Members between others in the order of their bytes, where all of them have the same score; else it is not
---defined which of them come.
---@param range (tokaido.Range|tokaido.Bytes)?
---@return fun(state: any, member: string?): string?, number?
---@return any
function SortedSet:scan_members(range) end

---@class tokaido.SortedRange
---@field from number? the lowest score
---@field after number? scores greater than this one
---@field to number? the highest score
---@field before number? scores less than this one
---@field first integer? the first one of these, from the end that is begun with; negative: from the other end
---@field last integer? the last one of these
---@field reverse boolean? from the highest score to the lowest
---@field limit integer? stop after so many

---A stream: entries of fields with values, in the order of their ids, which only grow. An id is a time in ms and a
---number, as `"1700000000000-0"`; without the number it is the first one of its time.
---@class tokaido.Stream
---@field key string
local Stream = {}

---Adds an entry behind all others, and gives its id. A reader of commands sees its fields in the order of their names.
---@param fields table<tokaido.Bytes, tokaido.Bytes>
---@param options tokaido.StreamAdd?
---@return string
function Stream:add(fields, options) end

---How many entries there are.
---@return integer
function Stream:count() end

---The largest id that an entry ever had, also one that was deleted; nil if there is no stream.
---@return string?
function Stream:last_id() end

---The fields of an entry; nil if there is none of that id.
---@param id tokaido.Bytes
---@return table<string, string>?
function Stream:get(id) end

---Deletes an entry; tells whether there was one.
---@param id tokaido.Bytes
---@return boolean
function Stream:delete(id) end

---Deletes the first entries, until only so many are left, or those before an id; gives how many they were.
---@param options tokaido.StreamTrim
---@return integer
function Stream:trim(options) end

---The entries of a range, by id, with their fields: `for id, fields in stream:scan { after = id, limit = 10 } do`. The
---loop may write; what is added behind its place is still shown.
---@param range tokaido.StreamRange?
---@return fun(state: any, id: string?): string?, table<string, string>?
---@return any
function Stream:scan(range) end

---A group of consumers, which share the entries out. It need not be there.
---@param name tokaido.Bytes
---@return tokaido.StreamGroup
function Stream:group(name) end

---@class tokaido.StreamAdd: tokaido.StreamTrim
---@field id tokaido.Bytes? larger than that of all before it; if left out, by the clock

---@class tokaido.StreamTrim
---@field max_count integer? how many entries are left at most
---@field min_id tokaido.Bytes? the lowest id that is left

---@class tokaido.StreamRange
---@field from tokaido.Bytes? the lowest id
---@field after tokaido.Bytes? ids greater than this one
---@field to tokaido.Bytes? the highest id; without a number, the last one of its time
---@field before tokaido.Bytes? ids less than this one
---@field reverse boolean? from the highest id to the lowest
---@field limit integer? stop after so many

---A group of consumers of a stream. What one of them has read and nobody has acknowledged is pending. All methods but
---`exists`, `create` and `destroy` raise an error if there is no such group.
---@class tokaido.StreamGroup
---@field key string the name of the group
---@field stream string the key of the stream
local StreamGroup = {}

---Whether there is such a group.
---@return boolean
function StreamGroup:exists() end

---Makes the group, and the stream if there is none; tells whether the group is new.
---@param after tokaido.Bytes? entries behind this id are new to it, as all are for `"0-0"`; if left out, those that come from now on
---@return boolean
function StreamGroup:create(after) end

---Deletes the group with all that it knows; tells whether there was one.
---@return boolean
function StreamGroup:destroy() end

---Delivers new entries to a consumer, which comes into being with the first ones.
---@param consumer tokaido.Bytes
---@param count integer how many at most
---@return { id: string, fields: table<string, string> }[]
function StreamGroup:read(consumer, count) end

---Says that an entry is done with; tells whether it was pending.
---@param id tokaido.Bytes
---@return boolean
function StreamGroup:acknowledge(id) end

---Gives a consumer an entry that was delivered so long ago or longer, to whomever; gives its fields, or nil if it is not
---pending, not for so long, or deleted.
---@param consumer tokaido.Bytes
---@param id tokaido.Bytes
---@param idle_ms number
---@return table<string, string>?
function StreamGroup:claim(consumer, id, idle_ms) end

---What is pending, by id: whose it is, for how long, and how often it was delivered.
---@param range tokaido.PendingRange?
---@return { id: string, consumer: string, idle_ms: number, deliveries: integer }[]
function StreamGroup:pending(range) end

---How much is pending, behind which id entries are new, and how much is pending of each consumer.
---@return { pending: integer, last_id: string, consumers: table<string, integer> }
function StreamGroup:summary() end

---@class tokaido.PendingRange
---@field consumer tokaido.Bytes? of this one alone
---@field idle_ms number? what was delivered so long ago or longer
---@field from tokaido.Bytes? the lowest id
---@field after tokaido.Bytes? ids greater than this one
---@field to tokaido.Bytes? the highest id
---@field before tokaido.Bytes? ids less than this one
---@field limit integer? so many at most
