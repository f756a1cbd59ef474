//! What commands do to one record. Values are bytes; a record of another kind can be replaced, removed
//! and counted, and nothing else.

use tokaido_store::{
    Condition, DatabaseId, Kind, NewRecord, ReadTransaction, Record, WriteOperations,
    WriteTransaction,
};

use super::refusal::{ErrorCode, Refusal};

type Done = Result<(), Refusal>;

/// A record of bytes. One of another kind is none that these commands can read.
pub(super) fn of_bytes(found: Option<Record<'_>>) -> Result<Option<Record<'_>>, Refusal> {
    match found {
        Some(record) if record.kind != Kind::Bytes => {
            Err(Refusal::invalid(format!("a {} is under this key, not bytes", record.kind)))
        }
        found => Ok(found),
    }
}

/// Puts a value in place of what is there, of whatever kind.
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

/// Appends to a value, and keeps its last `width` bytes. A value that is new is put whole, as Tokyo
/// Tyrant does.
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

/// The number under a key: 0 where there is none. To ask for it, by adding 0, is no write.
fn number<const LEN: usize>(found: Option<&Record<'_>>) -> Result<[u8; LEN], Refusal> {
    let Some(record) = found else { return Ok([0; LEN]) };
    record.value.try_into().map_err(|_| {
        let reason = format!("the value has {} bytes, and a number {LEN}", record.value.len());
        Refusal::new(ErrorCode::Exists, reason)
    })
}

/// Adds to an integer of 4 bytes, in the order of little-endian machines. The sum wraps around, as it
/// does there. Flags and expiry stay.
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

/// Adds to a floating-point number of 8 bytes, in the order of little-endian machines.
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
