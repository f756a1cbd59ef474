//! The functions of `misc`: one table, which finds them by name, says what they may do, and gives
//! the page of documentation.

use tokaido_store::{DatabaseId, KeyIterator, ReadTransaction, WriteTransaction};
use tokaido_wire::{lenient::integer, tyrant::Verb};

use super::{
    lists,
    refusal::{ErrorCode, Refusal},
    search, tables,
};

/// A function that reads.
pub(crate) type Read =
    fn(&Arguments<'_>, &mut dyn ReadTransaction, DatabaseId, &mut Results) -> Result<(), Refusal>;

/// A function that writes.
pub(crate) type Write =
    fn(&Arguments<'_>, &mut dyn WriteTransaction, DatabaseId, &mut Results) -> Result<(), Refusal>;

/// A function that moves the iterator.
pub(crate) type Iterate = fn(
    &Arguments<'_>,
    &mut KeyIterator,
    &mut dyn ReadTransaction,
    DatabaseId,
    &mut Results,
) -> Result<(), Refusal>;

/// What a function does, and where.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// It reads a record or a few.
    Read(Read),
    /// It may read all records.
    Search(Read),
    /// It writes.
    Write(Write),
    /// It moves the iterator of the connection.
    Iterate(Iterate),
    /// It waits until all is durable.
    Sync,
    /// It reports the last error on the connection.
    Error,
    /// It is refused, for this reason.
    Refuse(&'static str),
}

/// A function: a row of the table.
#[derive(Clone, Copy)]
pub(crate) struct Misc {
    pub(crate) name: &'static str,
    /// Its arguments; those in brackets are optional.
    pub(super) arguments: &'static str,
    /// Its results.
    pub(super) results: &'static str,
    pub(super) summary: &'static str,
    /// The command that it is like: a mask of that command applies to it, too.
    pub(crate) like: Verb,
    pub(crate) work: Work,
}

pub(super) const fn row(
    name: &'static str,
    (arguments, results): (&'static str, &'static str),
    summary: &'static str,
    like: Verb,
    work: Work,
) -> Misc {
    Misc { name, arguments, results, summary, like, work }
}

const DUPLICATES: Work =
    Work::Refuse("a key has one record; use putlist, or a list made by Redis's commands");

/// The functions of ordered databases and hashes.
pub(super) static FUNCTIONS: &[Misc] = &[
    row("put", ("key, value", ""), "stores a record", Verb::Put, Work::Write(lists::put)),
    row(
        "putkeep",
        ("key, value", ""),
        "stores a record if the key does not exist",
        Verb::PutKeep,
        Work::Write(lists::putkeep),
    ),
    row(
        "putcat",
        ("key, value", ""),
        "appends to a value",
        Verb::PutCat,
        Work::Write(lists::putcat),
    ),
    row("putdup", ("key, value", ""), "refused: a key has only one record", Verb::Put, DUPLICATES),
    row("putdupback", ("key, value", ""), "refused, like `putdup`", Verb::Put, DUPLICATES),
    row("out", ("key", ""), "removes a record", Verb::Out, Work::Write(lists::out)),
    row("get", ("key", "value"), "returns a value", Verb::Get, Work::Read(lists::get)),
    row("putlist", ("key, value, …", ""), "stores records", Verb::Put, Work::Write(lists::putlist)),
    row("outlist", ("key, …", ""), "removes records", Verb::Out, Work::Write(lists::outlist)),
    row(
        "getlist",
        ("key, …", "key, value, …"),
        "returns the records that exist",
        Verb::Mget,
        Work::Read(lists::getlist),
    ),
    row(
        "getpart",
        ("key, [offset], [length]", "bytes"),
        "returns a part of a value",
        Verb::Get,
        Work::Read(lists::getpart),
    ),
    row(
        "iterinit",
        ("[key]", ""),
        "sets the iterator to the first record, or to the first one at or after a key",
        Verb::IterInit,
        Work::Iterate(lists::iterinit),
    ),
    row(
        "iternext",
        ("", "key, value"),
        "returns the record at the iterator and moves the iterator to the next one",
        Verb::IterNext,
        Work::Iterate(lists::iternext),
    ),
    row(
        "range",
        ("[key], [max], [end]", "key, value, …"),
        "returns the records from one key up to, but not including, another; only if the keys have an order",
        Verb::FwmKeys,
        Work::Search(search::range),
    ),
    row(
        "regex",
        ("expression, [max]", "key, value, …"),
        "returns the records whose keys match; after a leading `*`, letters match in any case",
        Verb::FwmKeys,
        Work::Search(search::regex),
    ),
    row(
        "sync",
        ("", ""),
        "waits until all earlier writes are as durable as the option `sync` makes them",
        Verb::Sync,
        Work::Sync,
    ),
    row(
        "optimize",
        ("[parameters]", ""),
        "does nothing; refused with parameters",
        Verb::Optimize,
        Work::Read(lists::optimize),
    ),
    row("vanish", ("", ""), "removes all records", Verb::Vanish, Work::Write(lists::vanish)),
    row(
        "defrag",
        ("[steps]", ""),
        "does nothing, because no database becomes fragmented",
        Verb::Optimize,
        Work::Read(|_, _, _, _| Ok(())),
    ),
    row(
        "cacheclear",
        ("", ""),
        "does nothing, because no database has a cache of its own",
        Verb::Optimize,
        Work::Read(|_, _, _, _| Ok(())),
    ),
    row(
        "error",
        ("", "number: text"),
        "returns the last error on this connection",
        Verb::Stat,
        Work::Error,
    ),
];

/// The function of that name, for a table or for another database. Which one it is may also depend
/// on the arguments.
pub(crate) fn find(
    name: &[u8],
    arguments: &Arguments<'_>,
    is_table: bool,
) -> Result<&'static Misc, Refusal> {
    let of_tables = if is_table { tables::find(name, arguments) } else { None };
    let found = || FUNCTIONS.iter().find(|function| function.name.as_bytes() == name);
    of_tables.or_else(found).ok_or_else(|| match tables::is_for_tables(name) {
        true => Refusal::invalid("the database is no table; declare it as one in [databases]"),
        false => {
            let name = String::from_utf8_lossy(name).into_owned();
            Refusal::invalid(format!("misc has no function {name:?} for this database"))
        }
    })
}

/// The arguments of a function.
pub(crate) struct Arguments<'a>(Vec<&'a [u8]>);

