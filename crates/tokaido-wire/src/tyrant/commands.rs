//! The table of the binary protocol's commands. The decoder reads requests by it; access rights and
//! the documentation page are derived from it, too.

use Effect::{Administer, Call, Read, Replicate, Write};
use Field::{Count, Int, Long, Name, Natural, Part};

/// What a command asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are named as their commands, which the table describes")]
pub enum Verb {
    Put,
    PutKeep,
    PutCat,
    PutShl,
    PutNr,
    Out,
    Get,
    Mget,
    Vsiz,
    IterInit,
    IterNext,
    FwmKeys,
    AddInt,
    AddDouble,
    Ext,
    Sync,
    Optimize,
    Vanish,
    Copy,
    Restore,
    SetMst,
    Rnum,
    Size,
    Stat,
    Misc,
    Repl,
}

/// What a command does, which decides who may use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It reads data, or inspects the server.
    Read,
    /// It writes data.
    Write,
    /// It calls one of the operator's procedures.
    Call,
    /// It manages the server.
    Administer,
    /// It asks for the update log.
    Replicate,
}

/// A number that precedes the bytes of a request. All are big-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The length of one of the parts that follow the numbers, in order: 32 bits.
    Part,
    /// As [`Self::Part`], but of a name, which is short.
    Name,
    /// A signed 32-bit number.
    Int,
    /// A 32-bit number that is not negative.
    Natural,
    /// A 64-bit number.
    Long,
    /// The number of items that follow the parts, each after its length: 32 bits.
    Count,
}

impl Field {
    pub(super) const fn len(self) -> usize {
        match self {
            Long => 8,
            Part | Name | Int | Natural | Count => 4,
        }
    }
}

/// A command: a row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// Its name.
    pub name: &'static str,
    /// The byte after the magic byte.
    pub id: u8,
    /// What it asks for.
    pub verb: Verb,
    /// What it does.
    pub effect: Effect,
    /// The numbers that its requests begin with.
    pub fields: &'static [Field],
    /// Its inputs.
    pub inputs: &'static str,
    /// What follows the code of a successful reply.
    pub outputs: &'static str,
    /// What it is for.
    pub summary: &'static str,
}

