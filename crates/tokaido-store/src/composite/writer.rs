//! The inner store's writer together with what is mounted.

use crate::{
    CommitError, CommitNumber, DatabaseId, NewRecord, ReadTransaction, WriteError,
    WriteTransaction, Writer,
};

use super::{
    mounts::Kind,
    read::{Composite, Inner},
    view::{MountView, unknown},
};

/// The inner writer and, while one is open, what its transaction has told.
pub(super) struct InnerWriter {
    writer: Box<dyn Writer>,
    now_ms: u64,
    number: CommitNumber,
}

pub(super) type CompositeWriter = Composite<InnerWriter>;

impl Inner for InnerWriter {
    fn now_ms(&self) -> u64 {
        self.now_ms
    }

    fn read(&mut self) -> &mut dyn ReadTransaction {
        self.writer.transaction()
    }
}

impl CompositeWriter {
    pub(super) fn new(writer: Box<dyn Writer>, mounted: MountView) -> Self {
        Self { inner: InnerWriter { writer, now_ms: 0, number: 0 }, mounted }
    }
}

impl Writer for CompositeWriter {
    fn begin(&mut self) -> Result<&mut dyn WriteTransaction, WriteError> {
        let transaction = self.inner.writer.begin()?;
        (self.inner.now_ms, self.inner.number) = (transaction.now_ms(), transaction.number());
        self.mounted.hold();
        Ok(self)
    }

    fn transaction(&mut self) -> &mut dyn WriteTransaction {
        // Panics without one, as it is to.
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

    /// Looks after the caches, too. What goes there needs no flush, and is not counted.
    fn remove_expired(&mut self, limit: usize) -> Result<usize, WriteError> {
        self.mounted.mounts.sweep();
        self.inner.writer.remove_expired(limit)
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
        if database.mount().is_none() {
            return self.inner.writer.transaction().put(database, key, record);
        }
        match self.mounted.mounts.get(database) {
            Some(Kind::Cache(cache)) => Ok(cache.set(key, record).map(drop)?),
            Some(Kind::Cdb(_)) => Err(WriteError::ReadOnly),
            None => Err(unknown().into()),
        }
    }

    fn delete(&mut self, database: DatabaseId, key: &[u8]) -> Result<bool, WriteError> {
        if database.mount().is_none() {
            return self.inner.writer.transaction().delete(database, key);
        }
        match self.mounted.mounts.get(database) {
            Some(Kind::Cache(cache)) => Ok(cache.delete(key)?),
            Some(Kind::Cdb(_)) => Err(WriteError::ReadOnly),
            None => Err(unknown().into()),
        }
    }

    fn clear(&mut self, database: DatabaseId) -> Result<(), WriteError> {
        if database.mount().is_none() {
            return self.inner.writer.transaction().clear(database);
        }
        match self.mounted.mounts.get(database) {
            Some(Kind::Cache(cache)) => cache.flush_all(0),
            Some(Kind::Cdb(_)) => return Err(WriteError::ReadOnly),
            None => return Err(unknown().into()),
        }
        Ok(())
    }
}
