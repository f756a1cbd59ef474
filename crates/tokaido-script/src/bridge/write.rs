//! Writes.

use tokaido_store::{Condition, NewRecord, WriteOperations};

use super::context::{Context, Fault, NO, YES, bytes, existing_database, native};

/// What `put_with` asks of the record that is there; `lua/database.lua` has the same.
pub(super) const ALWAYS: i32 = 0;
pub(super) const IF_ABSENT: i32 = 1;

/// Puts a record without flags that never expires.
pub(super) unsafe extern "C" fn put(
    context: *mut Context,
    index: i32,
    key: *const u8,
    key_len: u32,
    value: *const u8,
    value_len: u32,
) -> i32 {
    // SAFETY: called from Lua with the VM's context and Lua strings.
    unsafe {
        native(context, |context| {
            let transaction = context.write()?;
            let id = existing_database(index)?;
            transaction.put(id, bytes(key, key_len), NewRecord::of(bytes(value, value_len)))?;
            Ok(YES)
        })
    }
}

/// Puts a record with all that it can have, if the condition holds. A negative expiry is none.
pub(super) unsafe extern "C" fn put_with(
    context: *mut Context,
    index: i32,
    key: *const u8,
    key_len: u32,
    value: *const u8,
    value_len: u32,
    flags: f64,
    expires_at_ms: f64,
    condition: i32,
) -> i32 {
    // SAFETY: called from Lua with the VM's context and Lua strings.
    unsafe {
        native(context, |context| {
            let transaction = context.write()?;
            let id = existing_database(index)?;
            let record = NewRecord {
                value: bytes(value, value_len),
                flags: flags as u32,
                expires_at_ms: expiry(expires_at_ms),
            };
            let key = bytes(key, key_len);
            let condition = match condition {
                ALWAYS => {
                    transaction.put(id, key, record)?;
                    return Ok(YES);
                }
                IF_ABSENT => Condition::Absent,
                _ => Condition::Present,
            };
            Ok(answer(transaction.put_if(id, key, condition, record)?))
        })
    }
}

/// Compare and set: a negative length stands for "no record", on either side.
pub(super) unsafe extern "C" fn swap(
    context: *mut Context,
    index: i32,
    key: *const u8,
    key_len: u32,
    expected: *const u8,
    expected_len: i32,
    value: *const u8,
    value_len: i32,
) -> i32 {
    // SAFETY: called from Lua with the VM's context and Lua strings; a negative length is no
    // string, and its pointer is not looked at.
    unsafe {
        native(context, |context| {
            let transaction = context.write()?;
            let id = existing_database(index)?;
            let key = bytes(key, key_len);
            let expected = u32::try_from(expected_len).ok().map(|len| bytes(expected, len));
            let value = u32::try_from(value_len).ok().map(|len| bytes(value, len));
            let Some(value) = value else {
                let same = transaction.get(id, key)?.map(|record| record.value) == expected;
                if same && expected.is_some() {
                    transaction.delete(id, key)?;
                }
                return Ok(answer(same));
            };
            let condition = expected.map_or(Condition::Absent, Condition::Value);
            Ok(answer(transaction.put_if(id, key, condition, NewRecord::of(value))?))
        })
    }
}

/// Deletes a record; tells whether there was one.
pub(super) unsafe extern "C" fn delete(
    context: *mut Context,
    index: i32,
    key: *const u8,
    key_len: u32,
) -> i32 {
    // SAFETY: called from Lua with the VM's context and a Lua string.
    unsafe {
        native(context, |context| {
            let transaction = context.write()?;
            let id = existing_database(index)?;
            Ok(answer(transaction.delete(id, bytes(key, key_len))?))
        })
    }
}

/// Adds to a counter; the code tells the new value's width.
pub(super) unsafe extern "C" fn increment(
    context: *mut Context,
    index: i32,
    key: *const u8,
    key_len: u32,
    by: i64,
) -> i32 {
    // SAFETY: called from Lua with the VM's context and a Lua string.
    unsafe {
        native(context, |context| {
            let transaction = context.write()?;
            let id = existing_database(index)?;
            let new = transaction.increment(id, bytes(key, key_len), by)?;
            Ok(context.reply.integer(new))
        })
    }
}

/// Adds to a counter with a fraction; the new value is the reply's number.
pub(super) unsafe extern "C" fn increment_float(
    context: *mut Context,
    index: i32,
    key: *const u8,
    key_len: u32,
    by: f64,
) -> i32 {
    // SAFETY: called from Lua with the VM's context and a Lua string.
    unsafe {
        native(context, |context| {
            let transaction = context.write()?;
            let id = existing_database(index)?;
            context.reply.number = transaction.increment_float(id, bytes(key, key_len), by)?;
            Ok(YES)
        })
    }
}

/// Appends to a value; its new length is the reply's number.
pub(super) unsafe extern "C" fn append(
    context: *mut Context,
    index: i32,
    key: *const u8,
    key_len: u32,
    suffix: *const u8,
    suffix_len: u32,
) -> i32 {
    // SAFETY: called from Lua with the VM's context and Lua strings.
    unsafe {
        native(context, |context| {
            let transaction = context.write()?;
            let id = existing_database(index)?;
            let len = transaction.append(id, bytes(key, key_len), bytes(suffix, suffix_len))?;
            context.reply.number = len as f64;
            Ok(YES)
        })
    }
}

/// Gives a record another expiry, counted from the transaction's time; a negative one takes it
/// away. Tells whether there was a record.
pub(super) unsafe extern "C" fn expire(
    context: *mut Context,
    index: i32,
    key: *const u8,
    key_len: u32,
    expires_at_ms: f64,
) -> i32 {
    // SAFETY: called from Lua with the VM's context and a Lua string.
    unsafe {
        native(context, |context| {
            let transaction = context.write()?;
            let id = existing_database(index)?;
            let key = bytes(key, key_len);
            let Some(old) = transaction.get(id, key)? else { return Ok(NO) };
            let flags = old.flags;
            context.scratch.clear();
            context.scratch.extend_from_slice(old.value);
            let record =
                NewRecord { value: &context.scratch, flags, expires_at_ms: expiry(expires_at_ms) };
            transaction.put(id, key, record)?;
            Ok(YES)
        })
    }
}

/// Deletes every record of a database.
pub(super) unsafe extern "C" fn clear(context: *mut Context, index: i32) -> i32 {
    // SAFETY: called from Lua with the VM's context.
    unsafe {
        native(context, |context| {
            let transaction = context.write()?;
            transaction.clear(existing_database(index)?).map_err(Fault::from)?;
            Ok(YES)
        })
    }
}

pub(super) fn expiry(at_ms: f64) -> Option<u64> {
    (at_ms >= 0.0).then_some(at_ms as u64)
}

pub(super) fn answer(yes: bool) -> i32 {
    if yes { YES } else { NO }
}
