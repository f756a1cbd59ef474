//! The two traits through which protocols and scripts use an engine.

use std::ops::{Bound, ControlFlow};

use crate::{
    Amendment, CollectionId, CommitNumber, DatabaseId, DatabaseStatistics, Entry, NewRecord,
    ReadError, Record, WriteError,
};

/// The direction of a scan through the keys, which are ordered as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From small keys to large ones.
    Forward,
    /// From large keys to small ones.
    Backward,
}

impl Direction {
    /// Whether a scan in this direction meets `key` before `other`.
    #[inline]
    pub(crate) fn is_before(self, key: &[u8], other: &[u8]) -> bool {
        match self {
            Self::Forward => key < other,
            Self::Backward => key > other,
        }
    }

    /// Whether `key` lies beyond `end` for a scan in this direction.
    #[inline]
    pub(crate) fn is_past(self, key: &[u8], end: Bound<&[u8]>) -> bool {
        match end {
            Bound::Included(end) => self.is_before(end, key),
            Bound::Excluded(end) => !self.is_before(key, end),
            Bound::Unbounded => false,
        }
    }
}

/// Reads within one transaction: of a snapshot, or of a write transaction, which sees its own
/// writes. Records that have expired by [`now_ms`](Self::now_ms) are invisible.
///
/// What a call returns borrows from the transaction until the next call, so that an engine may
/// hand out its own pages. Methods take `&mut self` because engines keep cursors between calls.
pub trait ReadTransaction {
    /// The transaction's time, in ms since the epoch. It does not move while the transaction runs.
    fn now_ms(&self) -> u64;

