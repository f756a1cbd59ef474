//! What differs where the database is a table: functions of `misc` that take and return columns,
//! those for indexes and queries, and the commands that would append bytes to a value.

use tokaido_store::{DatabaseId, ReadTransaction, WriteTransaction};
use tokaido_tables::{Bounds, Columns, Command, Reply, Row, TableError};
use tokaido_wire::tyrant::Verb;

use super::{
    misc::{Arguments, Misc, Results, Work, row},
    refusal::{ErrorCode, Refusal},
};

type Done = Result<(), Refusal>;

/// A command that writes, as the work of a function.
macro_rules! writing {
    ($command:expr) => {
        Work::Write(|arguments, tx, id, results| write($command, arguments, tx, id, results))
    };
}

/// The functions of tables, which replace those with the same name. One with `out` among its
/// arguments writes, and has a row of its own.
pub(super) static FUNCTIONS: &[Misc] = &[
    row("put", ("key, column, value, …", ""), "stores a row", Verb::Put, writing!(Command::Put)),
    row(
        "putkeep",
        ("key, column, value, …", ""),
        "stores a row if the key does not exist",
        Verb::PutKeep,
        writing!(Command::PutKeep),
    ),
    row(
        "putcat",
        ("key, column, value, …", ""),
        "adds the columns that a row does not have yet",
        Verb::PutCat,
        writing!(Command::PutCat),
    ),
    row(
        "get",
        ("key", "column, value, …"),
        "returns a row",
        Verb::Get,
        Work::Read(|arguments, tx, id, results| read(Command::Get, arguments, tx, id, results)),
    ),
    row(
        "setindex",
        ("column, kind, …", ""),
        "creates or removes indexes",
        Verb::Optimize,
        writing!(Command::SetIndex),
    ),
    row(
        "search",
        ("part, …", "key, … or row, …"),
        "returns the results of a query",
        Verb::FwmKeys,
        Work::Search(|arguments, tx, id, results| {
            read(Command::Search, arguments, tx, id, results)
        }),
    ),
    row(
        "metasearch",
        ("part, …", "key, … or row, …"),
        "returns the combined results of several queries",
        Verb::FwmKeys,
        Work::Search(|arguments, tx, id, results| {
            read(Command::MetaSearch, arguments, tx, id, results)
        }),
    ),
    row(
        "genuid",
        ("", "number"),
        "returns a number that it has not returned before",
        Verb::AddInt,
        writing!(Command::GenerateUid),
    ),
];

/// The searches that remove what they find.
static REMOVALS: [Misc; 2] = [
    row("search", ("", ""), "", Verb::Out, writing!(Command::Search)),
    row("metasearch", ("", ""), "", Verb::Out, writing!(Command::MetaSearch)),
];

/// The function of that name for these arguments, if tables have one of their own.
pub(super) fn find(name: &[u8], arguments: &Arguments<'_>) -> Option<&'static Misc> {
    let command = Command::from_name(name)?;
    let removes =
        matches!(command, Command::Search | Command::MetaSearch) && command.writes(arguments.all());
    let functions = if removes { &REMOVALS[..] } else { FUNCTIONS };
    functions.iter().find(|function| function.name.as_bytes() == name)
}

/// Whether a function is only for tables.
pub(super) fn is_for_tables(name: &[u8]) -> bool {
    Command::from_name(name).is_some()
}

fn read(
    command: Command,
    arguments: &Arguments<'_>,
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
    results: &mut Results,
) -> Done {
    give(command, command.read(tx, database, arguments.all(), bounds(results)), results)
}

fn write(
    command: Command,
    arguments: &Arguments<'_>,
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    results: &mut Results,
) -> Done {
    give(command, command.run(tx, database, arguments.all(), bounds(results)), results)
}

/// No search continues beyond the time limit of the calling script.
fn bounds(results: &Results) -> Bounds {
    Bounds { bytes_max: results.bytes_max(), is_stopping: tokaido_script::is_stopping }
}

fn give(command: Command, reply: Reply, results: &mut Results) -> Done {
    let items = reply?.ok_or_else(|| match command {
        Command::PutKeep => Refusal::new(ErrorCode::Exists, "a row is there"),
        Command::SetIndex => Refusal::invalid("an index is there, or there is none to be set"),
        _ => Refusal::missing(),
    })?;
    items.iter().try_for_each(|item| results.item(item))
}

/// Adds the columns of `value`, a row, that the row under `key` does not have.
pub(crate) fn putcat(
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    key: &[u8],
    value: &[u8],
) -> Done {
    Ok(tokaido_tables::put_cat(tx, database, key, &Columns::of(Row::new(value)))?)
}

/// Adds to the number in a row's column `_num`.
pub(super) fn add(
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    key: &[u8],
    by: f64,
) -> Result<f64, Refusal> {
    let sum = tokaido_tables::add_number(tx, database, key, by)?;
    sum.ok_or_else(|| Refusal::invalid("the sum is not a number"))
}

impl From<TableError> for Refusal {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Write(error) => error.into(),
            error => Self::invalid(error.to_string()),
        }
    }
}
