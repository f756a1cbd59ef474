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
    (Group::Geo, "Geospatial data"),
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

Any Redis client can talk to Tokaido, in version 2 or 3 of the protocol. These are the commands that
it supports, with Redis's semantics and error messages, except for what is listed under
*Differences*. *Runs on* says where a command is executed: `snapshot` means on any core, without
ever waiting for a writer; `writer`, as a transaction that is on disk before its reply is sent;
`procedure`, as the mode of the procedure requires; `session`, without touching the data.
";

const TAIL: &str = "
## Procedures by their bare name

A procedure is called like a command: `hits.count /index` is the same as
`FCALL hits.count 1 /index`. Arguments arrive as strings. Results are converted as follows: an
integer to an integer; any other number to a double (version 2: a string); a string to a string; a
list to an array; any other table to a map (version 2: a flat array of keys and values); `true` and
`false` to booleans (version 2: 1 and null); `nil` to null. An error is a single line that names the
file and the line, such as `ERR hits.lua:12: no such page`, and none of the changes that the call
made are kept.

## Differences

- A key has 1 to 4096 bytes, and a value has at most 64 MiB, unless the server is configured with lower
  limits.
- `EXEC` is all or nothing: if a queued command fails, the transaction is rolled back, and the reply is
  `EXECABORT`. Redis would keep the changes of the other commands.
- `SELECT`, `MOVE`, `COPY` and `SWAPDB` also accept the name of a database, as in `SELECT companies`. Number 0
  is the database `main`, number 7 is the database `7`.
- `FLUSHALL` also deletes the named databases and frees their names; `main` and caches stay, but are emptied.
  `TOKAIDO DROP` deletes a single database.
- `KEYS` and `SCAN` return keys in byte order, and a pattern that starts with plain text visits only keys that
  start with it. The cursor of a `SCAN` is forgotten once 4,096 newer ones (`scan_cursors_max`) exist; using
  it then returns an error.
- `MEMORY USAGE` counts key, value and header as they are stored, not Redis's structures. The header counts as
  20 bytes, and as 8 more for a collection that stores its elements separately; of such a collection, only the
  record is counted.
- A reply (that of `EXEC` as a whole) has at most 128 MiB (`reply_bytes_max`), and the same limit applies to
  what a command such as `ZUNIONSTORE` or `SINTER` collects. A command that needs more returns an error and
  changes nothing; use `HSCAN`, `SSCAN`, `ZSCAN` or smaller ranges.
- `KEYS` returns at most 1,000,000 keys (`keys_results_max`); if more match, it returns an error.
- `RANDOMKEY` walks through a database of up to 10,000 records, so that every key is equally likely. In a
  larger one, it takes some hundreds of lookups, and some keys are returned somewhat more often than others.
  In a cache or a constant database, it returns only keys from one part of it.
- The errors for `MIGRATE`, `PSYNC`, `REPLCONF`, `SYNC`, `PFDEBUG` and `PFSELFTEST`, which do not exist here,
  say what to use instead, after Redis' own message.
- `CLIENT LIST` has Redis' fields; those about buffers and memory are 0. In `INFO`, `expires` is an estimate
  if more than 10,000 records in all databases have an expiry.
- `INCRBYFLOAT` and `HINCRBYFLOAT` calculate with 64-bit floating-point numbers, as Lua does, where Redis uses
  80 bits.
- `HELLO` returns an error between `MULTI` and `EXEC`.
- `CONFIG SET` changes settings that are in the section `[redis]` of the configuration
  (`notify-keyspace-events`, `slowlog-log-slower-than`, `slowlog-max-len`, `latency-monitor-threshold`,
  `tracking-table-max-keys`). The changes last until the server stops, or for good with `CONFIG REWRITE`. That
  writes only these settings: each one that differs from the file, including those given by a flag of the
  server.
- `SLOWLOG`, `LATENCY` and `INFO commandstats` report how long a command ran, without the time that it waited
  for its turn or for the disk. `EXEC` and `EVAL` count as one command each. `LATENCY` has the events
  `command` and `fast-command`. The steps of `LATENCY HISTOGRAM` are powers of two.
- `MONITOR` shows a script after the commands that it ran. It does not show what procedures do.
- `CLIENT TRACKING` reports changes made through every protocol, by procedures and by expiry, once they are on
  disk. With `NOLOOP`, keys stay tracked when the client itself changes them. Keys of caches and constant
  databases are reported as changed as soon as they are read. For a procedure that reads, the keys that
  `FCALL` names are tracked, and those that it reads by means of commands.
