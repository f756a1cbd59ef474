//! Reads, of the inner store and of what is mounted, for snapshots and writers alike.

use std::ops::{Bound, ControlFlow};

use crate::{DatabaseId, DatabaseStatistics, Direction, Entry, ReadError, ReadTransaction, Record};

use super::view::MountView;

/// Something of the inner store, which reads it, beside a view of what is mounted.
pub(super) struct Composite<I> {
    pub(super) inner: I,
    pub(super) mounted: MountView,
}

pub(super) trait Inner {
    fn now_ms(&self) -> u64;

    fn read(&mut self) -> &mut dyn ReadTransaction;
}

impl<I: Inner> ReadTransaction for Composite<I> {
    fn now_ms(&self) -> u64 {
        self.inner.now_ms()
    }

    fn get<'t>(
        &'t mut self,
        database: DatabaseId,
        key: &[u8],
    ) -> Result<Option<Record<'t>>, ReadError> {
        match database.mount() {
            None => self.inner.read().get(database, key),
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
            return self.inner.read().get_many(database, keys, visit);
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
            None => self.inner.read().get_all(database, key, visit),
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
            None => self.inner.read().seek(database, from, direction),
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
            None => self.inner.read().scan(database, from, direction, visit),
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
            None => self.inner.read().page(database, cursor, records, visit),
            Some(_) => self.mounted.page(database, cursor, records, visit),
        }
    }

    fn statistics(&mut self, database: DatabaseId) -> Result<DatabaseStatistics, ReadError> {
        match database.mount() {
            None => self.inner.read().statistics(database),
            Some(_) => self.mounted.statistics(database),
        }
    }
}
