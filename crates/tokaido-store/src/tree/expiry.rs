//! The expiry index: a tree of its own, in the order of time.
//!
//! ```text
//! key      time in ms u64 big-endian, database index u16 big-endian, the record's key
//! value    nothing
//! ```
//! An entry may be stale: its record was overwritten by a put that did not look what it replaced,
//! or cleared. So whoever follows one looks at the record's own expiry.

use std::ops::{Bound, ControlFlow};

use crate::{DatabaseId, Direction, ReadError, WriteError, limits};

use super::{catalog::EXPIRY_TREE, transaction::TreeTransaction};

/// Bytes before the record's key.
pub(super) const ENTRY_HEAD_LEN: usize = 8 + 2;

/// The entry of a record.
pub(super) fn key(at_ms: u64, database: DatabaseId, key: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(ENTRY_HEAD_LEN + key.len());
    out.extend_from_slice(&at_ms.to_be_bytes());
    out.extend_from_slice(&(database.index() as u16).to_be_bytes());
    out.extend_from_slice(key);
    out
}

/// Time, database and key of an entry.
pub(super) fn parse(entry: &[u8]) -> Option<(u64, DatabaseId, &[u8])> {
    let (at_ms, rest) = entry.split_first_chunk::<8>()?;
    let (index, key) = rest.split_first_chunk::<2>()?;
    let index = u16::from_be_bytes(*index) as usize;
    if index >= limits::DATABASES_MAX || key.is_empty() {
        return None;
    }
    Some((u64::from_be_bytes(*at_ms), DatabaseId::from_index(index), key))
}

/// Follows up to `limit` due entries. Gives the number of records removed.
pub(super) fn sweep(transaction: &mut TreeTransaction, limit: usize) -> Result<usize, WriteError> {
    let mut removed = 0;
    for entry in due(transaction, limit)? {
        if let Some((_, database, key)) = parse(&entry) {
            removed += usize::from(transaction.remove_if_expired(database, key)?);
        }
        transaction.remove_expiry_entry(&entry)?;
        transaction.swept = entry;
    }
    Ok(removed)
}

/// Up to `limit` entries whose time has come, or that cannot be read, the first ones first.
fn due(transaction: &TreeTransaction, limit: usize) -> Result<Vec<Vec<u8>>, ReadError> {
    let mut due = Vec::new();
    if limit == 0 {
        return Ok(due);
    }
    // Entries that were removed remain as deletions until the next checkpoint, and must not be
    // walked over again and again.
    let from = Bound::Excluded(&transaction.swept[..]);
    transaction.view.scan(EXPIRY_TREE, from, Direction::Forward, |(entry, _)| {
        if parse(entry).is_some_and(|(at_ms, ..)| at_ms > transaction.now_ms) {
            return Ok(ControlFlow::Break(()));
        }
        due.push(entry.to_vec());
        Ok(if due.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    Ok(due)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_sort_by_time_and_read_back() {
        let database = DatabaseId::from_index(3);
        let entry = key(1 << 40, database, b"k");
        assert_eq!(parse(&entry), Some((1 << 40, database, &b"k"[..])));
        assert!(key(255, DatabaseId::from_index(9), b"z") < key(256, database, b"a"));
        assert_eq!(parse(b"short"), None);
    }
}
