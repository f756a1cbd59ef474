//! Caches: not through the transaction, which they are no part of, but directly. So a read
//! procedure may write to them, and a call is one step on the cache.
//!
//! The functions have the parameters and answers of those in `read` and `write`, whose place they
//! take in `lua/database.lua`.

use tokaido_store::{
    Condition, DatabaseId, IncrementError, NewRecord, ReadTransaction, WriteError, WriteOperations,
    WriteTransaction,
};

use super::{
    context::{Context, NO, YES, bytes, existing_database, native},
    write::{ALWAYS, IF_ABSENT, answer, expiry},
};

/// The value under a key, as the reply's data.
pub(super) unsafe extern "C" fn cache_get(
    context: *mut Context,
    index: i32,
    key: *const u8,
    key_len: u32,
) -> i32 {
    // SAFETY: called from Lua with the VM's context and a Lua string.
    unsafe {
        native(context, |context| {
            let cache = context.cache(index)?;
            if cache.get(bytes(key, key_len), &mut context.scratch)?.is_none() {
                return Ok(NO);
            }
            context.reply.data(&context.scratch);
            Ok(YES)
        })
    }
}

/// Whether a record is there. It counts as no use of the record.
pub(super) unsafe extern "C" fn cache_exists(
    context: *mut Context,
    index: i32,
    key: *const u8,
    key_len: u32,
) -> i32 {
    // SAFETY: called from Lua with the VM's context and a Lua string.
    unsafe {
        native(context, |context| {
            Ok(answer(context.cache(index)?.metadata(bytes(key, key_len))?.is_some()))
        })
    }
}

/// Value, flags, expiry (negative: never) and version; the code tells the version's width.
pub(super) unsafe extern "C" fn cache_record(
    context: *mut Context,
    index: i32,
    key: *const u8,
    key_len: u32,
) -> i32 {
    // SAFETY: called from Lua with the VM's context and a Lua string.
    unsafe {
        native(context, |context| {
            let cache = context.cache(index)?;
            let found = cache.get(bytes(key, key_len), &mut context.scratch)?;
            let Some(metadata) = found else { return Ok(NO) };
            Ok(context.reply.record(&metadata.with(&context.scratch)))
        })
    }
}

/// Puts a record without flags that never expires.
pub(super) unsafe extern "C" fn cache_put(
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
            let record = NewRecord::of(bytes(value, value_len));
            context.cache(index)?.set(bytes(key, key_len), record)?;
            Ok(YES)
        })
    }
}

/// Puts a record with all that it can have, if the condition holds. A negative expiry is none.
pub(super) unsafe extern "C" fn cache_put_with(
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
            let cache = context.cache(index)?;
            let record = NewRecord {
                value: bytes(value, value_len),
                flags: flags as u32,
                expires_at_ms: expiry(expires_at_ms),
            };
            let key = bytes(key, key_len);
            let stored = match condition {
                ALWAYS => Some(cache.set(key, record)?),
                IF_ABSENT => cache.add(key, record)?,
                _ => cache.replace(key, record)?,
            };
            Ok(answer(stored.is_some()))
        })
    }
}

/// Compare and set: a negative length stands for "no record", on either side.
pub(super) unsafe extern "C" fn cache_swap(
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
            let cache = context.cache(index)?;
            let id = existing_database(index)?;
            let key = bytes(key, key_len);
            let expected = u32::try_from(expected_len).ok().map(|len| bytes(expected, len));
            let value = u32::try_from(value_len).ok().map(|len| bytes(value, len));
            if let Some(value) = value {
                let condition = expected.map_or(Condition::Absent, Condition::Value);
                return Ok(answer(cache.set_if(key, condition, NewRecord::of(value))?.is_some()));
            }
            let same = cache.transact::<_, WriteError>(id, |tx| {
                let same = tx.get(id, key)?.map(|record| record.value) == expected;
                Ok(same && (expected.is_none() || tx.delete(id, key)?))
            })?;
            Ok(answer(same))
        })
    }
}

/// Deletes a record; tells whether there was one.
pub(super) unsafe extern "C" fn cache_delete(
    context: *mut Context,
    index: i32,
    key: *const u8,
    key_len: u32,
) -> i32 {
    // SAFETY: called from Lua with the VM's context and a Lua string.
    unsafe {
        native(context, |context| Ok(answer(context.cache(index)?.delete(bytes(key, key_len))?)))
    }
}

/// Adds to a counter; the code tells the new value's width.
pub(super) unsafe extern "C" fn cache_increment(
    context: *mut Context,
    index: i32,
    key: *const u8,
    key_len: u32,
    by: i64,
) -> i32 {
    // SAFETY: called from Lua with the VM's context and a Lua string.
    unsafe {
        native(context, |context| {
            let new = context.cache(index)?.increment_signed(bytes(key, key_len), by)?;
            Ok(context.reply.integer(new))
        })
    }
}

/// Adds to a counter with a fraction; the new value is the reply's number.
pub(super) unsafe extern "C" fn cache_increment_float(
    context: *mut Context,
    index: i32,
    key: *const u8,
    key_len: u32,
    by: f64,
) -> i32 {
    // SAFETY: called from Lua with the VM's context and a Lua string.
    unsafe {
        native(context, |context| {
            let cache = context.cache(index)?;
            let (id, key): (DatabaseId, _) = (existing_database(index)?, bytes(key, key_len));
            let new = cache.transact::<_, IncrementError>(id, |tx| tx.increment_float(id, key, by));
            context.reply.number = new?;
            Ok(YES)
        })
    }
}

/// Appends to a value; its new length is the reply's number.
pub(super) unsafe extern "C" fn cache_append(
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
            let cache = context.cache(index)?;
            let (id, key) = (existing_database(index)?, bytes(key, key_len));
            let suffix = bytes(suffix, suffix_len);
            let len = cache.transact::<_, WriteError>(id, |tx| tx.append(id, key, suffix))?;
            context.reply.number = len as f64;
            Ok(YES)
        })
    }
}

/// Gives a record another expiry; a negative one takes it away. Tells whether there was a record.
pub(super) unsafe extern "C" fn cache_expire(
    context: *mut Context,
    index: i32,
    key: *const u8,
    key_len: u32,
    expires_at_ms: f64,
) -> i32 {
    // SAFETY: called from Lua with the VM's context and a Lua string.
    unsafe {
        native(context, |context| {
            let cache = context.cache(index)?;
            Ok(answer(cache.touch(bytes(key, key_len), expiry(expires_at_ms))?))
        })
    }
}

/// Deletes every record of a cache.
pub(super) unsafe extern "C" fn cache_clear(context: *mut Context, index: i32) -> i32 {
    // SAFETY: called from Lua with the VM's context.
    unsafe {
        native(context, |context| {
            context.cache(index)?.flush_all(0);
            Ok(YES)
        })
    }
}
