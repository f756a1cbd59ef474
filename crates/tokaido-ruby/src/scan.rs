//! The steps of a scan, a page at a time. The last key is the cursor, so a scan keeps nothing open.

use std::ops::{Bound, ControlFlow};

use tokaido_script::{Fault, Value};
use tokaido_store::{Direction, ScanRange, Scanner};

use crate::{
    context::{Context, database_of},
    database::value_of,
    items::{self, Argument},
};

/// A page ends after this many bytes. The first entry is read whatever its size.
const PAGE_BYTES_MAX: usize = 16 << 10;

/// The next entries of a scan: pairs of key and value, or keys. The arguments are the prefix, the
/// low end and whether it is included, the high end and whether it is included, whether the scan is
/// backwards, whether only keys are wanted, and the maximum number of entries.
pub(crate) fn page(
    context: &mut Context,
    this: i64,
    arguments: &[Argument<'_>],
) -> Result<(), Fault> {
    let transaction = context.read()?;
    let is_keys_only = arguments[6].is_true();
    let limit = usize::try_from(arguments[7].integer("a limit")?).unwrap_or(0);
    let range = range_of(arguments)?;
    let Some(id) = database_of(this)? else {
        context.answer.push(items::array(0));
        return Ok(());
    };
    let (mut entries, mut bytes, mut wrong) = (Vec::new(), 0, None);
    Scanner::new(id, range, limit).visit(transaction, |entry| {
        let key = Value::String(entry.key.to_vec());
        bytes += entry.key.len();
        if is_keys_only {
            entries.push(key);
        } else {
            match value_of(&entry.record) {
                Ok(value) => {
                    bytes += value.len();
                    entries.push(Value::Array(vec![key, Value::String(value.to_vec())]));
                }
                Err(fault) => {
                    wrong = Some(fault);
                    return ControlFlow::Break(());
                }
            }
        }
        if bytes < PAGE_BYTES_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    // The block gets the entries before the bad one first, and may end the scan there.
    if let Some(fault) = wrong
        && entries.is_empty()
    {
        return Err(fault);
    }
    context.answer_value(Value::Array(entries));
    Ok(())
}

fn range_of(arguments: &[Argument<'_>]) -> Result<ScanRange, Fault> {
    let mut range = match arguments[0].optional_text("a prefix")? {
        Some(prefix) => ScanRange::prefix(&prefix),
        None => ScanRange::all(),
    };
    if let Some(low) = bound(arguments[1], arguments[2])? {
        range.low = low;
    }
    if let Some(high) = bound(arguments[3], arguments[4])? {
        range.high = high;
    }
    if arguments[5].is_true() {
        range.direction = Direction::Backward;
    }
    Ok(range)
}

fn bound(key: Argument<'_>, is_included: Argument<'_>) -> Result<Option<Bound<Vec<u8>>>, Fault> {
    let key = key.optional_text("a key")?;
    let is_included = is_included.is_true();
    Ok(key.map(|key| match is_included {
        true => Bound::Included(key.into_owned()),
        false => Bound::Excluded(key.into_owned()),
    }))
}
