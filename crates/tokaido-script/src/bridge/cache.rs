//! Operations on caches. They bypass the transaction, which caches are not part of. So a read procedure
//! may write to them, and each call is one step on the cache.
//!
//! The functions have the parameters and replies of those in `read` and `write`, and take their place
//! in `lua/database.lua`.

use tokaido_store::{
    Condition, IncrementError, NewRecord, ReadTransaction, WriteError, WriteOperations,
    WriteTransaction,
};

use super::{
    context::{Context, Fault, NO, YES, existing_database},
    write::{ALWAYS, IF_ABSENT, answer, expiry, record_of},
};

/// The value under a key, as the reply's data.
pub(super) fn cache_get(context: &mut Context, index: i32, key: &[u8]) -> Result<i32, Fault> {
    let cache = context.cache(index)?;
    if cache.get(key, &mut context.scratch)?.is_none() {
        return Ok(NO);
    }
    context.reply.data(&context.scratch);
    Ok(YES)
}

/// Whether a record exists. It does not count as a use of the record.
pub(super) fn cache_exists(context: &mut Context, index: i32, key: &[u8]) -> Result<i32, Fault> {
    Ok(answer(context.cache(index)?.metadata(key)?.is_some()))
}

/// Value, flags, expiry (negative: never) and version; the code gives the version's width.
pub(super) fn cache_record(context: &mut Context, index: i32, key: &[u8]) -> Result<i32, Fault> {
    let cache = context.cache(index)?;
    let found = cache.get(key, &mut context.scratch)?;
    let Some(metadata) = found else { return Ok(NO) };
    Ok(context.reply.record(&metadata.with(&context.scratch)))
}

/// Puts a record without flags that never expires.
pub(super) fn cache_put(
    context: &mut Context,
    index: i32,
    key: &[u8],
    value: &[u8],
) -> Result<i32, Fault> {
    let record = NewRecord::of(value);
    context.cache(index)?.set(key, record)?;
    Ok(YES)
}

/// Puts a record with all its fields, if the condition holds. A negative expiry is none.
pub(super) fn cache_put_with(
    context: &mut Context,
    index: i32,
    key: &[u8],
    value: &[u8],
    flags: f64,
    expires_at_ms: f64,
    condition: i32,
) -> Result<i32, Fault> {
    let cache = context.cache(index)?;
    let record = record_of(value, flags, expires_at_ms);
    let stored = match condition {
        ALWAYS => Some(cache.set(key, record)?),
        IF_ABSENT => cache.add(key, record)?,
        _ => cache.replace(key, record)?,
    };
    Ok(answer(stored.is_some()))
}

/// Puts a record with all its fields, if the value is still the expected one, or absent if none is expected.
pub(super) fn cache_put_same(
    context: &mut Context,
    index: i32,
    key: &[u8],
    expected: Option<&[u8]>,
    value: &[u8],
    flags: f64,
    expires_at_ms: f64,
) -> Result<i32, Fault> {
    let record = record_of(value, flags, expires_at_ms);
    let condition = expected.map_or(Condition::Absent, Condition::Value);
    Ok(answer(context.cache(index)?.set_if(key, condition, record)?.is_some()))
}

/// Compare and set: a negative length stands for "no record", on either side.
pub(super) fn cache_swap(
    context: &mut Context,
    index: i32,
    key: &[u8],
    expected: Option<&[u8]>,
    value: Option<&[u8]>,
) -> Result<i32, Fault> {
    let cache = context.cache(index)?;
    let id = existing_database(index)?;
    if let Some(value) = value {
        let condition = expected.map_or(Condition::Absent, Condition::Value);
        return Ok(answer(cache.set_if(key, condition, NewRecord::of(value))?.is_some()));
    }
    let same = cache.transact::<_, WriteError>(id, |tx| {
        let same = tx.get(id, key)?.map(|record| record.value) == expected;
        Ok(same && (expected.is_none() || tx.delete(id, key)?))
    })?;
    Ok(answer(same))
}

/// Deletes a record; tells whether there was one.
pub(super) fn cache_delete(context: &mut Context, index: i32, key: &[u8]) -> Result<i32, Fault> {
    Ok(answer(context.cache(index)?.delete(key)?))
}

/// Adds to a counter; the code gives the new value's width.
pub(super) fn cache_increment(
    context: &mut Context,
    index: i32,
    key: &[u8],
    by: i64,
) -> Result<i32, Fault> {
    let new = context.cache(index)?.increment_signed(key, by)?;
    Ok(context.reply.integer(new))
}

/// Adds a floating-point number to a counter; the new value is the reply's number.
pub(super) fn cache_increment_float(
    context: &mut Context,
    index: i32,
    key: &[u8],
    by: f64,
) -> Result<i32, Fault> {
    let cache = context.cache(index)?;
    let id = existing_database(index)?;
    let new = cache.transact::<_, IncrementError>(id, |tx| tx.increment_float(id, key, by));
    context.reply.number = new?;
    Ok(YES)
}

/// Appends to a value; its new length is the reply's number.
pub(super) fn cache_append(
    context: &mut Context,
    index: i32,
    key: &[u8],
    suffix: &[u8],
) -> Result<i32, Fault> {
    let cache = context.cache(index)?;
    let id = existing_database(index)?;
    let len = cache.transact::<_, WriteError>(id, |tx| tx.append(id, key, suffix))?;
    context.reply.number = len as f64;
    Ok(YES)
}

/// Gives a record another expiry; a negative one removes it. Tells whether there was a record.
pub(super) fn cache_expire(
    context: &mut Context,
    index: i32,
    key: &[u8],
    expires_at_ms: f64,
) -> Result<i32, Fault> {
    let cache = context.cache(index)?;
    Ok(answer(cache.touch(key, expiry(expires_at_ms))?))
}

/// Deletes every record of a cache.
pub(super) fn cache_clear(context: &mut Context, index: i32) -> Result<i32, Fault> {
    context.cache(index)?.flush_all(0);
    Ok(YES)
}
