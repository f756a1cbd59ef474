//! Commands that search for keys: `fwmkeys`, and `regex` and `range` of `misc`.

use std::ops::{Bound, ControlFlow};

use tokaido_script::cabinet::compile;
use tokaido_store::{DatabaseId, Kind, ReadTransaction};

use super::{
    misc::{Arguments, Results},
    refusal::Refusal,
};
use crate::search::{visit, visit_range};

/// Passes each key that begins with `prefix` to `found`, at most `max` of them; a negative `max` is no limit.
pub(super) fn fwmkeys(
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
    prefix: &[u8],
    max: i64,
    found: &mut dyn FnMut(&[u8]) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let mut left = u64::try_from(max).unwrap_or(u64::MAX);
    visit(tx, database, prefix, &mut |entry| {
        if left == 0 {
            return Ok(ControlFlow::Break(()));
        }
        found(entry.key)?;
        left -= 1;
        Ok(ControlFlow::Continue(()))
    })
}

/// Ends a search at the time limit of the calling script.
fn check_stop() -> Result<(), Refusal> {
    match tokaido_script::is_stopping() {
        true => Err(Refusal::invalid("the time of the call is over")),
        false => Ok(()),
    }
}

/// How many records are asked for: all, unless the argument says otherwise.
fn max(arguments: &Arguments<'_>, place: usize) -> u64 {
    let max = arguments.integer(place).and_then(|max| u64::try_from(max).ok());
    max.filter(|&max| max > 0).unwrap_or(u64::MAX)
}

/// `regex`: the records whose keys match; a leading `*` makes the match case-insensitive. Records
/// of kinds other than bytes have no value to return.
pub(super) fn regex(
    arguments: &Arguments<'_>,
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
    results: &mut Results,
) -> Result<(), Refusal> {
    let pattern = arguments.need(0)?;
    let regex = match pattern.strip_prefix(b"*") {
        Some(pattern) => compile(pattern, true),
        None => compile(pattern, false),
    };
    let regex = regex.ok_or_else(|| Refusal::invalid("the expression cannot be compiled"))?;
    let mut left = max(arguments, 1);
    visit(tx, database, b"", &mut |entry| {
        check_stop()?;
        if left == 0 {
            return Ok(ControlFlow::Break(()));
        }
        if entry.record.kind == Kind::Bytes && regex.is_match(entry.key) {
            results.pair(entry.key, entry.record.value)?;
            left -= 1;
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// `range`: the records from a key on, and before another one. It needs an order.
pub(super) fn range(
    arguments: &Arguments<'_>,
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
    results: &mut Results,
) -> Result<(), Refusal> {
    let first = arguments.get(0).unwrap_or_default();
    let from = if first.is_empty() { Bound::Unbounded } else { Bound::Included(first) };
    let to = arguments.get(2).map_or(Bound::Unbounded, Bound::Excluded);
    let mut left = max(arguments, 1);
    visit_range(tx, database, from, to, &mut |entry| {
        check_stop()?;
        if left == 0 {
            return Ok(ControlFlow::Break(()));
        }
        if entry.record.kind == Kind::Bytes {
            results.pair(entry.key, entry.record.value)?;
            left -= 1;
        }
        Ok(ControlFlow::Continue(()))
    })?
}
