//! Counters: INCR, DECR and their kin. A counter is a value that reads as a decimal number.

use tokaido_store::{IncrementError, WriteOperations, WriteTransaction, format_float, parse_float};

use super::{call::Call, failure::Failure};

pub(super) fn incr(call: &mut Call<'_, '_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    add(call, tx, 1)
}

pub(super) fn decr(call: &mut Call<'_, '_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    add(call, tx, -1)
}

pub(super) fn incrby(
    call: &mut Call<'_, '_>,
    tx: &mut dyn WriteTransaction,
) -> Result<(), Failure> {
    let by = call.integer(2)?;
    add(call, tx, by)
}

pub(super) fn decrby(
    call: &mut Call<'_, '_>,
    tx: &mut dyn WriteTransaction,
) -> Result<(), Failure> {
    let by = call.integer(2)?.checked_neg();
    let by = by.ok_or_else(|| Failure::other("decrement would overflow"))?;
    add(call, tx, by)
}

fn add(call: &mut Call<'_, '_>, tx: &mut dyn WriteTransaction, by: i64) -> Result<(), Failure> {
    let new = tx.increment(call.database(), call.arg(1), by)?;
    call.reply.integer(new);
    Ok(())
}

pub(super) fn incrbyfloat(
    call: &mut Call<'_, '_>,
    tx: &mut dyn WriteTransaction,
) -> Result<(), Failure> {
    let by = parse_float(call.arg(2)).ok_or(Failure::NotAFloat)?;
    let new =
        tx.increment_float(call.database(), call.arg(1), by).map_err(|error| match error {
            IncrementError::NotANumber => Failure::NotAFloat,
            IncrementError::Overflow => Failure::NotFinite,
            other => other.into(),
        })?;
    call.reply.bulk(format_float(new).as_bytes());
    Ok(())
}
