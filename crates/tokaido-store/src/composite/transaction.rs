//! Snapshots and writers over the inner store and what is mounted. Each call on a database asks
//! [`Composite::engine`] for the engine behind it; nothing else does.

use std::ops::{Bound, ControlFlow};

use crate::{
    Amendment, CollectionId, CommitError, CommitNumber, DatabaseId, DatabaseStatistics, Direction,
    Entry, NewRecord, ReadError, ReadTransaction, Record, Snapshot, WriteError, WriteTransaction,
    Writer, cache::Cursor, transaction::rename_by_copy,
};

use super::view::{Engine, MountView};

/// A snapshot or writer of the inner store, with a view of what is mounted.
pub(super) struct Composite<I> {
    inner: I,
    mounted: MountView,
    /// The time of the current or the last transaction.
    now_ms: u64,
}

pub(super) type CompositeSnapshot = Composite<Box<dyn Snapshot>>;
pub(super) type CompositeWriter = Composite<InnerWriter>;

pub(super) trait Inner {
    type Transaction<'t>: ReadTransaction + ?Sized
    where
        Self: 't;

    fn transaction(&mut self) -> &mut Self::Transaction<'_>;
}

impl Inner for Box<dyn Snapshot> {
    type Transaction<'t> = dyn Snapshot;

    fn transaction(&mut self) -> &mut Self::Transaction<'_> {
        &mut **self
    }
}

/// The inner writer and, while one is open, the number of its transaction.
pub(super) struct InnerWriter {
    writer: Box<dyn Writer>,
    number: CommitNumber,
}

impl Inner for InnerWriter {
    type Transaction<'t> = dyn WriteTransaction + 't;

    fn transaction(&mut self) -> &mut Self::Transaction<'_> {
        self.writer.transaction()
    }
}

impl<I: Inner> Composite<I> {
    #[inline]
    fn engine(
        &mut self,
        database: DatabaseId,
    ) -> Result<Engine<'_, I::Transaction<'_>>, ReadError> {
        match database.mount() {
            None => Ok(Engine::Inner(self.inner.transaction())),
            Some(_) => self.mounted.engine(database),
        }
    }
}

impl<I: Inner> ReadTransaction for Composite<I> {
    fn now_ms(&self) -> u64 {
        self.now_ms
    }

