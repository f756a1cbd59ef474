//! The two traits that are all a protocol or a script knows of an engine.

use std::ops::{Bound, ControlFlow};

use crate::{
    Amendment, CollectionId, CommitNumber, DatabaseId, DatabaseStatistics, Entry, NewRecord,
    ReadError, Record, WriteError,
};

/// Which way a scan goes through the keys, which are ordered as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From small keys to large ones.
    Forward,
    /// From large keys to small ones.
    Backward,
}

impl Direction {
    /// Whether a scan that way comes by `key` before `other`.
    #[inline]
    pub(crate) fn is_before(self, key: &[u8], other: &[u8]) -> bool {
        match self {
            Self::Forward => key < other,
            Self::Backward => key > other,
        }
    }

    /// Whether a scan that way up to `end` has ended once it comes by `key`.
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
/// writes. Records that have expired at [`now_ms`](Self::now_ms) are not there.
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

    /// The nearest entry from `from` on in `direction`: with `Included(k)` the entry of `k` itself
    /// or, without one, its neighbour; with `Excluded(k)` the neighbour; `Unbounded` is the end of
    /// the database that the direction starts at.
    ///
    /// The last key seen *is* the cursor, so a scan holds nothing open, survives writes in between,
    /// and can go on in another transaction. Engines remember where the last calls ended and make
    /// a call that goes on from there a single step. [`Scanner`](crate::Scanner) adds prefixes,
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

    /// Visits about `records` entries of a database whose keys have no order, and gives the cursor
    /// to go on with, below 2^52; `None` at the end. Begin with 0. What is there from the first
    /// page to the last is visited, of a cache perhaps twice; a page may be empty before the end.
    ///
    /// # Errors
    /// [`ReadError::NoPages`] where keys have an order; [`ReadError::CursorLost`] if what the cursor
    /// led into is no more.
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

    /// Calls `visit` for the entries from `from` to `to` in `direction`, as [`seek`](Self::seek) would
    /// give them one by one, until it breaks off. The fastest way through many records. Who knows where the
    /// scan ends says so by `to`, which may be longer than a key, and does not leave it to `visit` alone: an
    /// engine may have to walk over many records that were deleted to show it the one behind them.
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

    /// Records and bytes of one database, without counting them: as of the last commit, even if
    /// the snapshot is older, and with what the transaction itself has written.
    ///
    /// # Errors
    /// Only if the engine fails.
    fn statistics(&mut self, database: DatabaseId) -> Result<DatabaseStatistics, ReadError>;

    /// How many records of one database will expire; an estimate if the store has many of them. 0 for an
    /// engine that does not know.
    ///
    /// # Errors
    /// Only if the engine fails.
    fn expiring(&mut self, database: DatabaseId) -> Result<u64, ReadError> {
        let _ = database;
        Ok(0)
    }
}

/// Reads and writes within one transaction, over every database of the store. It is committed or
/// rolled back by the [`Writer`](crate::Writer) that began it.
///
/// [`WriteOperations`](crate::WriteOperations) adds increment, compare-and-set, add, replace and
/// append to every implementation.
pub trait WriteTransaction: ReadTransaction {
    /// The number that the records of this transaction get as their version.
    fn number(&self) -> CommitNumber;

    /// Puts a record under `key`, in place of what was there.
    ///
    /// # Errors
    /// When the key, the value or the transaction is over its [limit](crate::limits), or when the
    /// engine fails.
    fn put(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        record: NewRecord<'_>,
    ) -> Result<(), WriteError>;

    /// Deletes the record under `key`; tells whether there was one to be seen.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    fn delete(&mut self, database: DatabaseId, key: &[u8]) -> Result<bool, WriteError>;

    /// Gives a record another expiry and other marks, and leaves its value as it is; gives its version
    /// from then on, or `None` without a record. A [cache](crate::cache) leaves the version, too; other
    /// engines write the record again.
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

    /// Moves the record under `from` to `to`, in place of what was there; tells whether there was
    /// one to be seen. Its collection, if it has one, moves with it, in constant time.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    fn rename(&mut self, database: DatabaseId, from: &[u8], to: &[u8]) -> Result<bool, WriteError> {
        rename_by_copy(self, database, from, to)
    }

    /// The number for a new collection, to be put into its record by this transaction.
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

    /// The database of that name, to be written to. If there is none, the name is taken until the
    /// transaction ends; it stays if the transaction has written to it. There may be `max` databases
    /// then, or fewer if the store may have no more.
    ///
    /// # Errors
    /// [`WriteError::Name`] for a name that no database can have, and at the limit.
    fn open_database(&mut self, name: &str, max: usize) -> Result<DatabaseId, WriteError> {
        let _ = (name, max);
        Err(WriteError::Engine { message: "this transaction is of one database".to_owned() })
    }

    /// Deletes a database with all of its records and gives its name back, in constant time. Tells
    /// whether there was anything, written now or before.
    ///
    /// # Errors
    /// [`WriteError::Mounted`] for a database that is mounted; otherwise only if the engine fails.
    fn drop_database(&mut self, database: DatabaseId) -> Result<bool, WriteError> {
        let _ = database;
        Err(WriteError::Mounted)
    }

    /// Lets two databases have each other's records, whatever their number. What of them will expire, or is yet
    /// to be removed, is listed anew, which counts as writing it.
    ///
    /// # Errors
    /// [`WriteError::Mounted`] unless both are the store's own.
    fn swap_databases(&mut self, one: DatabaseId, other: DatabaseId) -> Result<(), WriteError> {
        let _ = (one, other);
        Err(WriteError::Mounted)
    }

    /// Drops every database that is not mounted, those too that nobody but this transaction sees yet.
    ///
    /// # Errors
    /// As [`drop_database`](Self::drop_database).
    fn drop_all_databases(&mut self) -> Result<(), WriteError> {
        Err(WriteError::Mounted)
    }

    /// Removes up to `limit` records that nobody sees any more, and tells how many it was: those that
    /// have expired, and the elements of collections that have gone. If it is `limit`, there may be
    /// more; it is at most [`limits::RECLAIM_MAX`](crate::limits::RECLAIM_MAX). For a transaction that
    /// does nothing else: what it deletes, observers are told of as reclaimed.
    ///
    /// # Errors
    /// Only if the engine fails.
    fn reclaim(&mut self, limit: usize) -> Result<usize, WriteError> {
        let _ = limit;
        Ok(0)
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
