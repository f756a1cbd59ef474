//! Operations on one database, each in a transaction or a snapshot of its own.

use std::time::Duration;

use crate::{
    DatabaseId, DatabaseStatistics, NewRecord, ReadError, ScanRange, Scanner, Snapshot,
    TransactError, WriteError,
};

use super::handle::Embedded;

/// One database of an [`Embedded`] store. Every write is a transaction of its own. To combine
/// several, use [`transact`](Embedded::transact), where [`id`](Self::id) names the database.
#[derive(Clone)]
pub struct Database {
    pub(super) store: Embedded,
    pub(super) id: DatabaseId,
}

impl Database {
    /// The id of this database within a transaction or a snapshot.
    #[must_use]
    pub fn id(&self) -> DatabaseId {
        self.id
    }

    /// The value under `key`.
    ///
    /// # Errors
    /// [`ReadError::KeyLength`] for a key that no record can have.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, ReadError> {
        self.store.read(|snapshot| {
            Ok(snapshot.get(self.id, key.as_ref())?.map(|record| record.value.to_vec()))
        })
    }

    /// Puts `value` under `key`, replacing any that was there.
    ///
    /// # Errors
    /// If the key or the value exceeds its [limit](crate::limits), and as [`Embedded::transact`].
    pub fn put(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<(), TransactError<WriteError>> {
        let (key, record) = (key.as_ref(), NewRecord::of(value.as_ref()));
        self.store.transact(|transaction| transaction.put(self.id, key, record))
    }

    /// As [`put`](Self::put), but the record expires after `ttl`.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn put_for(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<(), TransactError<WriteError>> {
        let ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        let (key, record) = (key.as_ref(), NewRecord::of(value.as_ref()));
        self.store.transact(|transaction| {
            let expires_at_ms = transaction.now_ms().saturating_add(ttl_ms);
            transaction.put(self.id, key, record.expiring(Some(expires_at_ms)))
        })
    }

    /// Deletes the record under `key`; returns whether there was one.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<bool, TransactError<WriteError>> {
        let key = key.as_ref();
        self.store.transact(|transaction| transaction.delete(self.id, key))
    }

    /// The records of `range` in order, as of now. To read them without copying, use a [`Scanner`]
    /// on a [`snapshot`](Embedded::snapshot).
    ///
    /// # Errors
    /// As [`Embedded::snapshot`].
    pub fn scan(&self, range: ScanRange) -> Result<Scan, ReadError> {
        let snapshot = self.store.snapshot()?;
        Ok(Scan { scanner: Scanner::new(self.id, range, usize::MAX), snapshot, ended: false })
    }

    /// How much the database holds, known without a scan. If it is larger than memory, or very much was written lately, that is an
    /// estimate.
    ///
    /// # Errors
    /// Only if the engine fails.
    pub fn statistics(&self) -> Result<DatabaseStatistics, ReadError> {
        self.store.read(|snapshot| snapshot.exact_statistics(self.id))
    }
}

/// Records in order: keys and values of one snapshot. See [`Database::scan`].
pub struct Scan {
    scanner: Scanner,
    snapshot: Box<dyn Snapshot>,
    ended: bool,
}

impl Iterator for Scan {
    type Item = Result<(Vec<u8>, Vec<u8>), ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.scanner.next(&mut *self.snapshot);
        let next = next.map(|entry| entry.map(|e| (e.key.to_vec(), e.record.value.to_vec())));
        // After an error there is no position to continue from.
        self.ended = !matches!(next, Ok(Some(_)));
        next.transpose()
    }
}
