//! `get_many`: keys are gathered, read in one round trip, and handed out one by one.

use super::context::{Context, Fault, NO, YES, bytes, database, native};
use crate::Limits;

/// The keys and values of one `get_many`, each list packed into one buffer.
#[derive(Default)]
pub(crate) struct Many {
    keys: Vec<u8>,
    key_ends: Vec<usize>,
    values: Vec<u8>,
    /// Where each value stands in `values`.
    found: Vec<Option<(usize, usize)>>,
    next: usize,
}

/// Begins a list of keys.
pub(super) unsafe extern "C" fn many_begin(context: *mut Context) -> i32 {
    // SAFETY: called from Lua with the VM's context.
    unsafe {
        native(context, |context| {
            context.many.keys.clear();
            context.many.key_ends.clear();
            Ok(YES)
        })
    }
}

/// Adds a key to the list.
pub(super) unsafe extern "C" fn many_add(
    context: *mut Context,
    key: *const u8,
    key_len: u32,
) -> i32 {
    // SAFETY: called from Lua with the VM's context and a Lua string.
    unsafe {
        native(context, |context| {
            let keys_max = context.limits.many_keys_max;
            let many = &mut context.many;
            if many.key_ends.len() == keys_max {
                return Err(Fault::Refused(format!("get_many takes at most {keys_max} keys")));
            }
            many.keys.extend_from_slice(bytes(key, key_len));
            many.key_ends.push(many.keys.len());
            Ok(YES)
        })
    }
}

/// Reads all of them.
pub(super) unsafe extern "C" fn many_run(context: *mut Context, index: i32) -> i32 {
    // SAFETY: called from Lua with the VM's context.
    unsafe {
        native(context, |context| {
            let bytes_max = context.limits.many_bytes_max;
            let transaction = context.read()?;
            let Many { keys, key_ends, values, found, next } = &mut context.many;
            (*next, *found) = (0, vec![None; key_ends.len()]);
            values.clear();
            let Some(id) = database(index)? else { return Ok(YES) };
            let mut start = 0;
            let list: Vec<&[u8]> = key_ends
                .iter()
                .map(|&end| &keys[std::mem::replace(&mut start, end)..end])
                .collect();
            let mut too_large = false;
            transaction.get_many(id, &list, &mut |i, record| {
                let Some(record) = record else { return };
                if values.len() + record.value.len() > bytes_max {
                    too_large = true;
                    return;
                }
                let from = values.len();
                values.extend_from_slice(record.value);
                found[i] = Some((from, values.len()));
            })?;
            if too_large {
                return Err(Fault::Refused(format!(
                    "get_many brings at most {bytes_max} bytes; ask for fewer keys"
                )));
            }
            Ok(YES)
        })
    }
}

/// Reads every record under a key; how many there are is the reply's number.
pub(super) unsafe extern "C" fn all_run(
    context: *mut Context,
    index: i32,
    key: *const u8,
    key_len: u32,
) -> i32 {
    // SAFETY: called from Lua with the VM's context and a Lua string.
    unsafe {
        native(context, |context| {
            let Limits { many_keys_max, many_bytes_max, .. } = context.limits;
            let transaction = context.read()?;
            let Many { values, found, next, .. } = &mut context.many;
            (*next, *found) = (0, Vec::new());
            values.clear();
            context.reply.number = 0.0;
            let Some(id) = database(index)? else { return Ok(YES) };
            let mut too_large = false;
            transaction.get_all(id, bytes(key, key_len), &mut |record| {
                let from = values.len();
                if from + record.value.len() > many_bytes_max || found.len() == many_keys_max {
                    too_large = true;
                    return;
                }
                values.extend_from_slice(record.value);
                found.push(Some((from, values.len())));
            })?;
            if too_large {
                return Err(Fault::Refused(format!(
                    "get_all brings at most {many_keys_max} values of {many_bytes_max} bytes; go through them with scan"
                )));
            }
            context.reply.number = found.len() as f64;
            Ok(YES)
        })
    }
}

/// The next value, in the order of the keys; `NO` where there is none.
pub(super) unsafe extern "C" fn many_next(context: *mut Context) -> i32 {
    // SAFETY: called from Lua with the VM's context.
    unsafe {
        native(context, |context| {
            let Many { values, found, next, .. } = &mut context.many;
            let place = found.get(*next).copied().flatten();
            *next += 1;
            let Some((from, to)) = place else { return Ok(NO) };
            context.reply.data(&values[from..to]);
            Ok(YES)
        })
    }
}
