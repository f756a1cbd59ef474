//! The table commands of Tokyo Tyrant's `misc`, in their original form: lists of texts in, and out.

use tokaido_store::{DatabaseId, NewRecord, ReadTransaction, WriteError, WriteTransaction};

use crate::{
    Bounds, Columns, Condition, Found, Order, Query, QueryError, Row, SetOperation, TableError,
    Wanted, build::set_index_all, condition::lossy, entries, limits::QUERIES_MAX,
    meta_search::meta_search, search::search, sequence::next_unique_id,
};

/// The prefix of a hint, which is not a row.
const HINT_HEAD: &[u8] = b"\0\0[[HINT]]\n";

/// A command. Tokyo Cabinet's other commands for tables are the same as for any database, since a
/// row is a value like any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `put key name value ...`: puts a row.
    Put,
    /// `putkeep key name value ...`: puts a row if there is none.
    PutKeep,
    /// `putcat key name value ...`: adds the columns that a row does not have yet.
    PutCat,
    /// `get key`: the names and values of a row.
    Get,
    /// `setindex name kind ...`: creates or removes indexes.
    SetIndex,
    /// `search part...`: what a query finds.
    Search,
    /// `metasearch part...`: what several queries find. Both names do the same.
    MetaSearch,
    /// `genuid`: a new number.
    GenerateUid,
}

/// What a command answers: a list, or `None` for "no", such as for a missing row.
pub type Reply = Result<Option<Vec<Vec<u8>>>, TableError>;

const COMMANDS: [(&str, Command); 8] = [
    ("put", Command::Put),
    ("putkeep", Command::PutKeep),
    ("putcat", Command::PutCat),
    ("get", Command::Get),
    ("setindex", Command::SetIndex),
    ("search", Command::Search),
    ("metasearch", Command::MetaSearch),
    ("genuid", Command::GenerateUid),
];

impl Command {
    /// The command of that name.
    #[must_use]
    pub fn from_name(name: &[u8]) -> Option<Self> {
        COMMANDS.iter().find(|(other, _)| other.as_bytes() == name).map(|(_, command)| *command)
    }

    /// Whether it has to run in a write transaction.
    #[must_use]
    pub fn writes(self, arguments: &[&[u8]]) -> bool {
        let removes = |argument: &&[u8]| matches!(word(argument), b"out" | b"remove");
        match self {
            Self::Get => false,
            Self::Search | Self::MetaSearch => arguments.iter().any(removes),
            _ => true,
        }
    }

    /// Runs a command that only reads.
    ///
    /// # Errors
    /// See [`TableError`]; also for a command that [`writes`](Self::writes).
    pub fn read(
        self,
        tx: &mut dyn ReadTransaction,
        database: DatabaseId,
        arguments: &[&[u8]],
        bounds: Bounds,
    ) -> Reply {
        match self {
            Self::Get => get(tx, database, arguments),
            Self::Search | Self::MetaSearch => {
                let request = Request::parse(arguments)?;
                let found = request.find(tx, database, bounds)?;
                request.reply(tx, database, found, bounds).map(Some)
            }
            _ => Err(WriteError::ReadOnly.into()),
        }
    }

    /// Runs a command.
    ///
    /// # Errors
    /// See [`TableError`].
    pub fn run(
        self,
        tx: &mut dyn WriteTransaction,
        database: DatabaseId,
        arguments: &[&[u8]],
        bounds: Bounds,
    ) -> Reply {
        match self {
            Self::Put | Self::PutKeep | Self::PutCat => self.put(tx, database, arguments),
            Self::SetIndex => {
                let all_fit = set_index_all(tx, database, arguments)?;
                Ok(all_fit.then(Vec::new))
            }
            Self::GenerateUid => {
                let id = next_unique_id(tx, database)?;
                Ok(Some(vec![id.to_string().into_bytes()]))
            }
            Self::Search | Self::MetaSearch if self.writes(arguments) => {
                let request = Request::parse(arguments)?;
                request.remove(tx, database, bounds).map(Some)
            }
            Self::Get | Self::Search | Self::MetaSearch => {
                self.read(tx, database, arguments, bounds)
            }
        }
    }

    fn put(
        self,
        tx: &mut dyn WriteTransaction,
        database: DatabaseId,
        arguments: &[&[u8]],
    ) -> Reply {
        let (key, columns) = key_of("put", arguments)?;
        let new = Columns::from_arguments(columns)?;
        let done = match self {
            Self::PutCat => put_cat(tx, database, key, &new).map(|()| true)?,
            Self::PutKeep if tx.get(database, key)?.is_some() => false,
            _ => {
                tx.put(database, key, NewRecord::of(&new.to_value()))?;
                true
            }
        };
        Ok(done.then(Vec::new))
    }
}

