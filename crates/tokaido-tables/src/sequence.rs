//! The sequence of a table: numbers that are each given out once.

use tokaido_store::{DatabaseId, NewRecord, ReadError, WriteTransaction};

use crate::TableError;

/// Follows [`DatabaseId::LASTING_ELEMENTS`] in the key of the element with the last number given
/// out, u64 little-endian.
const SEQUENCE: u8 = 0;

pub(crate) fn key() -> [u8; DatabaseId::LASTING_ELEMENTS.len() + 1] {
    let mut key = [SEQUENCE; _];
    key[..DatabaseId::LASTING_ELEMENTS.len()].copy_from_slice(&DatabaseId::LASTING_ELEMENTS);
    key
}

/// A number that the table has not given out yet, from 1 on. Clearing does not restart it.
///
/// # Errors
/// [`TableError::NoMoreIds`]; as [`WriteTransaction::put`].
pub fn next_unique_id(
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
) -> Result<u64, TableError> {
    let last = match tx.get(database.elements(), &key())? {
        None => 0,
        Some(record) => u64::from_le_bytes(
            record
                .value
                .try_into()
                .map_err(|_| ReadError::Damaged { what: "the sequence of a table".to_owned() })?,
        ),
    };
    // Clients read it as a signed number.
    let next = last.checked_add(1).filter(|next| *next <= i64::MAX as u64);
    let next = next.ok_or(TableError::NoMoreIds)?;
    tx.put(database.elements(), &key(), NewRecord::of(&next.to_le_bytes()))?;
    Ok(next)
}
