//! How many records of a database have an expiry.
//!
//! The expiry index covers all databases, and some of its entries may be stale. So the count walks the index and
//! looks up each entry's record if the index is short; if it is long, its first part is taken as a sample.

use std::ops::{Bound, ControlFlow};

use crate::{DatabaseId, Direction, ReadError, record};

use super::{catalog::EXPIRY_TREE, expiry, view::View};

/// Maximum number of entries that are examined.
const ENTRIES_MAX: u64 = 10_000;

/// The number of records of a database that will expire: exact if the index has few entries, otherwise an
/// estimate. `entries` is how many the index has, including those that are stale or due.
pub(super) fn count(
    view: &View,
    (database, tree): (DatabaseId, u32),
    now_ms: u64,
    entries: u64,
) -> Result<u64, ReadError> {
    let (mut walked, mut found) = (0, 0);
    let from = now_ms.to_be_bytes();
    let from = Bound::Included(&from[..]);
    view.scan(EXPIRY_TREE, from, Bound::Unbounded, Direction::Forward, |(entry, _)| {
        walked += 1;
        if let Some((at_ms, of, key)) = expiry::parse(entry)
            && of == database
            && let Some(stored) = view.find(tree, key)?
        {
            let record = record::decode(stored)?;
            found += u64::from(record.expires_at_ms == Some(at_ms) && record.is_live(now_ms));
        }
        let is_enough = walked == ENTRIES_MAX;
        Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    if walked < ENTRIES_MAX {
        return Ok(found);
    }
    let share = found as f64 / walked as f64;
    Ok(((share * entries as f64) as u64).max(found))
}