/// Adds the columns that the row under `key` does not have; puts it if there is none. Other
/// attributes of its record, such as an expiry, stay.
///
/// # Errors
/// As [`WriteTransaction::put`]; [`WriteError::WrongKind`] if there is something other than a row.
pub fn put_cat(
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    key: &[u8],
    columns: &Columns,
) -> Result<(), WriteError> {
    let Some(record) = tx.get(database, key)? else {
        return tx.put(database, key, NewRecord::of(&columns.to_value()));
    };
    let value = entries::row_value(&record).ok_or(WriteError::WrongKind)?;
    let mut row = Columns::of(Row::new(value));
    row.add_missing(columns);
    let value = row.to_value();
    let record = record.with_value(&value);
    tx.put(database, key, record)
}

/// The column of the number that is added to.
const NUMBER_COLUMN: &[u8] = b"_num";

/// Adds to the number in the column `_num` of the row under `key`, which is created if there is
/// none. Returns the sum; `None`, without a change, if that is not finite.
///
/// # Errors
/// As [`put_cat`].
pub fn add_number(
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    key: &[u8],
    by: f64,
) -> Result<Option<f64>, WriteError> {
    let found = tx.get(database, key)?;
    let value =
        found.as_ref().map(|record| entries::row_value(record).ok_or(WriteError::WrongKind));
    let mut row = Columns::of(Row::new(value.transpose()?.unwrap_or_default()));
    let old = row.get(NUMBER_COLUMN).map_or(0.0, leading_number);
    let sum = old + by;
    if !sum.is_finite() {
        return Ok(None);
    }
    let digits = format!("{sum:.6}");
    row.set(NUMBER_COLUMN, digits.trim_end_matches('0').trim_end_matches('.').as_bytes());
    let value = row.to_value();
    let new = match found {
        Some(record) => record.with_value(&value),
        None => NewRecord::of(&value),
    };
    tx.put(database, key, new)?;
    Ok(Some(sum))
}

/// The decimal number that a text begins with; 0 if it begins with none.
fn leading_number(text: &[u8]) -> f64 {
    let text = text.trim_ascii_start();
    let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.".contains(byte);
    let len = text.iter().take_while(|byte| is_part(byte)).count();
    std::str::from_utf8(&text[..len]).ok().and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

fn get(tx: &mut dyn ReadTransaction, database: DatabaseId, arguments: &[&[u8]]) -> Reply {
    let (key, _) = key_of("get", arguments)?;
    let found = tx.get(database, key)?;
    let value = found.as_ref().and_then(entries::row_value);
    Ok(value.map(|value| Columns::of(Row::new(value)).into_texts().collect()))
}

fn key_of<'a>(
    command: &'static str,
    arguments: &'a [&'a [u8]],
) -> Result<(&'a [u8], &'a [&'a [u8]]), QueryError> {
    let (key, rest) =
        arguments.split_first().ok_or(QueryError::Missing { command, what: "a key" })?;
    Ok((*key, rest))
}

/// The first part of a search argument.
fn word<'a>(argument: &&'a [u8]) -> &'a [u8] {
    argument.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// A search, parsed from its arguments.
struct Request {
    queries: Vec<Query>,
    operation: SetOperation,
    /// If rows are wanted, not keys: these columns of them, or all.
    columns: Option<Vec<Vec<u8>>>,
    wants_count: bool,
    wants_hint: bool,
}

impl Request {
    fn parse(arguments: &[&[u8]]) -> Result<Self, QueryError> {
        let mut request = Self {
            queries: vec![Query::default()],
            operation: SetOperation::default(),
            columns: None,
            wants_count: false,
            wants_hint: false,
        };
        for argument in arguments {
            let parts: Vec<&[u8]> = argument.split(|byte| *byte == 0).collect();
            request.take(&parts)?;
        }
        Ok(request)
    }

    /// Takes one argument, whose parts are separated by NUL. Unknown ones are ignored, as in Tokyo
    /// Cabinet.
    fn take(&mut self, parts: &[&[u8]]) -> Result<(), QueryError> {
        let short = |form| Err(QueryError::Parts { argument: lossy(parts[0]), form });
        match (parts[0], parts) {
            (b"addcond" | b"cond", [_, column, operator, operand, ..]) => {
                let condition = Condition::new(column, operator, operand)?;
                self.query().add(condition)?;
            }
            (b"addcond" | b"cond", _) => return short("addcond, column, operator, operand"),
            (b"setorder" | b"order", [_, column, by, ..]) => {
                self.query().order = Some(Order::new(column, by)?);
            }
            (b"setorder" | b"order", _) => return short("setorder, column, order"),
            (b"setlimit" | b"limit" | b"setmax" | b"max", [_, max, rest @ ..]) => {
                let max = usize::try_from(leading_integer(max)).unwrap_or(usize::MAX);
                let skip = rest.first().map_or(0, |skip| leading_integer(skip));
                let query = self.query();
                (query.max, query.skip) = (max, usize::try_from(skip).unwrap_or(0));
            }
            (b"setlimit" | b"limit" | b"setmax" | b"max", _) => {
                return short("setlimit, maximum, rows to leave out");
            }
            (b"get" | b"columns", [_, names @ ..]) => {
                let columns = self.columns.get_or_insert_default();
                columns.extend(names.iter().map(|name| name.to_vec()));
            }
            (b"next", _) if self.queries.len() == QUERIES_MAX => {
                return Err(QueryError::TooManyQueries);
            }
            (b"next", _) => self.queries.push(Query::default()),
            (b"mstype", [_, name, ..]) => self.operation = SetOperation::from_name(name)?,
            (b"count", _) => self.wants_count = true,
            (b"hint", _) => self.wants_hint = true,
            _ => {}
        }
        Ok(())
    }

