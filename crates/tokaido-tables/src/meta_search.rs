//! Several queries, and the combination of their results.

use std::collections::HashSet;

use tokaido_store::{DatabaseId, ReadTransaction};

use crate::{
    Bounds, Found, Query, QueryError, Row, TableError, Wanted,
    condition::{integer_of, lossy},
    entries,
    search::{self, Ranked},
};

/// How the results of several queries are combined. The numbers are those that clients use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SetOperation {
    /// Rows that any of them finds.
    #[default]
    Union = 0,
    /// Rows that all of them find.
    Intersection = 1,
    /// Rows that only the first one finds.
    Difference = 2,
}

const SET_OPERATIONS: [(SetOperation, &[&str]); 3] = [
    (SetOperation::Union, &["UNION", "OR"]),
    (SetOperation::Intersection, &["ISECT", "INTERSECTION", "AND"]),
    (SetOperation::Difference, &["DIFF", "DIFFERENCE", "ANDNOT", "NOT"]),
];

impl SetOperation {
    /// The operation of that name or number.
    ///
    /// # Errors
    /// [`QueryError::SetOperation`].
    pub fn from_name(name: &[u8]) -> Result<Self, QueryError> {
        let number = integer_of(name);
        let found = SET_OPERATIONS.iter().find(|(operation, names)| match number {
            Some(number) => *operation as i64 == number,
            None => names.iter().any(|other| name.eq_ignore_ascii_case(other.as_bytes())),
        });
        found.map(|found| found.0).ok_or_else(|| QueryError::SetOperation { name: lossy(name) })
    }
}

/// Searches a table with several queries. The order and the limit of the first query apply to the
/// combined result; in a union, each query's own limit applies, too. Without an order, or in an
/// intersection or a difference, rows come in the order of the last query that determined them.
///
/// # Errors
/// [`TableError::TooLarge`] and [`TableError::Stopped`]; otherwise only if the engine fails.
pub fn meta_search(
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
    queries: &[Query],
    operation: SetOperation,
    bounds: Bounds,
) -> Result<Found, TableError> {
    let [first, others @ ..] = queries else { return Ok(Found::default()) };
    if others.is_empty() {
        return search::search(tx, database, first, Wanted::Keys, bounds);
    }
    let mut hint = String::new();
    let mut keys: Vec<Vec<u8>> = Vec::new();
    let mut left = bounds;
    for (place, query) in queries.iter().enumerate() {
        if place > 0 && keys.is_empty() && operation != SetOperation::Union {
            hint.push_str(&format!("[{place}] left out\n"));
            continue;
        }
        let query = unlimited(query, operation);
        let found = search::search(tx, database, &query, Wanted::Keys, left)?;
        found.hint.lines().for_each(|line| hint.push_str(&format!("[{place}] {line}\n")));
        keys = match (place, operation) {
            (0, _) => found.keys,
            (_, SetOperation::Union) => unite(keys, found.keys),
            (_, SetOperation::Intersection) => {
                let before: HashSet<_> = keys.into_iter().collect();
                found.keys.into_iter().filter(|key| before.contains(key)).collect()
            }
            (_, SetOperation::Difference) => {
                let taken: HashSet<_> = found.keys.into_iter().collect();
                keys.into_iter().filter(|key| !taken.contains(key)).collect()
            }
        };
        left.bytes_max = bounds.bytes_max.saturating_sub(keys.iter().map(Vec::len).sum());
    }
    if operation == SetOperation::Union {
        keys = sort(tx, database, first, keys, left)?;
    }
    let keys: Vec<_> = keys.into_iter().skip(first.skip).take(first.max).collect();
    Ok(Found { count: keys.len(), keys, hint })
}

/// The query without what is done after combining: skipping, and the limit, which a union keeps.
fn unlimited(query: &Query, operation: SetOperation) -> Query {
    let max = if operation == SetOperation::Union { query.wanted() } else { usize::MAX };
    Query { max, skip: 0, ..query.clone() }
}

/// The union, each key once.
fn unite(mut keys: Vec<Vec<u8>>, more: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let new: Vec<_> = {
        let there: HashSet<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        more.into_iter().filter(|key| !there.contains(&key[..])).collect()
    };
    keys.extend(new);
    keys
}

fn sort(
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
    query: &Query,
    keys: Vec<Vec<u8>>,
    bounds: Bounds,
) -> Result<Vec<Vec<u8>>, TableError> {
    let Some(order) = &query.order else { return Ok(keys) };
    let (mut ranked, mut bytes) = (Vec::with_capacity(keys.len()), 0);
    for key in keys {
        bounds.check_stop()?;
        let found = tx.get(database, &key)?;
        let Some(value) = found.as_ref().and_then(entries::row_value) else { continue };
        let row = Ranked::new(order, key, Row::new(value));
        bytes += row.bytes();
        bounds.check_bytes(bytes)?;
        ranked.push(row);
    }
    ranked.sort_unstable();
    Ok(ranked.into_iter().map(|row| row.key).collect())
}
