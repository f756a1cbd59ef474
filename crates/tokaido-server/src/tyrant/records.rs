//! What commands do to one record. Values are bytes; a record of another kind can be replaced, removed
//! and counted, and nothing else.

use tokaido_store::{
    Condition, DatabaseId, Kind, NewRecord, ReadTransaction, Record, WriteOperations,
    WriteTransaction,
};

use super::refusal::{ErrorCode, Refusal};

type Done = Result<(), Refusal>;

/// A record of bytes. These commands cannot read one of another kind.
pub(super) fn of_bytes(found: Option<Record<'_>>) -> Result<Option<Record<'_>>, Refusal> {
    match found {
        Some(record) if record.kind != Kind::Bytes => {
            Err(Refusal::invalid(format!("a {} is under this key, not bytes", record.kind)))
        }
        found => Ok(found),
    }
}

/// Replaces what is there, of whatever kind, by a value.
pub(crate) fn put(
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    key: &[u8],
    value: &[u8],
) -> Done {
    Ok(tx.put(database, key, NewRecord::of(value))?)
}

/// Puts a value where there is none.
pub(crate) fn putkeep(
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    key: &[u8],
    value: &[u8],
) -> Done {
    match tx.put_if(database, key, Condition::Absent, NewRecord::of(value))? {
        true => Ok(()),
        false => Err(Refusal::new(ErrorCode::Exists, "a record is there")),
    }
}

/// Appends to a value. Flags and expiry stay.
pub(crate) fn putcat(
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    key: &[u8],
    value: &[u8],
) -> Done {
    tx.append(database, key, value)?;
    Ok(())
}

/// Appends to a value, and keeps its last `width` bytes. A new value is put whole, as in Tokyo
/// Tyrant.
pub(super) fn putshl(
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    key: &[u8],
    value: &[u8],
    width: usize,
) -> Done {
    let Some(old) = of_bytes(tx.get(database, key)?)? else {
        return put(tx, database, key, value);
    };
    let len = old.value.len() + value.len();
    let cut = len.saturating_sub(width);
    let kept = old.value.get(cut..).unwrap_or_default();
    let added = &value[cut.saturating_sub(old.value.len())..];
    let whole = [kept, added].concat();
    let new = old.with_value(&whole);
    Ok(tx.put(database, key, new)?)
}

/// Removes a record.
pub(crate) fn out(tx: &mut dyn WriteTransaction, database: DatabaseId, key: &[u8]) -> Done {
    if tx.delete(database, key)? { Ok(()) } else { Err(Refusal::missing()) }
}

/// Gets a value.
pub(crate) fn get<'t>(
    tx: &'t mut dyn ReadTransaction,
    database: DatabaseId,
    key: &[u8],
) -> Result<&'t [u8], Refusal> {
    let record = of_bytes(tx.get(database, key)?)?.ok_or_else(Refusal::missing)?;
    Ok(record.value)
}

/// The number under a key: 0 if there is none. Asking for it, by adding 0, is not a write.
fn number<const LEN: usize>(found: Option<&Record<'_>>) -> Result<[u8; LEN], Refusal> {
    let Some(record) = found else { return Ok([0; LEN]) };
    record.value.try_into().map_err(|_| {
        let reason = format!("the value has {} bytes, and a number {LEN}", record.value.len());
        Refusal::new(ErrorCode::Exists, reason)
    })
}

/// Adds to a 4-byte integer in little-endian order. The sum wraps around, as in Tokyo Tyrant. Flags
/// and expiry stay.
pub(super) fn addint(
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    key: &[u8],
    by: i32,
) -> Result<i32, Refusal> {
    let found = of_bytes(tx.get(database, key)?)?;
    let sum = i32::from_le_bytes(number(found.as_ref())?).wrapping_add(by);
    let bytes = sum.to_le_bytes();
    match found.map(|old| old.with_value(&bytes)) {
        Some(_) if by == 0 => {}
        Some(new) => tx.put(database, key, new)?,
        None => put(tx, database, key, &bytes)?,
    }
    Ok(sum)
}

/// Adds to an 8-byte floating-point number in little-endian order.
pub(super) fn adddouble(
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    key: &[u8],
    by: f64,
) -> Result<f64, Refusal> {
    let found = of_bytes(tx.get(database, key)?)?;
    let sum = f64::from_le_bytes(number(found.as_ref())?) + by;
    if sum.is_nan() {
        return Err(Refusal::invalid("the sum is not a number"));
    }
    let bytes = sum.to_le_bytes();
    match found.map(|old| old.with_value(&bytes)) {
        Some(_) if by == 0.0 => {}
        Some(new) => tx.put(database, key, new)?,
        None => put(tx, database, key, &bytes)?,
    }
    Ok(sum)
}