const fn row(
    (name, id, verb): (&'static str, u8, Verb),
    effect: Effect,
    fields: &'static [Field],
    (inputs, outputs, summary): (&'static str, &'static str, &'static str),
) -> Command {
    Command { name, id, verb, effect, fields, inputs, outputs, summary }
}

/// The commands, ordered by number.
pub static COMMANDS: &[Command] = &[
    row(
        ("put", 0x10, Verb::Put),
        Write,
        &[Part, Part],
        ("key, value", "", "stores a record, replacing any existing one"),
    ),
    row(
        ("putkeep", 0x11, Verb::PutKeep),
        Write,
        &[Part, Part],
        ("key, value", "", "stores a record if the key does not exist"),
    ),
    row(
        ("putcat", 0x12, Verb::PutCat),
        Write,
        &[Part, Part],
        ("key, value", "", "appends to a value"),
    ),
    row(
        ("putshl", 0x13, Verb::PutShl),
        Write,
        &[Part, Part, Natural],
        (
            "key, value, width",
            "",
            "appends to a value, keeping only its last *width* bytes; a new value is stored whole",
        ),
    ),
    row(
        ("putnr", 0x18, Verb::PutNr),
        Write,
        &[Part, Part],
        ("key, value", "no reply at all", "stores a record, as `put` does"),
    ),
    row(("out", 0x20, Verb::Out), Write, &[Part], ("key", "", "removes a record")),
    row(("get", 0x30, Verb::Get), Read, &[Part], ("key", "value", "returns a value")),
    row(
        ("mget", 0x31, Verb::Mget),
        Read,
        &[Count],
        ("keys", "keys with values", "returns the records that exist"),
    ),
    row(
        ("vsiz", 0x38, Verb::Vsiz),
        Read,
        &[Part],
        ("key", "length", "returns the length of a value in bytes"),
    ),
    row(
        ("iterinit", 0x50, Verb::IterInit),
        Read,
        &[],
        ("", "", "sets the iterator of the connection to the first key"),
    ),
    row(
        ("iternext", 0x51, Verb::IterNext),
        Read,
        &[],
        ("", "key", "returns the key at the iterator and moves the iterator to the next one"),
    ),
    row(
        ("fwmkeys", 0x58, Verb::FwmKeys),
        Read,
        &[Part, Int],
        (
            "prefix, max",
            "keys",
            "returns the keys that begin with *prefix*, at most *max*; all of them if *max* is negative",
        ),
    ),
    row(
        ("addint", 0x60, Verb::AddInt),
        Write,
        &[Part, Int],
        ("key, number", "sum", "adds to a 4-byte integer"),
    ),
    row(
        ("adddouble", 0x61, Verb::AddDouble),
        Write,
        &[Part, Long, Long],
        ("key, number", "sum", "adds to an 8-byte floating-point number"),
    ),
    row(
        ("ext", 0x68, Verb::Ext),
        Call,
        &[Name, Int, Part, Part],
        ("name, options, key, value", "result", "calls a procedure with a key and a value"),
    ),
    row(
        ("sync", 0x70, Verb::Sync),
        Administer,
        &[],
        ("", "", "waits until all earlier writes are as durable as the option `sync` makes them"),
    ),
    row(
        ("optimize", 0x71, Verb::Optimize),
        Administer,
        &[Part],
        (
            "parameters",
            "",
            "does nothing, because there is nothing to tune; refused with parameters",
        ),
    ),
    row(("vanish", 0x72, Verb::Vanish), Write, &[], ("", "", "removes all records")),
    row(
        ("copy", 0x73, Verb::Copy),
        Administer,
        &[Part],
        ("path", "", "copies the store to *path*, below the directory set by `backups`"),
    ),
    row(
        ("restore", 0x74, Verb::Restore),
        Administer,
        &[Part, Long, Int],
        (
            "path, time, options",
            "",
            "replays a Tokyo Tyrant update log from the given time on; *path* is below the directory set by `backups`",
        ),
    ),
    row(
        ("setmst", 0x78, Verb::SetMst),
        Administer,
        &[Part, Natural, Long, Int],
        ("host, port, time, options", "", "refused: there is no replication"),
    ),
    row(("rnum", 0x80, Verb::Rnum), Read, &[], ("", "number", "returns the number of records")),
    row(
        ("size", 0x81, Verb::Size),
        Read,
        &[],
        ("", "bytes", "returns the total size of keys and values"),
    ),
    row(
        ("stat", 0x88, Verb::Stat),
        Read,
        &[],
        ("", "text", "returns information about the server and its database"),
    ),
    row(
        ("misc", 0x90, Verb::Misc),
        Write,
        &[Name, Int, Count],
        ("name, options, list", "list", "calls the named function; see the tables below"),
    ),
    row(
        ("repl", 0xa0, Verb::Repl),
        Replicate,
        &[Long, Int],
        ("time, server", "", "refused, and the connection is closed: there is no replication"),
    ),
];

/// Looks up a command by number.
#[must_use]
pub fn of_id(id: u8) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.id == id)
}

/// Looks up a command by name, in any case.
#[must_use]
pub fn of_name(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tyrant::binary::{NUMBERS_MAX, PARTS_MAX};

    #[test]
    fn the_table_is_one_of_ids_and_verbs() {
        for (place, command) in COMMANDS.iter().enumerate() {
            assert_eq!(command.verb as usize, place, "{}", command.name);
            let count = |wanted: fn(&&Field) -> bool| command.fields.iter().filter(wanted).count();
            assert!(count(|field| matches!(field, Part | Name)) <= PARTS_MAX, "{}", command.name);
            assert!(count(|f| matches!(f, Int | Natural | Long)) <= NUMBERS_MAX);
            assert!(count(|field| matches!(field, Count)) <= 1);
            assert_eq!(of_id(command.id).map(|found| found.name), Some(command.name));
            assert_eq!(of_name(command.name).map(|found| found.id), Some(command.id));
        }
        assert!(of_id(0x14).is_none() && of_name("putt").is_none());
    }
}
