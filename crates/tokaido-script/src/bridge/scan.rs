//! One step of a scan. The last key is the cursor, so a scan keeps nothing open here.

use std::ops::Bound;

use tokaido_store::Direction;

use super::context::{Context, NO, YES, bytes, database, native};

/// The bits of a step's plan above the database's index; `lua/scan.lua` has the same.
const INDEX_MASK: i32 = 0x1ff;
const BACKWARD: i32 = 1 << 9;
const FROM_GIVEN: i32 = 1 << 10;
const FROM_INCLUDED: i32 = 1 << 11;
const FAR_GIVEN: i32 = 1 << 12;
const FAR_INCLUDED: i32 = 1 << 13;

/// The nearest entry from `from` on, unless it lies beyond `far`.
pub(super) unsafe extern "C" fn seek(
    context: *mut Context,
    plan: i32,
    from: *const u8,
    from_len: u32,
    far: *const u8,
    far_len: u32,
) -> i32 {
    // SAFETY: called from Lua with the VM's context and Lua strings.
    unsafe {
        native(context, |context| {
            let transaction = context.read()?;
            let Some(id) = database(plan & INDEX_MASK)? else { return Ok(NO) };
            let backward = plan & BACKWARD != 0;
            let bound = match plan & (FROM_GIVEN | FROM_INCLUDED) {
                0 => Bound::Unbounded,
                FROM_GIVEN => Bound::Excluded(bytes(from, from_len)),
                _ => Bound::Included(bytes(from, from_len)),
            };
            let direction = if backward { Direction::Backward } else { Direction::Forward };
            let Some(entry) = transaction.seek(id, bound, direction)? else { return Ok(NO) };
            if plan & FAR_GIVEN != 0 {
                let far = bytes(far, far_len);
                let beyond = if backward { entry.key < far } else { entry.key > far };
                if beyond || (plan & FAR_INCLUDED == 0 && entry.key == far) {
                    return Ok(NO);
                }
            }
            context.reply.key(entry.key);
            context.reply.data(entry.record.value);
            Ok(YES)
        })
    }
}