    /// The record under `key`.
    ///
    /// # Errors
    /// [`ReadError::KeyLength`] for a key that no record can have.
    fn get<'t>(
        &'t mut self,
        database: DatabaseId,
        key: &[u8],
    ) -> Result<Option<Record<'t>>, ReadError>;

    /// Calls `visit(i, record)` for every `keys[i]`, in order. One round trip on a remote engine.
    ///
    /// # Errors
    /// As [`get`](Self::get); keys before the failing one have been visited.
    fn get_many(
        &mut self,
        database: DatabaseId,
        keys: &[&[u8]],
        visit: &mut dyn FnMut(usize, Option<Record<'_>>),
    ) -> Result<(), ReadError> {
        for (i, key) in keys.iter().enumerate() {
            let record = self.get(database, key)?;
            visit(i, record);
        }
        Ok(())
    }

    /// Visits every record under `key`, in order. Only a constant database can have more than one.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    fn get_all(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        visit: &mut dyn FnMut(Record<'_>),
    ) -> Result<(), ReadError> {
        if let Some(record) = self.get(database, key)? {
            visit(record);
        }
        Ok(())
    }

    /// The first entry from `from` on in `direction`: with `Included(k)` the entry of `k` itself
    /// or, if there is none, its neighbour; with `Excluded(k)` the neighbour; with `Unbounded` the
    /// first entry of the database in that direction.
    ///
    /// The last key seen *is* the cursor, so a scan holds nothing open, survives writes in between,
    /// and can continue in another transaction. Engines remember where recent calls ended, so a
    /// call that continues from there is a single step. [`Scanner`](crate::Scanner) adds prefixes,
    /// ranges and limits.
    ///
    /// # Errors
    /// [`ReadError::KeyLength`] if the bound is longer than a key may be; [`ReadError::Unordered`]
    /// where keys have no order: see [`page`](Self::page).
    fn seek<'t>(
        &'t mut self,
        database: DatabaseId,
        from: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<Option<Entry<'t>>, ReadError>;

    /// Visits about `records` entries of a database whose keys have no order. Returns the cursor to
    /// continue with, below 2^52; `None` at the end. Begin with 0. Entries present from the first
    /// page to the last are visited, in a cache perhaps twice. A page may be empty before the end.
    ///
    /// # Errors
    /// [`ReadError::NoPages`] where keys have an order; [`ReadError::CursorLost`] if what the cursor
    /// pointed into is gone.
    fn page(
        &mut self,
        database: DatabaseId,
        cursor: u64,
        records: usize,
        visit: &mut dyn FnMut(Entry<'_>),
    ) -> Result<Option<u64>, ReadError> {
        let _ = (database, cursor, records, visit);
        Err(ReadError::NoPages)
    }

    /// Calls `visit` for the entries from `from` to `to` in `direction`, as [`seek`](Self::seek) would return
    /// them one by one, until `visit` breaks off. The fastest way through many records. A caller that knows
    /// where the scan ends passes that as `to`, which may be longer than a key, rather than leaving it to
    /// `visit`: to show `visit` the record past the end, an engine may have to skip many deleted ones.
    ///
    /// # Errors
    /// As [`seek`](Self::seek); entries before the failure have been visited.
    fn scan(
        &mut self,
        database: DatabaseId,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let mut next = from.map(<[u8]>::to_vec);
        loop {
            let from = next.as_ref().map(Vec::as_slice);
            let Some(entry) = self.seek(database, from, direction)? else { return Ok(()) };
            let key = entry.key.to_vec();
            if direction.is_past(&key, to) || visit(entry).is_break() {
                return Ok(());
            }
            next = Bound::Excluded(key);
        }
    }

    /// Records and bytes of one database, known without a scan: as of the last commit, even if the
    /// snapshot is older, plus the transaction's own writes.
    ///
    /// In a large database, a snapshot may estimate what was written in the last seconds, and nobody waits for it. If the data is
    /// larger than memory, or very much was written lately, a transaction may get an estimate, too. A server's
    /// numbers are exact again some time after its last write.
    ///
    /// # Errors
    /// Only if the engine fails.
    fn statistics(&mut self, database: DatabaseId) -> Result<DatabaseStatistics, ReadError>;

    /// Like [`statistics`](Self::statistics), but in a snapshot as exact as in a transaction. Commits may have to wait for it, up
    /// to some seconds.
    ///
    /// # Errors
    /// Only if the engine fails.
    fn exact_statistics(&mut self, database: DatabaseId) -> Result<DatabaseStatistics, ReadError> {
        self.statistics(database)
    }

    /// Notes that the collection under `key` would be read faster if a writer worked on it first, and leaves that to whoever
    /// calls [`take_upkeep_request`](WriteTransaction::take_upkeep_request). A request may be lost: repeat it with each slow read.
    fn request_upkeep(&mut self, database: DatabaseId, key: &[u8]) {
        let _ = (database, key);
    }

    /// How many records of one database have an expiry; an estimate if the store has many of them.
    /// 0 if the engine does not know.
    ///
    /// # Errors
    /// Only if the engine fails.
    fn expiring(&mut self, database: DatabaseId) -> Result<u64, ReadError> {
        let _ = database;
        Ok(0)
    }
}

/// Reads and writes within one transaction, across all databases of the store. It is committed or
/// rolled back by the [`Writer`](crate::Writer) that began it.
///
/// [`WriteOperations`](crate::WriteOperations) adds increment, compare-and-set, add, replace and
/// append to every implementation.
pub trait WriteTransaction: ReadTransaction {
    /// The version of the records that this transaction writes.
    fn number(&self) -> CommitNumber;

    /// Puts a record under `key`, replacing any that was there.
    ///
    /// # Errors
    /// If the key, the value or the transaction exceeds its [limit](crate::limits), or if the
    /// engine fails.
    fn put(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        record: NewRecord<'_>,
    ) -> Result<(), WriteError>;

    /// Deletes the record under `key`; returns whether there was a visible one.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    fn delete(&mut self, database: DatabaseId, key: &[u8]) -> Result<bool, WriteError>;

