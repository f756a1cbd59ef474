//! The inner store's writer together with what is mounted.

use std::ops::{Bound, ControlFlow};

use crate::{
    CommitError, CommitNumber, DatabaseId, DatabaseStatistics, Direction, Entry, NewRecord,
    ReadError, ReadTransaction, Record, WriteError, WriteTransaction, Writer,
};

use super::{
    mounts::Kind,
    view::{MountView, unknown},
};

/// Most records of each cache that one call of `remove_expired` looks at.
const CACHE_RECORDS_SWEPT_MAX: usize = 4096;

/// The writer and, while one is open, the transaction.
pub(super) struct CompositeWriter {
    inner: Box<dyn Writer>,
    mounted: MountView,
    /// Those of the transaction that is open.
    now_ms: u64,
    number: CommitNumber,
}

impl CompositeWriter {
    pub(super) fn new(inner: Box<dyn Writer>, mounted: MountView) -> Self {
        Self { inner, mounted, now_ms: 0, number: 0 }
    }
}

impl Writer for CompositeWriter {
    fn begin(&mut self) -> Result<&mut dyn WriteTransaction, WriteError> {
        let transaction = self.inner.begin()?;
        (self.now_ms, self.number) = (transaction.now_ms(), transaction.number());
        self.mounted.hold();
        Ok(self)
    }

    fn transaction(&mut self) -> &mut dyn WriteTransaction {
        // Panics without one, as it is to.
        self.inner.transaction();
        self
    }

    fn commit(&mut self) -> Result<CommitNumber, CommitError> {
        self.mounted.release();
        self.inner.commit()
    }

    fn rollback(&mut self) -> Result<(), CommitError> {
        self.mounted.release();
        self.inner.rollback()
    }

    fn flush(&mut self) -> Result<(), CommitError> {
        self.inner.flush()
    }

    /// Looks after the caches, too. What goes there needs no flush, and is not counted.
    fn remove_expired(&mut self, limit: usize) -> Result<usize, WriteError> {
        for cache in self.mounted.mounts.caches() {
            cache.remove_expired(CACHE_RECORDS_SWEPT_MAX);
        }
        self.inner.remove_expired(limit)
    }
}

impl ReadTransaction for CompositeWriter {
    fn now_ms(&self) -> u64 {
        self.now_ms
    }

    fn get<'t>(
        &'t mut self,
        database: DatabaseId,
        key: &[u8],
    ) -> Result<Option<Record<'t>>, ReadError> {
        match database.mount() {
            None => self.inner.transaction().get(database, key),
            Some(_) => self.mounted.get(database, key),
        }
    }

    fn get_many(
        &mut self,
        database: DatabaseId,
        keys: &[&[u8]],
        visit: &mut dyn FnMut(usize, Option<Record<'_>>),
    ) -> Result<(), ReadError> {
        if database.mount().is_none() {
            return self.inner.transaction().get_many(database, keys, visit);
        }
        for (i, key) in keys.iter().enumerate() {
            visit(i, self.mounted.get(database, key)?);
        }
        Ok(())
    }

    fn get_all(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        visit: &mut dyn FnMut(Record<'_>),
    ) -> Result<(), ReadError> {
        match database.mount() {
            None => self.inner.transaction().get_all(database, key, visit),
            Some(_) => self.mounted.get_all(database, key, visit),
        }
    }

    fn seek<'t>(
        &'t mut self,
        database: DatabaseId,
        from: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<Option<Entry<'t>>, ReadError> {
        match database.mount() {
            None => self.inner.transaction().seek(database, from, direction),
            Some(_) => Err(ReadError::Unordered),
        }
    }

    fn scan(
        &mut self,
        database: DatabaseId,
        from: Bound<&[u8]>,
        direction: Direction,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        match database.mount() {
            None => self.inner.transaction().scan(database, from, direction, visit),
            Some(_) => Err(ReadError::Unordered),
        }
    }

    fn page(
        &mut self,
        database: DatabaseId,
        cursor: u64,
        records: usize,
        visit: &mut dyn FnMut(Entry<'_>),
    ) -> Result<Option<u64>, ReadError> {
        match database.mount() {
            None => self.inner.transaction().page(database, cursor, records, visit),
            Some(_) => self.mounted.page(database, cursor, records, visit),
        }
    }

    fn statistics(&mut self, database: DatabaseId) -> Result<DatabaseStatistics, ReadError> {
        match database.mount() {
            None => self.inner.transaction().statistics(database),
            Some(_) => self.mounted.statistics(database),
        }
    }
}

impl WriteTransaction for CompositeWriter {
    fn number(&self) -> CommitNumber {
        self.number
    }

    fn put(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        record: NewRecord<'_>,
    ) -> Result<(), WriteError> {
        if database.mount().is_none() {
            return self.inner.transaction().put(database, key, record);
        }
        match self.mounted.mounts.get(database) {
            Some(Kind::Cache(cache)) => Ok(cache.set(key, record).map(drop)?),
            Some(Kind::Cdb(_)) => Err(WriteError::ReadOnly),
            None => Err(unknown().into()),
        }
    }

    fn delete(&mut self, database: DatabaseId, key: &[u8]) -> Result<bool, WriteError> {
        if database.mount().is_none() {
            return self.inner.transaction().delete(database, key);
        }
        match self.mounted.mounts.get(database) {
            Some(Kind::Cache(cache)) => Ok(cache.delete(key)?),
            Some(Kind::Cdb(_)) => Err(WriteError::ReadOnly),
            None => Err(unknown().into()),
        }
    }

    fn clear(&mut self, database: DatabaseId) -> Result<(), WriteError> {
        if database.mount().is_none() {
            return self.inner.transaction().clear(database);
        }
        match self.mounted.mounts.get(database) {
            Some(Kind::Cache(cache)) => cache.flush_all(0),
            Some(Kind::Cdb(_)) => return Err(WriteError::ReadOnly),
            None => return Err(unknown().into()),
        }
        Ok(())
    }
}
