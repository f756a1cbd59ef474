//! Updating the entries of a table's indexes when a row is written.

use tokaido_store::{DatabaseId, NewRecord, ReadTransaction, WriteError, WriteTransaction};

use crate::{
    declaration::Declaration,
    entries::{self, Entries},
};

/// A row as the indexes see it.
#[derive(Clone, Default)]
pub(crate) struct Indexed {
    entries: Entries,
    expires_at_ms: Option<u64>,
}

impl Indexed {
    /// The row that is there now. An expired row is not, and its entries have expired, too.
    pub(crate) fn find(
        tx: &mut (impl ReadTransaction + ?Sized),
        declaration: &Declaration,
        database: DatabaseId,
        key: &[u8],
    ) -> Result<Self, WriteError> {
        let Some(record) = tx.get(database, key)? else { return Ok(Self::default()) };
        let entries = entries::of_row(declaration, key, entries::row_value(&record))?;
        Ok(Self { entries, expires_at_ms: record.expires_at_ms })
    }

    /// The row that is about to be put.
    pub(crate) fn new(
        declaration: &Declaration,
        key: &[u8],
        record: &NewRecord<'_>,
    ) -> Result<Self, WriteError> {
        let entries = entries::of_row(declaration, key, entries::new_row_value(record))?;
        Ok(Self { entries, expires_at_ms: record.expires_at_ms })
    }

    /// The same row with another expiry.
    pub(crate) fn expiring(&self, expires_at_ms: Option<u64>) -> Self {
        Self { expires_at_ms, ..self.clone() }
    }

    /// Removes the entries of a row that is being removed.
    pub(crate) fn remove(
        &self,
        tx: &mut dyn WriteTransaction,
        database: DatabaseId,
    ) -> Result<(), WriteError> {
        for entry in &self.entries {
            tx.delete(database.elements(), entry)?;
        }
        Ok(())
    }

    /// Replaces these entries with those of `new`, the row under `key`.
    pub(crate) fn replace(
        &self,
        tx: &mut dyn WriteTransaction,
        database: DatabaseId,
        key: &[u8],
        new: &Self,
    ) -> Result<(), WriteError> {
        for entry in self.entries.difference(&new.entries) {
            tx.delete(database.elements(), entry)?;
        }
        let stays = self.expires_at_ms == new.expires_at_ms;
        for entry in new.entries.iter().filter(|entry| !stays || !self.entries.contains(*entry)) {
            put(tx, database, entry, key, new.expires_at_ms)?;
        }
        Ok(())
    }
}

/// Puts one entry of the row under `key`.
pub(crate) fn put(
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    entry: &[u8],
    key: &[u8],
    expires_at_ms: Option<u64>,
) -> Result<(), WriteError> {
    let value = entries::value(entry, key);
    tx.put(database.elements(), entry, NewRecord::of(&value).expiring(expires_at_ms))
}
