//! Looking for keys, for the protocols that can: a visit of records.

use std::ops::{Bound, ControlFlow};

use tokaido_store::{DatabaseId, Direction, Entry, ReadError, ReadTransaction};

/// Records of an unordered database that are looked at in one step.
const PAGE_RECORDS: usize = 256;

/// Whether a visit goes on behind a record.
pub(crate) type Visited<E> = Result<ControlFlow<()>, E>;

/// Visits the records of a database from here on, in the order of their keys. The inner result is that of
/// the visit.
pub(crate) fn visit_from<E>(
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
    from: Bound<&[u8]>,
    visit: &mut dyn FnMut(Entry<'_>) -> Visited<E>,
) -> Result<Result<(), E>, ReadError> {
    let mut outcome = Ok(());
    tx.scan(database, from, Direction::Forward, &mut |entry| {
        visit(entry).unwrap_or_else(|error| {
            outcome = Err(error);
            ControlFlow::Break(())
        })
    })?;
    Ok(outcome)
}

/// Visits the records of a database whose keys begin with `prefix`, in their order if they have one.
pub(crate) fn visit<E: From<ReadError>>(
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
    prefix: &[u8],
    visit: &mut dyn FnMut(Entry<'_>) -> Visited<E>,
) -> Result<(), E> {
    let from = if prefix.is_empty() { Bound::Unbounded } else { Bound::Included(prefix) };
    let scanned = visit_from(tx, database, from, &mut |entry| {
        if entry.key.starts_with(prefix) { visit(entry) } else { Ok(ControlFlow::Break(())) }
    });
    match scanned {
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
