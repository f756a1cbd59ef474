//! The page `docs/redis-commands.md`, generated from the table.

use std::fmt::Write;

use super::{
    command::{Access, Command, Group},
    coverage,
    table::COMMANDS,
};

/// The groups in the order of the page.
const GROUPS: [(Group, &str); 15] = [
    (Group::String, "Values"),
    (Group::Bitmap, "Bitmaps"),
    (Group::HyperLogLog, "HyperLogLogs"),
    (Group::Hash, "Hashes"),
    (Group::List, "Lists"),
    (Group::Set, "Sets"),
    (Group::SortedSet, "Sorted sets"),
    (Group::Stream, "Streams"),
    (Group::Geo, "Places on the earth"),
    (Group::Generic, "Keys"),
    (Group::PubSub, "Publish and subscribe"),
    (Group::Scripting, "Procedures and scripts"),
    (Group::Transactions, "Transactions"),
    (Group::Connection, "Connections"),
    (Group::Server, "Server"),
];

const HEAD: &str = "\
# Redis commands

<!-- Written from the table of commands by `cargo xtask docs`. Do not edit. -->

Any Redis client can talk to Tokaido, in version 2 or 3 of the protocol. These are the commands it
knows, with Redis's semantics and error texts, but for what is listed under *Differences*.
*Runs on* says where a command is executed: `snapshot`, on every core, never waiting for a writer;
`writer`, as a transaction that is on disk before its reply is sent; `procedure`, as the
procedure's own mode says; `session`, without touching the data.
";

const TAIL: &str = "
## Procedures by their bare name

A procedure is called like a command: `hits.count /index` is `FCALL hits.count 1 /index`. Arguments
arrive as strings. Results are mapped so: an integer to an integer; any other number to a double
(version 2: a string); a string to a string; a list to an array; any other table to a map (version
2: a flat array of keys and values); `true` and `false` to booleans (version 2: 1 and null); `nil`
to null. An error is one line with file and line, as `ERR hits.lua:12: no such page`, and nothing of
the call remains in the data.

## Differences

- A key has 1 to 4096 bytes, a value at most 64 MiB, if the server is not set to less.
- `EXEC` is all or nothing: if a queued command fails, the transaction is rolled back and answered
  with `EXECABORT`. Redis would keep what the other commands did.
- `SELECT`, `MOVE`, `COPY` and `SWAPDB` also take the name of a database, as in `SELECT companies`. Number 0
  is the database `main`, number 7 is the database `7`.
- `FLUSHALL` deletes the named databases, too, and gives their names back; `main` and caches
  stay, empty. `TOKAIDO DROP` deletes one database.
- `KEYS` and `SCAN` give keys in their order as bytes, and a pattern that starts with plain text
  visits only keys that start with it. The cursor of a `SCAN` is forgotten when 4,096 newer ones
  (`scan_cursors_max`) exist; it can then not be used any more, and says so.
- `MEMORY USAGE` counts key, value and header as they are stored, not Redis's structures: the header as 20 bytes, and
  8 more for a collection with elements of its own, of which only the record is counted.
- A reply, that of `EXEC` as a whole, has at most 128 MiB (`reply_bytes_max`), and so has what a command such as
  `ZUNIONSTORE` or `SINTER` gathers. What would need more is refused, and changes nothing; use `HSCAN`, `SSCAN`, `ZSCAN` or smaller
  ranges.
- `KEYS` gives at most 1,000,000 keys (`keys_results_max`).
- `RANDOMKEY` walks through a database of up to 10,000 records to draw every key with the same
  probability. In a larger one it takes some hundreds of look-ups, and some keys are drawn somewhat more often than
  others; in a cache or a constant database they are of one part of it.
- An unknown command that Redis has is answered with what serves in its place, behind Redis' own words.
- `CLIENT LIST` has Redis' fields; those about buffers and memory are 0. In `INFO`, `expires` is an estimate if more
  than 10,000 records of all databases will expire.
- `INCRBYFLOAT` and `HINCRBYFLOAT` count with 64-bit floating-point numbers, as Lua does, where Redis uses 80 bits.
- `HELLO` is refused between `MULTI` and `EXEC`. `CONFIG SET`
  changes what stands in `[redis]` of the configuration (`notify-keyspace-events`, `slowlog-log-slower-than`, `slowlog-max-len`,
  `latency-monitor-threshold`, `tracking-table-max-keys`) until the server stops, and for good with
  `CONFIG REWRITE`, which writes these settings alone: each that is not as in the file, also one that a flag of the
  server gave.
- `SLOWLOG`, `LATENCY` and `INFO commandstats` tell how long a command ran, without its waiting for its turn or for the disk. `EXEC`
  and `EVAL` count as one. `LATENCY` knows the events `command` and `fast-command`. `LATENCY HISTOGRAM` has the powers of two.
- `MONITOR` shows a script behind the commands that it ran; what procedures do it does not show.
- `CLIENT TRACKING` tells of changes by every protocol, by procedures and by expiry, once they are on disk. With `NOLOOP` a
  client's own changes leave its keys tracked. Keys of caches and of constant databases are said to have changed as soon as they
  are read. Of a procedure that reads, the keys that `FCALL` names are tracked, and those that it reads by commands.
- A session that has not given the password is told nothing but that, even for unknown commands.
- The rules of users hold in all protocols: see users.md. `ACL LOG` has what clients of this protocol were denied. `SORT` with `BY` or `GET` and
  no right to read every key is refused when it is queued, too, and not when `EXEC` runs it. A request that is not well formed, so that
  nobody can say which keys it names, is denied to users who may not use all keys.
