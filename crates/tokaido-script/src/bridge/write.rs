//! Writes.

use tokaido_store::{Condition, DatabaseId, NewRecord, WriteOperations};

use super::context::{Context, Fault, NO, YES, existing_database, other_kind};

/// What `put_with` requires of the existing record; `lua/database.lua` has the same.
pub(super) const ALWAYS: i32 = 0;
pub(super) const IF_ABSENT: i32 = 1;

/// Puts a record without flags that never expires.
pub(super) fn put(
    context: &mut Context,
    index: i32,
    key: &[u8],
    value: &[u8],
) -> Result<i32, Fault> {
    let transaction = context.write()?;
    let id = own_database(index)?;
    transaction.put(id, key, NewRecord::of(value))?;
    Ok(YES)
}

/// Puts a record with all its fields, if the condition holds. A negative expiry is none.
pub(super) fn put_with(
    context: &mut Context,
    index: i32,
    key: &[u8],
    value: &[u8],
    flags: f64,
    expires_at_ms: f64,
    condition: i32,
) -> Result<i32, Fault> {
    let transaction = context.write()?;
    let id = own_database(index)?;
    let record = record_of(value, flags, expires_at_ms);
    let condition = match condition {
        ALWAYS => {
            transaction.put(id, key, record)?;
            return Ok(YES);
        }
        IF_ABSENT => Condition::Absent,
        _ => Condition::Present,
    };
    Ok(answer(transaction.put_if(id, key, condition, record)?))
}

/// Puts a record with all its fields, if the value is still the expected one, or absent if none is expected.
pub(super) fn put_same(
    context: &mut Context,
    index: i32,
    key: &[u8],
    expected: Option<&[u8]>,
    value: &[u8],
    flags: f64,
    expires_at_ms: f64,
) -> Result<i32, Fault> {
    let transaction = context.write()?;
    let id = own_database(index)?;
    let record = record_of(value, flags, expires_at_ms);
    let condition = expected.map_or(Condition::Absent, Condition::Value);
    Ok(answer(transaction.put_if(id, key, condition, record)?))
}

/// Compare and set: a negative length stands for "no record", on either side.
pub(super) fn swap(
    context: &mut Context,
    index: i32,
    key: &[u8],
    expected: Option<&[u8]>,
    value: Option<&[u8]>,
) -> Result<i32, Fault> {
    let transaction = context.write()?;
    let id = own_database(index)?;
    let Some(value) = value else {
        let same = transaction.get(id, key)?.map(|record| record.value) == expected;
        if same && expected.is_some() {
            transaction.delete(id, key)?;
        }
        return Ok(answer(same));
    };
    let condition = expected.map_or(Condition::Absent, Condition::Value);
    Ok(answer(transaction.put_if(id, key, condition, NewRecord::of(value))?))
}

/// Deletes a record; tells whether there was one.
pub(super) fn delete(context: &mut Context, index: i32, key: &[u8]) -> Result<i32, Fault> {
    let transaction = context.write()?;
    let id = own_database(index)?;
    Ok(answer(transaction.delete(id, key)?))
}

/// Adds to a counter; the code gives the new value's width.
pub(super) fn increment(
    context: &mut Context,
    index: i32,
    key: &[u8],
    by: i64,
) -> Result<i32, Fault> {
    let transaction = context.write()?;
    let id = own_database(index)?;
    let new = transaction.increment(id, key, by)?;
    Ok(context.reply.integer(new))
}

/// Adds a floating-point number to a counter; the new value is the reply's number.
pub(super) fn increment_float(
    context: &mut Context,
    index: i32,
    key: &[u8],
    by: f64,
) -> Result<i32, Fault> {
    let transaction = context.write()?;
    let id = own_database(index)?;
    context.reply.number = transaction.increment_float(id, key, by)?;
    Ok(YES)
}

/// Appends to a value; its new length is the reply's number.
pub(super) fn append(
    context: &mut Context,
    index: i32,
    key: &[u8],
    suffix: &[u8],
) -> Result<i32, Fault> {
    let transaction = context.write()?;
    let id = own_database(index)?;
    let len = transaction.append(id, key, suffix)?;
    context.reply.number = len as f64;
    Ok(YES)
}

/// Gives a record another expiry, relative to the transaction's time; a negative one removes it.
/// Tells whether there was a record.
pub(super) fn expire(
    context: &mut Context,
    index: i32,
    key: &[u8],
    expires_at_ms: f64,
) -> Result<i32, Fault> {
    let transaction = context.write()?;
    let id = own_database(index)?;
    let Some(old) = transaction.get(id, key)? else { return Ok(NO) };
    context.scratch.clear();
    context.scratch.extend_from_slice(old.value);
    let record = old.with_same_value(&context.scratch).expiring(expiry(expires_at_ms));
    transaction.put(id, key, record)?;
    Ok(YES)
}

/// Deletes every record of a database.
pub(super) fn clear(context: &mut Context, index: i32) -> Result<i32, Fault> {
    let transaction = context.write()?;
    transaction.clear(own_database(index)?).map_err(Fault::from)?;
    Ok(YES)
}

/// The database to write to, which must be one of the store's own. A cache has functions of its own,
/// so a mounted one here was passed to a function taken from another database.
#[inline]
pub(super) fn own_database(index: i32) -> Result<DatabaseId, Fault> {
    let id = existing_database(index)?;
    if id.mount().is_some() { Err(other_kind()) } else { Ok(id) }
}

/// A record with all its fields.
pub(super) fn record_of(value: &[u8], flags: f64, expires_at_ms: f64) -> NewRecord<'_> {
    NewRecord { flags: flags as u32, expires_at_ms: expiry(expires_at_ms), ..NewRecord::of(value) }
}

pub(super) fn expiry(at_ms: f64) -> Option<u64> {
    (at_ms >= 0.0).then_some(at_ms as u64)
}

pub(super) fn answer(yes: bool) -> i32 {
    if yes { YES } else { NO }
}