- A session that must authenticate first is told only that, even for unknown commands.
- The rules of users apply in all protocols: see users.md. `ACL LOG` shows what clients of this protocol were
  denied. `SORT` with `BY` or `GET`, by a user who may not read every key, is refused as early as when it is
  queued, not when `EXEC` runs it. A malformed request, whose keys cannot be determined, is denied to users
  who may not use all keys.
- On a cache, commands that write only to it (not `COPY`, `MOVE`, `FLUSHALL`) run on the worker, at once and
  without a transaction: `WATCH` and `MSETNX` are refused, and a failed `EXEC` does not undo them. A constant
  database refuses writes; `FLUSHALL` leaves it as it is. Neither keeps its keys in order, and their cursors
  do not run out, except when a constant database is replaced during the scan. See cache.md and cdb.md.
- A field of a hash or a member of a set or sorted set has at most 4096 bytes. `HRANDFIELD`, `SRANDMEMBER` and
  `ZRANDMEMBER` with a negative count return at most 1,000,000 elements (`keys_results_max`). In large
  collections, some elements are returned a little more often than others. `HSCAN` has the option `NOVALUES`
  of Redis 7.4. `OBJECT ENCODING` depends on `packed_elements_max` and `packed_text_bytes_max`, and never
  returns `intset`.
- `LINSERT` and `LREM` in a large list rewrite the elements between the position and the nearer end; one
  command writes at most `transaction_writes_max` elements.
- The score -0 is stored as 0. A range by members of a sorted set with several scores treats all members as if
  they had the score of the first one; Redis leaves the result unspecified.
- `SUBSCRIBE` and the like return an error between `MULTI` and `EXEC`. What a transaction publishes, whether
  in `MULTI` or in a procedure, is sent once it is committed, and never if it is rolled back. What is
  published after a write in the same pipeline is sent once that write is on disk. The number that `PUBLISH`
  returns is that of the moment when it ran.
- Commands on bits read and write the whole value. The bits, and the numbers of `BITFIELD`, must lie within
  the maximum length of a value. With `OVERFLOW SAT`, `SET` in `BITFIELD` also saturates numbers far below the
  minimum; Redis takes some of them for too large.
- `LCS` accepts values whose lengths, multiplied, are at most about 2^24; in Redis, the limit is 2^27.
- The value of a HyperLogLog is the same as in Redis, byte for byte, until it is counted: Redis stores the
  result of `PFCOUNT` in the value, whereas here `PFCOUNT` only reads. If the value already contains a result,
  `PFCOUNT` returns it. `PFDEBUG` and `PFSELFTEST` do not exist.
- Clients that wait (in `BLPOP` and the like) are served in the order in which they began to wait, however an
  element is added. These commands do not wait between `MULTI` and `EXEC` or in procedures, and return an
  error on a cache or a constant database. `WAIT` and `WAITAOF` return at once.
- Keyspace events are sent once the change is on disk, whoever made it, but not for changes to caches. In a
  transaction of several commands, if the transaction has changed a key, each write command that names the key
  counts as a change of it. A key that is created and deleted within one transaction has no events. A record
  has its `expired` event when it is removed (`expiry_interval_ms`), and none if it is overwritten before.
  There are no events of the classes `m`, `n`, `e` and `d`.
- `SORT` keeps all elements and its results in memory while it sorts, up to `reply_bytes_max`. With `ALPHA`,
  elements whose texts to sort by are equal stay in the order of the collection; in Redis, their order is
  arbitrary.
- `~` in `XADD` and `XTRIM` trims as `=` does, but at most 10,000 entries at once, or as many as `LIMIT` says.
  The radix tree numbers in `XINFO STREAM` are those of a tree with a node for each entry. The names of groups
  and consumers have at most 4096 bytes.
- An entry that is added and deleted within one `MULTI` wakes no client. A client that waits for several keys
  (lists or streams), more than one of which are filled by one transaction, script or pipeline, is served from
  the first of them in its arguments; in Redis, from the one that was filled first.
- For clients that `WATCH` a stream, the creation or deletion of a group or a consumer is a change, too. A
  client that waits for new entries of a group is also served when `XGROUP SETID` moves the group back.
- `DUMP` returns the plain encodings that every version of Redis can read, in version 10 of the format, which
  is that of Redis 7.0. `RESTORE` accepts all encodings up to Redis 7.2, including compressed ones, and
  refuses data after the value. The memory that a value takes meanwhile is limited by `reply_bytes_max`. Idle
  times and access frequencies are not recorded. `MIGRATE` does not exist.
- A script of `EVAL` is a transaction, as is a function of `FUNCTION LOAD`, and can always be stopped: see
  redis-scripts.md.
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
