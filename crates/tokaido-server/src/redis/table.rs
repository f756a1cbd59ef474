//! The table of commands. Dispatch, COMMAND, and the page of documentation all follow it.

use super::{
    client,
    command::{Command, Flags, Group, Handler, KeyPositions},
    connection, counters, expiry,
    failure::Failure,
    introspection, keys, keyspace, procedures, scan, server, set, strings, transactions,
};
use Group::{Connection as CONNECTION, Generic as GENERIC, Scripting as SCRIPTING};
use Group::{Server as SERVER, String as STRING, Transactions as TRANSACTIONS};
use Handler::{Connection, Container, Exec, Procedure, Read, Write};
use tokaido_wire::resp::Request;

const fn positions(first: i8, last: i8, step: i8) -> KeyPositions {
    KeyPositions { first, last, step }
}

const NO_KEY: KeyPositions = positions(0, 0, 0);
const KEY: KeyPositions = positions(1, 1, 1);
const KEYS: KeyPositions = positions(1, -1, 1);
const TWO_KEYS: KeyPositions = positions(1, 2, 1);
const PAIRS: KeyPositions = positions(1, -1, 2);
const SUBKEY: KeyPositions = positions(2, 2, 1);

/// Longest name of a command, in bytes.
const NAME_LEN_MAX: usize = 24;

/// How much of an unknown name an error repeats, in bytes.
const SHOWN_LEN_MAX: usize = 128;

/// Makes the rows. In braces, so that the columns stay columns.
macro_rules! rows {
    ($($name:literal $arity:literal $handler:expr, $keys:ident [$($flag:ident)*] $group:ident
        $since:literal $syntax:literal $summary:literal;)*) => {
        &[$(Command {
            name: $name,
            arity: $arity,
            handler: $handler,
            keys: $keys,
            flags: Flags::NONE$(.and(Flags::$flag))*,
            group: $group,
            since: $since,
            syntax: $syntax,
            summary: $summary,
        }),*]
    };
}