    /// The query that arguments currently apply to.
    fn query(&mut self) -> &mut Query {
        let last = self.queries.len() - 1;
        &mut self.queries[last]
    }

    fn find(
        &self,
        tx: &mut dyn ReadTransaction,
        database: DatabaseId,
        bounds: Bounds,
    ) -> Result<Found, TableError> {
        match &self.queries[..] {
            [query] if self.wants_count => search(tx, database, query, Wanted::Count, bounds),
            queries => meta_search(tx, database, queries, self.operation, bounds),
        }
    }

    /// Removes the rows that the query finds, all at once; of several queries, the last counts.
    fn remove(
        &self,
        tx: &mut dyn WriteTransaction,
        database: DatabaseId,
        bounds: Bounds,
    ) -> Result<Vec<Vec<u8>>, TableError> {
        let Some(query) = self.queries.last() else { return Ok(Vec::new()) };
        let mut found = search(tx, database, query, Wanted::Keys, bounds)?;
        let keys = std::mem::take(&mut found.keys);
        let mut rows = Vec::new();
        if let Some(columns) = &self.columns {
            rows = read_rows(tx, database, &keys, columns, bounds)?;
        }
        for key in &keys {
            bounds.check_stop()?;
            tx.delete(database, key)?;
        }
        found.hint.push_str(&format!("rows removed: {}\n", keys.len()));
        Ok(self.finish(rows, &found))
    }

    fn reply(
        &self,
        tx: &mut dyn ReadTransaction,
        database: DatabaseId,
        mut found: Found,
        bounds: Bounds,
    ) -> Result<Vec<Vec<u8>>, TableError> {
        let keys = std::mem::take(&mut found.keys);
        let rows = match &self.columns {
            Some(columns) if !self.wants_count => read_rows(tx, database, &keys, columns, bounds)?,
            _ => keys,
        };
        Ok(self.finish(rows, &found))
    }

    fn finish(&self, mut rows: Vec<Vec<u8>>, found: &Found) -> Vec<Vec<u8>> {
        if self.wants_count {
            rows = vec![found.count.to_string().into_bytes()];
        }
        if self.wants_hint {
            rows.push([HINT_HEAD, found.hint.as_bytes()].concat());
        }
        rows
    }
}

/// The rows under `keys`, each as one text: first the key, as the column without a name, then the
/// columns; or only the wanted ones that exist.
fn read_rows(
    tx: &mut (impl ReadTransaction + ?Sized),
    database: DatabaseId,
    keys: &[Vec<u8>],
    wanted: &[Vec<u8>],
    bounds: Bounds,
) -> Result<Vec<Vec<u8>>, TableError> {
    let (mut rows, mut bytes) = (Vec::new(), 0);
    for key in keys {
        bounds.check_stop()?;
        let found = tx.get(database, key)?;
        let Some(value) = found.as_ref().and_then(entries::row_value) else { continue };
        let row = Row::new(value);
        let mut columns = Columns::default();
        if wanted.is_empty() {
            columns.set(b"", key);
            row.columns().for_each(|(name, value)| columns.set(name, value));
            columns.set(b"", key);
        }
        for name in wanted {
            let value = if name.is_empty() { Some(&key[..]) } else { row.column(name) };
            value.into_iter().for_each(|value| columns.set(name, value));
        }
        let text = columns.to_value();
        bytes += text.len();
        bounds.check_bytes(bytes)?;
        rows.push(text);
    }
    Ok(rows)
}

/// The whole number that a text begins with, as C's `atoi` reads it.
fn leading_integer(text: &[u8]) -> i64 {
    let start = text.iter().position(|byte| !(1..=b' ').contains(byte)).unwrap_or(text.len());
    let (sign, digits) = match &text[start..] {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        rest => (1, rest),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let number = digits.fold(0_i64, |number, digit| {
        number.saturating_mul(10).saturating_add(i64::from(digit - b'0'))
    });
    sign * number
}