- On a cache, what writes to it alone (not `COPY`, `MOVE`, `FLUSHALL`) runs on the worker, at once and
  without a transaction: `WATCH` and `MSETNX` are refused, and `EXEC` does not take it back. A constant
  database refuses what writes; `FLUSHALL` leaves it as it is. Neither has an order of keys, and their
  cursors do not run out, except where a constant database is replaced meanwhile. See cache.md and
  cdb.md.
- A field of a hash or a member of a set or sorted set has at most 4096 bytes. `HRANDFIELD`, `SRANDMEMBER` and
  `ZRANDMEMBER` with a negative count give at most 1,000,000 elements (`keys_results_max`). In large collections some
  elements are drawn a little more often than others. `HSCAN` has Redis 7.4's `NOVALUES`. `OBJECT ENCODING` follows
  `packed_elements_max` and `packed_text_bytes_max`, and knows no `intset`.
- `LINSERT` and `LREM` in a large list write the items between the place and the nearer end again; one
  command writes at most `transaction_writes_max` items.
- The score -0 is kept as 0. A range by members of a sorted set with several scores takes all of them for the
  first one's; Redis says of it that it is unspecified.
- `SUBSCRIBE` and its like are refused between `MULTI` and `EXEC`. What a transaction publishes, be it of `MULTI` or a
  procedure's, is sent once it is committed, and never if it is rolled back. What is published behind a write in the same
  pipeline is sent once that write is on disk. The number that `PUBLISH` gives is that of the moment when it ran.
- A command on bits reads and writes the value as a whole. Bits and numbers of `BITFIELD` stand within the longest
  value. `SET` in `BITFIELD` saturates numbers far below the smallest one, too; Redis takes some for too large.
- `LCS` takes values whose lengths, multiplied, are at most 2^24, about; in Redis the product is 2^27.
- The value of a HyperLogLog is that of Redis byte for byte, as long as nobody counts: Redis notes the result of
  `PFCOUNT` in the value, here it only reads. A result that was noted is given. There are no `PFDEBUG` and `PFSELFTEST`.
- What waits (`BLPOP` and its like) is served in the order in which it began to wait, by every way in which an element can come, and does
  not wait between `MULTI` and `EXEC` or in procedures. On a cache or a constant database it is refused. `WAIT` and `WAITAOF`
  answer at once.
- Keyspace events come when the change is on disk, and tell of all who write but those to caches. In a transaction of several
  commands, each that names a key which the transaction has changed counts as a change of it, and a key that comes and goes within it has no events. A record has its `expired` event when it
  is removed (`expiry_interval_ms`), and none if it is overwritten before. There are no events of the classes `m`, `n`, `e` and `d`.
- `SORT` holds all elements and what it gives while it sorts, up to `reply_bytes_max`. Elements whose texts to be sorted by
  are equal stay in the order of the collection; in Redis they stand in any.
- `~` in `XADD` and `XTRIM` trims as `=` does, but at most 10,000 entries at once, or as many as `LIMIT` says. In `XINFO STREAM` the numbers
  of the radix tree are those of one with a node for each entry. The names of groups and consumers have at most 4096 bytes.
- An entry that comes and goes within one `MULTI` wakes nobody. Who waits for several keys, lists or streams, and finds more than one
  of them filled by one transaction, script or pipeline is served from the first of its arguments; in Redis from the one that was filled first.
- To those who `WATCH` a stream, groups and consumers that come or go are changes, too. A client that waits for new entries of a group is
  served as well when `XGROUP SETID` lets the group go back.
- `DUMP` gives the plain forms that every version of Redis reads, in version 10 of the format, which is that of Redis 7.0;
  `RESTORE` takes all forms up to Redis 7.2, compressed ones, too, and refuses what follows a value. What is held
  of a value meanwhile is bounded by `reply_bytes_max`. How long a record was idle, and how often it is read, is not
  noted. There is no `MIGRATE`.
- A script of `EVAL` is a transaction, as a function of `FUNCTION LOAD` is, and can always be stopped: see redis-scripts.md.
";

/// The page, in Markdown.
#[must_use]
pub fn documentation() -> String {
    let mut page = HEAD.to_owned();
    for (group, title) in GROUPS {
        // Writing to a string cannot fail.
        let _ =
            write!(page, "\n## {title}\n\n| command | what it does | runs on |\n|---|---|---|\n");
        for command in COMMANDS.iter().filter(|command| is_listed(command, group)) {
            let usage = command.usage().replace('|', "\\|");
            let runs_on = match command.access() {
                Access::Connection => "session",
                Access::Read => "snapshot",
                Access::Write => "writer",
                Access::Procedure => "procedure",
            };
            let _ = writeln!(page, "| `{usage}` | {} | {runs_on} |", command.summary);
        }
    }
    page + TAIL + &coverage::section()
}

/// Whether a group lists a command: not HELP, nor containers that do nothing by themselves.
fn is_listed(command: &Command, group: Group) -> bool {
    let does_nothing = command.is_container() && command.arity == -2;
    command.group == group && !does_nothing && !command.name.ends_with("|help")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_fresh() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/redis-commands.md");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(path, documentation()).unwrap();
        }
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(page == documentation(), "{path} is not what the table says: cargo xtask docs");
    }
}