/// Every command. A container's subcommands follow it.
pub static COMMANDS: &[Command] = rows! {
// name, arity, handler, keys, flags, group, since
//     arguments
//     summary
"append" 3 Write(strings::append), KEY [FAST DENYOOM] STRING "2.0.0"
    "key value"
    "Appends to the value of a key, which comes into being if it is not there.";
"auth" -2 Connection(connection::auth), NO_KEY [FAST NO_AUTH] CONNECTION "1.0.0"
    "[username] password"
    "Authenticates the connection.";
"client" -2 Container(None), NO_KEY [] CONNECTION "2.4.0"
    ""
    "Commands about connections.";
"client|getname" 2 Connection(client::get_name), NO_KEY [] CONNECTION "2.6.9"
    ""
    "Gives the name of the connection.";
"client|help" 2 Connection(introspection::help), NO_KEY [] CONNECTION "5.0.0"
    ""
    "Lists the subcommands.";
"client|id" 2 Connection(client::id), NO_KEY [] CONNECTION "5.0.0"
    ""
    "Gives the id of the connection.";
"client|info" 2 Connection(client::info), NO_KEY [] CONNECTION "6.2.0"
    ""
    "Tells about this connection.";
"client|list" -2 Connection(client::list), NO_KEY [ADMIN DANGEROUS] CONNECTION "2.4.0"
    "[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]]"
    "Tells about the open connections.";
"client|no-evict" 3 Connection(client::on_or_off), NO_KEY [ADMIN DANGEROUS] CONNECTION "7.0.0"
    "<ON | OFF>"
    "Does nothing: no connection is closed to save memory.";
"client|no-touch" 3 Connection(client::on_or_off), NO_KEY [] CONNECTION "7.2.0"
    "<ON | OFF>"
    "Does nothing: reading never changes what is evicted.";
"client|reply" 3 Connection(client::reply), NO_KEY [NO_MULTI] CONNECTION "3.2.0"
    "<ON | OFF | SKIP>"
    "Turns replies on or off, or leaves out the next one.";
"client|setinfo" 4 Connection(client::set_info), NO_KEY [] CONNECTION "7.2.0"
    "<LIB-NAME libname | LIB-VER libver>"
    "Notes the name or the version of the client library.";
"client|setname" 3 Connection(client::set_name), NO_KEY [] CONNECTION "2.6.9"
    "connection-name"
    "Names the connection.";
"client|tracking" -3 Connection(client::tracking), NO_KEY [] CONNECTION "6.0.0"
    "<ON | OFF>"
    "Turns tracking of keys off. It cannot be turned on.";
"command" -1 Container(Some(introspection::all)), NO_KEY [] SERVER "2.8.13"
    ""
    "Describes every command.";
"command|count" 2 Connection(introspection::count), NO_KEY [] SERVER "2.8.13"
    ""
    "Gives the number of commands.";
"command|docs" -2 Connection(introspection::docs), NO_KEY [] SERVER "7.0.0"
    "[command-name [command-name ...]]"
    "Documents commands.";
"command|getkeys" -3 Connection(introspection::get_keys), NO_KEY [] SERVER "2.8.13"
    "command [arg [arg ...]]"
    "Gives the keys that a command with these arguments would use.";
"command|help" 2 Connection(introspection::help), NO_KEY [] SERVER "5.0.0"
    ""
    "Lists the subcommands.";
"command|info" -2 Connection(introspection::info), NO_KEY [] SERVER "2.8.13"
    "[command-name [command-name ...]]"
    "Describes commands.";
"command|list" -2 Connection(introspection::list), NO_KEY [] SERVER "7.0.0"
    "[FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]"
    "Gives the names of the commands.";
"config" -2 Container(None), NO_KEY [] SERVER "2.0.0"
    ""
    "Commands about settings.";
"config|get" -3 Connection(server::config_get), NO_KEY [ADMIN DANGEROUS] SERVER "2.0.0"
    "parameter [parameter ...]"
    "Gives the settings whose names match the patterns.";
"config|help" 2 Connection(introspection::help), NO_KEY [] SERVER "5.0.0"
    ""
    "Lists the subcommands.";
"copy" -3 Write(keys::copy), TWO_KEYS [DENYOOM SPANS] GENERIC "6.2.0"
    "source destination [DB destination-db] [REPLACE]"
    "Copies a record, with its expiry, to another key.";
"dbsize" 1 Read(keyspace::dbsize), NO_KEY [FAST] SERVER "1.0.0"
    ""
    "Gives the number of records in the database, with those that expired and were not removed yet.";
"decr" 2 Write(counters::decr), KEY [FAST DENYOOM] STRING "1.0.0"
    "key"
    "Takes one from a counter.";
"decrby" 3 Write(counters::decrby), KEY [FAST DENYOOM] STRING "1.0.0"
    "key decrement"
    "Takes a number from a counter.";
"del" -2 Write(keys::del), KEYS [] GENERIC "1.0.0"
    "key [key ...]"
    "Deletes records; gives how many there were.";
"discard" 1 Connection(transactions::discard), NO_KEY [FAST UNQUEUED] TRANSACTIONS "2.0.0"
    ""
    "Forgets the commands queued since MULTI.";
"echo" 2 Connection(connection::echo), NO_KEY [FAST] CONNECTION "1.0.0"
    "message"
    "Gives the message back.";
"exec" 1 Exec, NO_KEY [UNQUEUED] TRANSACTIONS "1.2.0"
    ""
    "Runs the commands queued since MULTI as one transaction. If one fails, nothing of it remains.";
"exists" -2 Read(keys::exists), KEYS [FAST] GENERIC "1.0.0"
    "key [key ...]"
    "Tells how many of the keys have a record.";
"expire" -3 Write(expiry::expire), KEY [FAST] GENERIC "1.0.0"
    "key seconds [NX | XX | GT | LT]"
    "Lets a record expire after a number of seconds.";
"expireat" -3 Write(expiry::expireat), KEY [FAST] GENERIC "1.2.0"
    "key unix-time-seconds [NX | XX | GT | LT]"
    "Lets a record expire at a time in seconds.";
"expiretime" 2 Read(expiry::expiretime), KEY [FAST] GENERIC "7.0.0"
    "key"
    "Gives the time at which a record expires, in seconds.";
"fcall" -3 Procedure(procedures::fcall), NO_KEY [MOVABLE_KEYS] SCRIPTING "7.0.0"
    "procedure numkeys [key [key ...]] [arg [arg ...]]"
    "Calls a procedure with the keys and the arguments.";
"fcall_ro" -3 Procedure(procedures::fcall_ro), NO_KEY [MOVABLE_KEYS] SCRIPTING "7.0.0"
    "procedure numkeys [key [key ...]] [arg [arg ...]]"
    "Calls a procedure that only reads.";
"flushall" -1 Write(keyspace::flushall), NO_KEY [DANGEROUS SPANS] SERVER "1.0.0"
    "[ASYNC | SYNC]"
    "Deletes every record of every database, the named ones included.";
"flushdb" -1 Write(keyspace::flushdb), NO_KEY [DANGEROUS] SERVER "1.0.0"
    "[ASYNC | SYNC]"
    "Deletes every record of the database.";
"function" -2 Container(None), NO_KEY [] SCRIPTING "7.0.0"
    ""
    "Commands about procedures.";
"function|help" 2 Connection(introspection::help), NO_KEY [] SCRIPTING "7.0.0"
    ""
    "Lists the subcommands.";
"function|list" -2 Connection(procedures::list), NO_KEY [] SCRIPTING "7.0.0"
    "[LIBRARYNAME library-name-pattern]"
    "Lists the installed procedures, a file of them as a library.";
"get" 2 Read(strings::get), KEY [FAST] STRING "1.0.0"
    "key"
    "Gives the value of a key.";
"getdel" 2 Write(strings::getdel), KEY [FAST] STRING "6.2.0"
    "key"
    "Gives the value of a key, and deletes it.";
"getex" -2 Write(set::getex), KEY [FAST] STRING "6.2.0"
    "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST]"
    "Gives the value of a key, and sets or takes away its expiry.";
"getrange" 4 Read(strings::getrange), KEY [] STRING "2.4.0"
    "key start end"
    "Gives a part of a value; negative places count from its end.";
"getset" 3 Write(strings::getset), KEY [FAST DENYOOM] STRING "1.0.0"
    "key value"
    "Sets a value, and gives the one before it.";
"hello" -1 Connection(connection::hello), NO_KEY [FAST NO_AUTH NO_MULTI] CONNECTION "6.0.0"
    "[protover [AUTH username password] [SETNAME clientname]]"
    "Chooses the version of the protocol, and tells about the server.";
"incr" 2 Write(counters::incr), KEY [FAST DENYOOM] STRING "1.0.0"
    "key"
    "Adds one to a counter.";
"incrby" 3 Write(counters::incrby), KEY [FAST DENYOOM] STRING "1.0.0"
    "key increment"
    "Adds a number to a counter.";
"incrbyfloat" 3 Write(counters::incrbyfloat), KEY [FAST DENYOOM] STRING "2.6.0"
    "key increment"
    "Adds a number with a fraction to a counter.";
"info" -1 Read(server::info), NO_KEY [DANGEROUS] SERVER "1.0.0"
    "[section [section ...]]"
    "Tells about the server.";
"keys" 2 Read(scan::keys), NO_KEY [DANGEROUS LONG] GENERIC "1.0.0"
    "pattern"
    "Gives the keys that match a pattern.";
"lolwut" -1 Connection(server::lolwut), NO_KEY [FAST] SERVER "5.0.0"
    "[VERSION version]"
    "Draws a station on the road.";
"memory" -2 Container(None), NO_KEY [] SERVER "4.0.0"
    ""
    "Commands about space.";
"memory|help" 2 Connection(introspection::help), NO_KEY [] SERVER "4.0.0"
    ""
    "Lists the subcommands.";
"memory|usage" -3 Read(keys::memory_usage), SUBKEY [] SERVER "4.0.0"
    "key [SAMPLES count]"
    "Gives the bytes of a key, its value and its header.";
"mget" -2 Read(strings::mget), KEYS [FAST] STRING "1.0.0"
    "key [key ...]"
    "Gives the values of several keys.";
"move" 3 Write(keys::move_key), KEY [FAST SPANS] GENERIC "1.0.0"
    "key db"
    "Moves a record to another database.";
"mset" -3 Write(strings::mset), PAIRS [DENYOOM] STRING "1.0.1"
    "key value [key value ...]"
    "Sets several values.";
"msetnx" -3 Write(strings::msetnx), PAIRS [DENYOOM] STRING "1.0.1"
    "key value [key value ...]"
    "Sets several values, unless one of the keys has one.";
"multi" 1 Connection(transactions::multi), NO_KEY [FAST UNQUEUED] TRANSACTIONS "1.2.0"
    ""
    "Begins to queue commands for EXEC.";
"object" -2 Container(None), NO_KEY [] GENERIC "2.2.3"
    ""
    "Commands about the form of a value.";
"object|encoding" 3 Read(keys::object_encoding), SUBKEY [] GENERIC "2.2.3"
    "key"
    "Gives the form in which Redis would keep the value.";
"object|help" 2 Connection(introspection::help), NO_KEY [] GENERIC "6.2.0"
    ""
    "Lists the subcommands.";
"persist" 2 Write(expiry::persist), KEY [FAST] GENERIC "2.2.0"
    "key"
    "Lets a record stay for ever.";
"pexpire" -3 Write(expiry::pexpire), KEY [FAST] GENERIC "2.6.0"
    "key milliseconds [NX | XX | GT | LT]"
    "Lets a record expire after a number of milliseconds.";
"pexpireat" -3 Write(expiry::pexpireat), KEY [FAST] GENERIC "2.6.0"
    "key unix-time-milliseconds [NX | XX | GT | LT]"
    "Lets a record expire at a time in milliseconds.";
"pexpiretime" 2 Read(expiry::pexpiretime), KEY [FAST] GENERIC "7.0.0"
    "key"
    "Gives the time at which a record expires, in milliseconds.";
"ping" -1 Connection(connection::ping), NO_KEY [FAST] CONNECTION "1.0.0"
    "[message]"
    "Answers PONG, or the message.";
"psetex" 4 Write(set::psetex), KEY [DENYOOM] STRING "2.6.0"
    "key milliseconds value"
    "Sets a value that expires after a number of milliseconds.";
"pttl" 2 Read(expiry::pttl), KEY [FAST] GENERIC "2.6.0"
    "key"
    "Gives the milliseconds until a record expires.";
"quit" -1 Connection(connection::quit), NO_KEY [FAST NO_AUTH UNQUEUED] CONNECTION "1.0.0"
    ""
    "Closes the connection.";
"randomkey" 1 Read(keyspace::randomkey), NO_KEY [] GENERIC "1.0.0"
    ""
    "Gives some key of the database; not each is equally likely.";
"rename" 3 Write(keys::rename), TWO_KEYS [] GENERIC "1.0.0"
    "key newkey"
    "Gives a record another key, in place of what is there.";
"renamenx" 3 Write(keys::renamenx), TWO_KEYS [FAST] GENERIC "1.0.0"
    "key newkey"
    "Gives a record another key, unless that one is taken.";
"reset" 1 Connection(connection::reset), NO_KEY [FAST NO_AUTH UNQUEUED] CONNECTION "6.2.0"
    ""
    "Makes the connection as it was when it was opened.";
"role" 1 Connection(server::role), NO_KEY [FAST ADMIN DANGEROUS] SERVER "2.8.12"
    ""
    "Tells the role in replication, which is master.";
"scan" -2 Read(scan::scan), NO_KEY [] GENERIC "2.8.0"
    "cursor [MATCH pattern] [COUNT count] [TYPE type]"
    "Gives some keys, in order, and the cursor to go on with.";
"select" 2 Connection(connection::select), NO_KEY [FAST] CONNECTION "1.0.0"
    "index"
    "Chooses a database by its number, or by its name.";
"set" -3 Write(set::set), KEY [DENYOOM] STRING "1.0.0"
    "key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]"
    "Sets a value.";
"setex" 4 Write(set::setex), KEY [DENYOOM] STRING "2.0.0"
    "key seconds value"
    "Sets a value that expires after a number of seconds.";
"setnx" 3 Write(strings::setnx), KEY [FAST DENYOOM] STRING "1.0.0"
    "key value"
    "Sets a value, unless there is one.";
"setrange" 4 Write(strings::setrange), KEY [DENYOOM] STRING "2.2.0"
    "key offset value"
    "Overwrites a part of a value, which is filled with zero bytes up to there.";
"strlen" 2 Read(strings::strlen), KEY [FAST] STRING "2.2.0"
    "key"
    "Gives the length of a value in bytes.";
"substr" 4 Read(strings::getrange), KEY [] STRING "1.0.0"
    "key start end"
    "The old name of GETRANGE.";
"time" 1 Connection(server::time), NO_KEY [FAST] SERVER "2.6.0"
    ""
    "Gives the server's time in seconds, and the microseconds beside them.";
"touch" -2 Read(keys::exists), KEYS [FAST] GENERIC "3.2.1"
    "key [key ...]"
    "Tells how many of the keys have a record.";
"ttl" 2 Read(expiry::ttl), KEY [FAST] GENERIC "1.0.0"
    "key"
    "Gives the seconds until a record expires.";
"type" 2 Read(keys::type_of), KEY [FAST] GENERIC "1.0.0"
    "key"
    "Gives the type of a value, which is string, or none without one.";
"unlink" -2 Write(keys::del), KEYS [FAST] GENERIC "4.0.0"
    "key [key ...]"
    "Deletes records, as DEL does.";
"unwatch" 1 Connection(transactions::unwatch), NO_KEY [FAST] TRANSACTIONS "2.2.0"
    ""
    "Forgets what WATCH has noted.";
"wait" 3 Connection(server::wait), NO_KEY [] GENERIC "3.0.0"
    "numreplicas timeout"
    "Gives 0: there are no replicas to wait for.";
"watch" -2 Read(transactions::watch), KEYS [FAST UNQUEUED] TRANSACTIONS "2.2.0"
    "key [key ...]"
    "Lets the next EXEC do nothing if one of the keys has changed by then.";
};

