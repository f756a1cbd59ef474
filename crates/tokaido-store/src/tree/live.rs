//! Reads of a view that skip expired records.

use std::ops::{Bound, ControlFlow};

use crate::{DatabaseId, Direction, Entry, ReadError, Record, limits, record};

use super::view::{self, View};

/// The record, if there is one that has not expired.
#[inline]
pub(super) fn record(stored: Option<&[u8]>, now_ms: u64) -> Result<Option<Record<'_>>, ReadError> {
    let Some(stored) = stored else { return Ok(None) };
    Ok(Some(record::decode(stored)?).filter(|record| record.is_live(now_ms)))
}

/// The nearest entry that has not expired.
pub(super) fn seek<'v>(
    view: &'v View,
    tree: u32,
    from: Bound<&[u8]>,
    direction: Direction,
    now_ms: u64,
) -> Result<Option<Entry<'v>>, ReadError> {
    let mut found = None;
    view.scan(tree, from, Bound::Unbounded, direction, |(key, stored)| {
        let record = record::decode(stored)?;
        if !record.is_live(now_ms) {
            return Ok(ControlFlow::Continue(()));
        }
        found = Some(Entry { key, record });
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// Passes unexpired entries from `from` to `to` to `visit`, until it breaks off.
pub(super) fn scan(
    view: &View,
    tree: u32,
    from: Bound<&[u8]>,
    to: Bound<&[u8]>,
    direction: Direction,
    now_ms: u64,
    visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
) -> Result<(), ReadError> {
    view.scan(tree, from, to, direction, |(key, stored)| {
        let record = record::decode(stored)?;
        Ok(match record.is_live(now_ms) {
            true => visit(Entry { key, record }),
            false => ControlFlow::Continue(()),
        })
    })
}

/// Refuses a bound that is longer than a key of the keyspace may be.
pub(super) fn check_bound(keyspace: DatabaseId, bound: Bound<&[u8]>) -> Result<(), ReadError> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) if key.len() > limits::KEY_LEN_MAX => {
            view::check_key(keyspace, key)
        }
        _ => Ok(()),
    }
}
