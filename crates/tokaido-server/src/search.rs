//! Searches for keys, for the protocols that can: visits of records.

use std::ops::{Bound, ControlFlow};

use tokaido_store::{DatabaseId, Direction, Entry, ReadError, ReadTransaction, prefix_end};

/// Records of an unordered database that are looked at in one step.
const PAGE_RECORDS: usize = 256;

/// Whether a visit continues after a record.
pub(crate) type Visited<E> = Result<ControlFlow<()>, E>;

/// Visits the records of a database from one key to another, in order. The inner result is that of
/// the visit.
pub(crate) fn visit_range<E>(
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
    from: Bound<&[u8]>,
    to: Bound<&[u8]>,
    visit: &mut dyn FnMut(Entry<'_>) -> Visited<E>,
) -> Result<Result<(), E>, ReadError> {
    let mut outcome = Ok(());
    tx.scan(database, from, to, Direction::Forward, &mut |entry| {
        visit(entry).unwrap_or_else(|error| {
            outcome = Err(error);
            ControlFlow::Break(())
        })
    })?;
    Ok(outcome)
}

/// Visits the records of a database whose keys begin with `prefix`, in key order if there is one.
pub(crate) fn visit<E: From<ReadError>>(
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
    prefix: &[u8],
    visit: &mut dyn FnMut(Entry<'_>) -> Visited<E>,
) -> Result<(), E> {
    let from = if prefix.is_empty() { Bound::Unbounded } else { Bound::Included(prefix) };
    let end = prefix_end(prefix);
    let to = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    match visit_range(tx, database, from, to, visit) {
        Err(ReadError::Unordered) => {}
        scanned => return scanned?,
    }
    let (mut outcome, mut cursor) = (Ok(ControlFlow::Continue(())), Some(0));
    while let (Some(at), Ok(ControlFlow::Continue(()))) = (cursor, &outcome) {
        cursor = tx.page(database, at, PAGE_RECORDS, &mut |entry| {
            let goes_on = matches!(outcome, Ok(ControlFlow::Continue(())));
            if goes_on && entry.key.starts_with(prefix) {
                outcome = visit(entry);
            }
        })?;
    }
    outcome.map(drop)
}