/// A power of two, several times the number of commands, so that most are found at the first look.
const SLOTS: usize = 1024;
const EMPTY: u8 = u8::MAX;

/// An open hash table over [`COMMANDS`], made at compile time.
static INDEX: [u8; SLOTS] = build_index();

const fn build_index() -> [u8; SLOTS] {
    assert!(COMMANDS.len() < EMPTY as usize);
    let mut index = [EMPTY; SLOTS];
    let mut i = 0;
    while i < COMMANDS.len() {
        let name = COMMANDS[i].name.as_bytes();
        assert!(name.len() <= NAME_LEN_MAX);
        let mut hash = HASH_START;
        let mut j = 0;
        while j < name.len() {
            hash = hash_step(hash, name[j]);
            j += 1;
        }
        let mut slot = slot_of(hash);
        while index[slot] != EMPTY {
            slot = (slot + 1) % SLOTS;
        }
        index[slot] = i as u8;
        i += 1;
    }
    index
}

const HASH_START: u32 = 0;

/// The finest difference between names is one letter; a multiplication by a large odd number
/// spreads it, and the highest bits are the best mixed.
const fn hash_step(hash: u32, byte: u8) -> u32 {
    (hash ^ byte as u32).wrapping_mul(0x9e37_79b1)
}

const fn slot_of(hash: u32) -> usize {
    (hash >> (32 - SLOTS.trailing_zeros())) as usize
}