impl<'a> Arguments<'a> {
    pub(crate) fn new(arguments: impl std::iter::Iterator<Item = &'a [u8]>) -> Self {
        Self(arguments.collect())
    }

    pub(super) fn all(&self) -> &[&'a [u8]] {
        &self.0
    }

    pub(super) fn get(&self, place: usize) -> Option<&'a [u8]> {
        self.0.get(place).copied()
    }

    /// An argument that must be given.
    pub(super) fn need(&self, place: usize) -> Result<&'a [u8], Refusal> {
        self.get(place)
            .ok_or_else(|| Refusal::invalid(format!("argument {} is missing", place + 1)))
    }

    /// The number that an argument begins with.
    pub(super) fn integer(&self, place: usize) -> Option<i64> {
        self.get(place).map(integer)
    }
}

/// The results of a function.
pub(crate) struct Results {
    pub(crate) items: Vec<Vec<u8>>,
    bytes: usize,
    bytes_max: usize,
}

impl Results {
    /// No results yet, with room for at most this many bytes of items.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { items: Vec::new(), bytes: 0, bytes_max }
    }

    /// The maximum number of bytes.
    pub(super) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    pub(super) fn item(&mut self, item: &[u8]) -> Result<(), Refusal> {
        self.bytes += item.len();
        check_reply(self.bytes, self.bytes_max)?;
        self.items.push(item.to_vec());
        Ok(())
    }

    /// Adds an error, in the form that `error` reports.
    pub(crate) fn error(&mut self, error: ErrorCode) -> Result<(), Refusal> {
        self.item(error.text().as_bytes())
    }

    pub(super) fn pair(&mut self, key: &[u8], value: &[u8]) -> Result<(), Refusal> {
        self.item(key)?;
        self.item(value)
    }
}

/// Refuses a reply that is larger than the limit.
pub(super) fn check_reply(bytes: usize, bytes_max: usize) -> Result<(), Refusal> {
    if bytes <= bytes_max {
        return Ok(());
    }
    let reason = format!(
        "the reply would have more than {bytes_max} bytes; ask for less, or raise limits.tyrant_reply_bytes_max"
    );
    Err(Refusal::invalid(reason))
}
