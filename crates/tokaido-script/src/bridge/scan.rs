//! The steps of a scan, a few at a time. The last key is the cursor, so a scan keeps nothing open.
//!
//! Entries are copied into one buffer, from which Lua takes them without a call. They are current
//! until something writes to the database, or reads ahead for another loop; the reply's
//! `ahead_number` shows that.
//!
//! ```text
//! entry = key length i32, value length i32, [expiry in ms f64, negative: never] (all in the machine's
//! order), key, value
//! ```

use std::ops::{Bound, ControlFlow};

use tokaido_store::{Direction, limits};

use super::{
    context::{Context, Fault, NO, YES, database},
    read::value_of,
};

/// The bits of a plan above the database's index; `lua/scan.lua` has the same.
const INDEX_MASK: i32 = 0x7fff;
const BACKWARD: i32 = 1 << 15;
const FROM_GIVEN: i32 = 1 << 16;
const FROM_INCLUDED: i32 = 1 << 17;
const FAR_GIVEN: i32 = 1 << 18;
const FAR_INCLUDED: i32 = 1 << 19;
const KEYS_ONLY: i32 = 1 << 20;
/// With each record's expiry, which is NaN for a collection; see `lua/cabinet/walk.lua`.
const WITH_EXPIRY: i32 = 1 << 21;

/// Every index fits below those bits.
const _: () = assert!(limits::DATABASE_NUMBERS_MAX + limits::MOUNTS_MAX <= INDEX_MASK as usize + 1);

/// Reading ahead ends after this many bytes. The first entry is read whatever its size.
const AHEAD_BYTES_MAX: usize = 16 << 10;

/// Up to `records` entries from `from` on, none of them beyond `far`. The reply's number is how
/// many there are.
pub(super) fn scan_ahead(
    context: &mut Context,
    plan: i32,
    from: &[u8],
    far: &[u8],
    records: i32,
) -> Result<i32, Fault> {
    let transaction = context.read()?;
    let Some(id) = database(plan & INDEX_MASK)? else { return Ok(NO) };
    let from = match plan & (FROM_GIVEN | FROM_INCLUDED) {
        0 => Bound::Unbounded,
        FROM_GIVEN => Bound::Excluded(from),
        _ => Bound::Included(from),
    };
    let direction = if plan & BACKWARD == 0 { Direction::Forward } else { Direction::Backward };
    let to = match (plan & FAR_GIVEN != 0, plan & FAR_INCLUDED != 0) {
        (false, _) => Bound::Unbounded,
        (true, false) => Bound::Excluded(far),
        (true, true) => Bound::Included(far),
    };
    // First, since the buffer moves: another loop's entries in it are gone, even if this scan
    // fails.
    context.reply.outdate_ahead();
    context.reply.ahead_len = 0.0;
    let ahead = &mut context.ahead;
    ahead.clear();
    ahead.shrink_to(2 * AHEAD_BYTES_MAX);
    let (mut found, mut wrong) = (0, None);
    transaction.scan(id, from, to, direction, &mut |entry| {
        let value = if plan & KEYS_ONLY == 0 { value_of(&entry.record) } else { Ok(&[][..]) };
        match value {
            Ok(value) if plan & WITH_EXPIRY != 0 => {
                let expires_at_ms = entry.record.expires_at_ms.map_or(-1.0, |at| at as f64);
                push(ahead, entry.key, value, &expires_at_ms.to_ne_bytes());
            }
            Ok(value) => push(ahead, entry.key, value, &[]),
            // It counts, so that a call ends soon even if there are many in a row.
            Err(_) if plan & WITH_EXPIRY != 0 => {
                push(ahead, entry.key, &[], &f64::NAN.to_ne_bytes());
            }
            Err(fault) => {
                wrong = Some(fault);
                return ControlFlow::Break(());
            }
        }
        found += 1;
        match found < records && ahead.len() < AHEAD_BYTES_MAX {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })?;
    // The loop gets what comes before the fault, and may end there.
    if let Some(fault) = wrong
        && found == 0
    {
        return Err(fault);
    }
    context.reply.ahead = ahead.as_ptr();
    context.reply.ahead_len = ahead.len() as f64;
    context.reply.number = found.into();
    Ok(if found > 0 { YES } else { NO })
}

fn push(ahead: &mut Vec<u8>, key: &[u8], value: &[u8], expiry: &[u8]) {
    // Keys and values are far shorter than 2 GiB.
    ahead.extend_from_slice(&(key.len() as i32).to_ne_bytes());
    ahead.extend_from_slice(&(value.len() as i32).to_ne_bytes());
    ahead.extend_from_slice(expiry);
    ahead.extend_from_slice(key);
    ahead.extend_from_slice(value);
}