/// The command of that name, in any mixture of cases. A subcommand's place is free of allocation,
/// too: `rest` is its own name, after the container's.
pub(crate) fn find(name: &[u8], rest: Option<&[u8]>) -> Option<&'static Command> {
    let mut lower = [0; NAME_LEN_MAX];
    let mut len = 0;
    let mut hash = HASH_START;
    let mut push = |byte: u8| {
        let byte = byte.to_ascii_lowercase();
        *lower.get_mut(len)? = byte;
        len += 1;
        hash = hash_step(hash, byte);
        Some(())
    };
    for &byte in name {
        push(byte)?;
    }
    if let Some(rest) = rest {
        push(b'|')?;
        for &byte in rest {
            push(byte)?;
        }
    }
    let wanted = &lower[..len];
    let mut slot = slot_of(hash);
    loop {
        let command = COMMANDS.get(usize::from(INDEX[slot]))?;
        if command.name.as_bytes() == wanted {
            return Some(command);
        }
        slot = (slot + 1) % SLOTS;
    }
}

/// The command, or subcommand, that a request names; `None` if there is none of its name.
///
/// # Errors
/// For a subcommand that its container does not have.
pub(crate) fn resolve(request: Request<'_>) -> Result<Option<&'static Command>, Failure> {
    let name = request.name();
    // `client|id` is what COMMAND calls it; it is not a name to be called by.
    let command = find(name, None).filter(|command| command.container().is_none());
    match (command, request.get(1)) {
        (Some(container), Some(sub)) if container.is_container() => {
            let found = find(name, Some(sub));
            found.map(Some).ok_or_else(|| {
                let sub = String::from_utf8_lossy(&sub[..sub.len().min(SHOWN_LEN_MAX)]);
                let container = container.name.to_uppercase();
                Failure::other(format!("unknown subcommand '{sub}'. Try {container} HELP."))
            })
        }
        _ => Ok(command),
    }
}

/// The place of a command in [`COMMANDS`].
pub(crate) fn number_of(command: &'static Command) -> u8 {
    let offset = std::ptr::from_ref(command).addr() - COMMANDS.as_ptr().addr();
    (offset / size_of::<Command>()) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_in_any_case() {
        for command in COMMANDS {
            let upper = command.name.to_uppercase();
            for name in [command.name, &upper] {
                let found = match name.split_once('|') {
                    None => find(name.as_bytes(), None),
                    Some((name, rest)) => find(name.as_bytes(), Some(rest.as_bytes())),
                };
                assert_eq!(found.map(|c| c.name), Some(command.name));
            }
        }
        for name in ["", "ge", "gett", "client|", "\0", &"x".repeat(1000)] {
            assert!(find(name.as_bytes(), None).is_none(), "{name}");
        }
        assert!(find(b"client", Some(b"")).is_none());
    }

    #[test]
    fn rows_are_sorted_and_consistent() {
        assert!(COMMANDS.is_sorted_by(|a, b| a.name < b.name));
        for command in COMMANDS {
            let name = command.name;
            assert_eq!(name, name.to_lowercase());
            assert!(command.summary.ends_with('.'), "{name}");
            assert!(command.arity != 0, "{name}");
            if let Some(container) = command.container() {
                assert!(find(container.as_bytes(), None).is_some(), "{name}");
            }
            if command.is_container() {
                assert!(find(name.as_bytes(), Some(b"help")).is_some(), "{name}");
            }
        }
    }

    #[test]
    fn few_names_collide() {
        let displaced = COMMANDS
            .iter()
            .filter(|c| {
                let hash = c.name.bytes().fold(HASH_START, hash_step);
                COMMANDS.get(usize::from(INDEX[slot_of(hash)])).map(|c| c.name) != Some(c.name)
            })
            .map(|c| c.name)
            .collect::<Vec<_>>();
        assert!(displaced.len() <= COMMANDS.len() / 10, "{displaced:?}");
        assert!(!displaced.contains(&"get") && !displaced.contains(&"set"), "{displaced:?}");
    }
}