    fn get<'t>(
        &'t mut self,
        database: DatabaseId,
        key: &[u8],
    ) -> Result<Option<Record<'t>>, ReadError> {
        match self.engine(database)? {
            Engine::Inner(inner) => inner.get(database, key),
            Engine::Cache(cache, value, _) => {
                Ok(cache.get(key, value)?.map(|metadata| metadata.with(value)))
            }
            Engine::Cdb(file) => file.get(key),
        }
    }

    fn get_many(
        &mut self,
        database: DatabaseId,
        keys: &[&[u8]],
        visit: &mut dyn FnMut(usize, Option<Record<'_>>),
    ) -> Result<(), ReadError> {
        if let Engine::Inner(inner) = self.engine(database)? {
            return inner.get_many(database, keys, visit);
        }
        for (i, key) in keys.iter().enumerate() {
            visit(i, self.get(database, key)?);
        }
        Ok(())
    }

    fn get_all(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        visit: &mut dyn FnMut(Record<'_>),
    ) -> Result<(), ReadError> {
        match self.engine(database)? {
            Engine::Inner(inner) => inner.get_all(database, key, visit),
            Engine::Cdb(file) => file.get_all(key, visit),
            Engine::Cache(..) => {
                self.get(database, key)?.into_iter().for_each(visit);
                Ok(())
            }
        }
    }

    fn seek<'t>(
        &'t mut self,
        database: DatabaseId,
        from: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<Option<Entry<'t>>, ReadError> {
        match self.engine(database)? {
            Engine::Inner(inner) => inner.seek(database, from, direction),
            _ => Err(ReadError::Unordered),
        }
    }

    fn scan(
        &mut self,
        database: DatabaseId,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        match self.engine(database)? {
            Engine::Inner(inner) => inner.scan(database, from, to, direction, visit),
            _ => Err(ReadError::Unordered),
        }
    }

    fn page(
        &mut self,
        database: DatabaseId,
        cursor: u64,
        records: usize,
        visit: &mut dyn FnMut(Entry<'_>),
    ) -> Result<Option<u64>, ReadError> {
        match self.engine(database)? {
            Engine::Inner(inner) => inner.page(database, cursor, records, visit),
            Engine::Cache(cache, _, page) => {
                let next = cache.scan(Cursor::from_number(cursor), records, page);
                page.entries().for_each(visit);
                Ok(next.map(Cursor::to_number))
            }
            Engine::Cdb(file) => file.page(cursor, records, visit),
        }
    }

    fn statistics(&mut self, database: DatabaseId) -> Result<DatabaseStatistics, ReadError> {
        match self.engine(database)? {
            Engine::Inner(inner) => inner.statistics(database),
            Engine::Cache(cache, ..) => Ok(cache.statistics().into()),
            Engine::Cdb(file) => Ok(file.statistics),
        }
    }

    fn exact_statistics(&mut self, database: DatabaseId) -> Result<DatabaseStatistics, ReadError> {
        match self.engine(database)? {
            Engine::Inner(inner) => inner.exact_statistics(database),
            Engine::Cache(..) | Engine::Cdb(_) => self.statistics(database),
        }
    }

    fn request_upkeep(&mut self, database: DatabaseId, key: &[u8]) {
        if let Ok(Engine::Inner(inner)) = self.engine(database) {
            inner.request_upkeep(database, key);
        }
    }

    fn expiring(&mut self, database: DatabaseId) -> Result<u64, ReadError> {
        match self.engine(database)? {
            Engine::Inner(inner) => inner.expiring(database),
            Engine::Cache(..) | Engine::Cdb(_) => Ok(0),
        }
    }
}

impl WriteTransaction for CompositeWriter {
    fn number(&self) -> CommitNumber {
        self.inner.number
    }

    fn put(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        record: NewRecord<'_>,
    ) -> Result<(), WriteError> {
        match self.engine(database) {
            Ok(Engine::Inner(inner)) => inner.put(database, key, record),
            Ok(Engine::Cache(cache, ..)) => Ok(cache.set(key, record).map(drop)?),
            Ok(Engine::Cdb(_)) => Err(WriteError::ReadOnly),
            Err(_) if database.is_elements() => Err(WriteError::BytesOnly),
            Err(error) => Err(error.into()),
        }
    }

    fn amend(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        amendment: Amendment,
    ) -> Result<Option<CommitNumber>, WriteError> {
        match self.engine(database)? {
            Engine::Inner(inner) => inner.amend(database, key, amendment),
            Engine::Cache(cache, ..) => cache.amend(key, amendment),
            Engine::Cdb(_) => Err(WriteError::ReadOnly),
        }
    }

    fn rename(&mut self, database: DatabaseId, from: &[u8], to: &[u8]) -> Result<bool, WriteError> {
        match self.engine(database)? {
            Engine::Inner(inner) => inner.rename(database, from, to),
            _ => rename_by_copy(self, database, from, to),
        }
    }

    fn new_collection(&mut self) -> Result<CollectionId, WriteError> {
        self.inner.writer.transaction().new_collection()
    }

    fn delete(&mut self, database: DatabaseId, key: &[u8]) -> Result<bool, WriteError> {
        match self.engine(database)? {
            Engine::Inner(inner) => inner.delete(database, key),
            Engine::Cache(cache, ..) => cache.delete(key),
            Engine::Cdb(_) => Err(WriteError::ReadOnly),
        }
    }

    fn delete_existing(&mut self, database: DatabaseId, key: &[u8]) -> Result<(), WriteError> {
        match self.engine(database)? {
            Engine::Inner(inner) => inner.delete_existing(database, key),
            Engine::Cache(cache, ..) => cache.delete(key).map(|_| ()),
            Engine::Cdb(_) => Err(WriteError::ReadOnly),
        }
    }

    fn clear(&mut self, database: DatabaseId) -> Result<(), WriteError> {
        match self.engine(database)? {
            Engine::Inner(inner) => inner.clear(database),
            Engine::Cache(cache, ..) => {
                cache.flush_all(0);
                Ok(())
            }
            Engine::Cdb(_) => Err(WriteError::ReadOnly),
        }
    }

    fn open_database(&mut self, name: &str, max: usize) -> Result<DatabaseId, WriteError> {
        match self.mounted.mounts.find(name) {
            Some(mounted) => Ok(mounted),
            None => self.inner.writer.transaction().open_database(name, max),
        }
    }

    fn drop_database(&mut self, database: DatabaseId) -> Result<bool, WriteError> {
        match database.mount() {
            None => self.inner.writer.transaction().drop_database(database),
            Some(_) => Err(WriteError::Mounted),
        }
    }

    fn swap_databases(&mut self, one: DatabaseId, other: DatabaseId) -> Result<(), WriteError> {
        match (one.mount(), other.mount()) {
            (None, None) => self.inner.writer.transaction().swap_databases(one, other),
            _ => Err(WriteError::Mounted),
        }
    }

    fn drop_all_databases(&mut self) -> Result<(), WriteError> {
        self.inner.writer.transaction().drop_all_databases()
    }

    /// Sweeps the caches, too. What is removed there is not counted.
    fn reclaim(&mut self, limit: usize) -> Result<usize, WriteError> {
        self.mounted.mounts.sweep();
        self.inner.writer.transaction().reclaim(limit)
    }

    fn take_upkeep_request(&mut self) -> Option<(DatabaseId, Vec<u8>)> {
        self.inner.writer.transaction().take_upkeep_request()
    }
}

impl CompositeSnapshot {
    /// `inner` already holds a view.
    pub(super) fn new(inner: Box<dyn Snapshot>, mut mounted: MountView) -> Self {
        mounted.hold();
        Self { now_ms: inner.now_ms(), inner, mounted }
    }
}

impl Snapshot for CompositeSnapshot {
    fn renew(&mut self) -> Result<(), ReadError> {
        self.inner.renew()?;
        self.now_ms = self.inner.now_ms();
        self.mounted.hold();
        Ok(())
    }

    fn release(&mut self) {
        self.inner.release();
        self.mounted.release();
    }
}

impl CompositeWriter {
    pub(super) fn new(writer: Box<dyn Writer>, mounted: MountView) -> Self {
        Self { inner: InnerWriter { writer, number: 0 }, mounted, now_ms: 0 }
    }
}

impl Writer for CompositeWriter {
    fn begin(&mut self) -> Result<&mut dyn WriteTransaction, WriteError> {
        let transaction = self.inner.writer.begin()?;
        (self.now_ms, self.inner.number) = (transaction.now_ms(), transaction.number());
        self.mounted.hold();
        Ok(self)
    }

    fn transaction(&mut self) -> &mut dyn WriteTransaction {
        // Panics without one, as it should.
        self.inner.writer.transaction();
        self
    }

    fn commit(&mut self) -> Result<CommitNumber, CommitError> {
        self.mounted.release();
        self.inner.writer.commit()
    }

    fn rollback(&mut self) -> Result<(), CommitError> {
        self.mounted.release();
        self.inner.writer.rollback()
    }

    fn flush(&mut self) -> Result<(), CommitError> {
        self.inner.writer.flush()
    }

    fn tidy(&mut self) -> Result<(), WriteError> {
        self.inner.writer.tidy()
    }

    fn may_wait(&self) -> bool {
        self.inner.writer.may_wait()
    }
}