    /// Deletes a record that the caller knows to exist, and to be no collection. An engine that has to look for what
    /// [`delete`](Self::delete) deletes need not do so here. If there is none after all, nothing changes.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    fn delete_existing(&mut self, database: DatabaseId, key: &[u8]) -> Result<(), WriteError> {
        self.delete(database, key).map(|_| ())
    }

    /// Replaces a record's expiry and marks, and leaves its value as it is. Returns its version
    /// from then on, or `None` if there is no record. A [cache](crate::cache) keeps the version,
    /// too; other engines write the record again.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    fn amend(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        amendment: Amendment,
    ) -> Result<Option<CommitNumber>, WriteError> {
        let Some(record) = self.get(database, key)? else { return Ok(None) };
        let value = record.value.to_vec();
        let Amendment { expires_at_ms, marks } = amendment;
        let new = NewRecord { expires_at_ms, marks, ..record.with_same_value(&value) };
        self.put(database, key, new)?;
        Ok(Some(self.number()))
    }

    /// Moves the record under `from` to `to`, replacing any that was there; returns whether there
    /// was a visible one. Its collection, if it has one, moves with it, in constant time.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    fn rename(&mut self, database: DatabaseId, from: &[u8], to: &[u8]) -> Result<bool, WriteError> {
        rename_by_copy(self, database, from, to)
    }

    /// An id for a new collection, for this transaction to put into its record.
    ///
    /// # Errors
    /// [`WriteError::TooManyCollections`]; [`WriteError::BytesOnly`] where there are none.
    fn new_collection(&mut self) -> Result<CollectionId, WriteError> {
        Err(WriteError::BytesOnly)
    }

    /// Deletes every record of a database, in constant time.
    ///
    /// # Errors
    /// Only if the engine fails.
    fn clear(&mut self, database: DatabaseId) -> Result<(), WriteError>;

    /// The database of that name, for writing. If there is none, the name is reserved until the
    /// transaction ends, and kept if the transaction writes to it. There may then be at most `max`
    /// databases, or fewer if the store's own limit is lower.
    ///
    /// # Errors
    /// [`WriteError::Name`] for an invalid name, and at the limit.
    fn open_database(&mut self, name: &str, max: usize) -> Result<DatabaseId, WriteError> {
        let _ = (name, max);
        Err(WriteError::Engine { message: "this transaction is of one database".to_owned() })
    }

    /// Deletes a database with all its records and frees its name, in constant time. Returns
    /// whether there was anything, written by this transaction or earlier.
    ///
    /// # Errors
    /// [`WriteError::Mounted`] for a database that is mounted; otherwise only if the engine fails.
    fn drop_database(&mut self, database: DatabaseId) -> Result<bool, WriteError> {
        let _ = database;
        Err(WriteError::Mounted)
    }

    /// Swaps the records of two databases, however many there are. Records that will expire, or are
    /// yet to be removed, are listed anew, which counts as writing them.
    ///
    /// # Errors
    /// [`WriteError::Mounted`] unless both are the store's own.
    fn swap_databases(&mut self, one: DatabaseId, other: DatabaseId) -> Result<(), WriteError> {
        let _ = (one, other);
        Err(WriteError::Mounted)
    }

    /// Drops every database that is not mounted, also those that only this transaction sees.
    ///
    /// # Errors
    /// As [`drop_database`](Self::drop_database).
    fn drop_all_databases(&mut self) -> Result<(), WriteError> {
        Err(WriteError::Mounted)
    }

    /// Removes up to `limit` records that are no longer visible, and returns how many it removed:
    /// expired records, and elements of collections that are gone. If the result is `limit`, there
    /// may be more; it is at most [`limits::RECLAIM_MAX`](crate::limits::RECLAIM_MAX). To be called
    /// in a transaction that does nothing else: observers are told of its deletions as reclaimed.
    ///
    /// # Errors
    /// Only if the engine fails.
    fn reclaim(&mut self, limit: usize) -> Result<usize, WriteError> {
        let _ = limit;
        Ok(0)
    }

    /// One of the keys that [`request_upkeep`](ReadTransaction::request_upkeep) was called for, in any transaction, and
    /// removes the request.
    fn take_upkeep_request(&mut self) -> Option<(DatabaseId, Vec<u8>)> {
        None
    }
}

/// Renames a record that has no collection.
pub(crate) fn rename_by_copy(
    transaction: &mut (impl WriteTransaction + ?Sized),
    database: DatabaseId,
    from: &[u8],
    to: &[u8],
) -> Result<bool, WriteError> {
    let Some(record) = transaction.get(database, from)? else { return Ok(false) };
    if from != to {
        let value = record.value.to_vec();
        let new = record.with_same_value(&value);
        transaction.put(database, to, new)?;
        transaction.delete(database, from)?;
    }
    Ok(true)
}
