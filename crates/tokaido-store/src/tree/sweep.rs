//! The sweep: it follows the expiry index, and removes expired records and the elements of
//! collections that are gone.

use std::ops::{Bound, ControlFlow};

use crate::{Direction, ReadError, WriteError};

use super::{
    catalog::EXPIRY_TREE,
    expiry::{collection, parse},
    transaction::TreeTransaction,
};

/// Follows up to `limit` due entries. Returns the number of records removed, at most `limit`.
pub(super) fn sweep(transaction: &mut TreeTransaction, limit: usize) -> Result<usize, WriteError> {
    let mut removed = 0;
    for entry in due(transaction, limit)? {
        let left = limit - removed;
        match parse(&entry) {
            _ if left == 0 => return Ok(removed),
            None => {}
            Some((_, elements, prefix)) if collection(elements, prefix).is_some() => {
                let some = transaction.remove_elements(elements, prefix, left)?;
                removed += some;
                if some == left {
                    return Ok(removed);
                }
            }
            Some((_, database, key)) => {
                removed += usize::from(transaction.remove_if_expired(database, key)?);
            }
        }
        transaction.write(EXPIRY_TREE, &entry, None)?;
        // More entries may come for this moment: the elements of what has expired.
        if entry[..] < transaction.now_ms.to_be_bytes()[..] {
            transaction.swept = entry;
        }
    }
    Ok(removed)
}

/// Up to `limit` entries that are due or cannot be read, the first ones first.
fn due(transaction: &TreeTransaction, limit: usize) -> Result<Vec<Vec<u8>>, ReadError> {
    let mut due = Vec::new();
    if limit == 0 {
        return Ok(due);
    }
    // Removed entries remain as tombstones until the next checkpoint, and must not be walked over
    // again and again.
    let from = Bound::Excluded(&transaction.swept[..]);
    let behind = (transaction.now_ms + 1).to_be_bytes();
    let to = Bound::Excluded(&behind[..]);
    transaction.view.scan(EXPIRY_TREE, from, to, Direction::Forward, |(entry, _)| {
        due.push(entry.to_vec());
        Ok(if due.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    Ok(due)
}
