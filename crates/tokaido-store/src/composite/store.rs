//! A store with databases mounted beside its own.

use std::sync::Arc;

use crate::{
    DatabaseError, DatabaseId, Engine, ReadError, Snapshot, Store, Usage, WriteError, Writer,
};

use super::{
    Mount, MountError, Options, mounts::Mounts, snapshot::CompositeSnapshot, view::MountView,
    writer::CompositeWriter,
};

/// A store with caches and constant databases mounted beside its own databases. All have one space
/// of names, and a transaction reaches all of them; what each promises is its [`Engine`]'s.
pub struct CompositeStore {
    inner: Box<dyn Store>,
    mounts: Arc<Mounts>,
}

impl CompositeStore {
    /// Mounts databases beside those of `inner`.
    ///
    /// # Errors
    /// See [`MountError`].
    pub fn new(inner: Box<dyn Store>, mounts: Vec<Mount>) -> Result<Self, MountError> {
        Self::with(inner, mounts, Options::default())
    }

    /// As [`new`](Self::new), with other options than the default ones.
    ///
    /// # Errors
    /// See [`MountError`].
    pub fn with(
        inner: Box<dyn Store>,
        mounts: Vec<Mount>,
        options: Options,
    ) -> Result<Self, MountError> {
        let mounts = Arc::new(Mounts::new(mounts, options)?);
        for (_, name) in mounts.names() {
            let Some(hidden) = inner.find_database(name) else { continue };
            let records = inner.snapshot()?.statistics(hidden)?.records;
            if records > 0 {
                return Err(MountError::Taken { name: name.to_owned(), records });
            }
        }
        Ok(Self { inner, mounts })
    }

    fn view(&self) -> MountView {
        MountView::new(Arc::clone(&self.mounts))
    }
}

impl Store for CompositeStore {
    fn database(&self, name: &str) -> Result<DatabaseId, DatabaseError> {
        match self.mounts.find(name) {
            Some(mounted) => Ok(mounted),
            None => self.inner.database(name),
        }
    }

    fn find_database(&self, name: &str) -> Option<DatabaseId> {
        self.mounts.find(name).or_else(|| self.inner.find_database(name))
    }

    fn databases(&self) -> Vec<(DatabaseId, String)> {
        let mut databases = self.inner.databases();
        databases.retain(|(_, name)| self.mounts.find(name).is_none());
        databases.extend(self.mounts.names().map(|(id, name)| (id, name.to_owned())));
        databases
    }

    fn engine(&self, database: DatabaseId) -> Engine<'_> {
        self.mounts.engine(database)
    }

    fn usage(&self) -> Usage {
        self.inner.usage()
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError> {
        let inner = self.inner.snapshot()?;
        if self.mounts.is_empty() {
            return Ok(inner);
        }
        Ok(Box::new(CompositeSnapshot::new(inner, self.view())))
    }

    fn writer(&self) -> Result<Box<dyn Writer>, WriteError> {
        let inner = self.inner.writer()?;
        if self.mounts.is_empty() {
            return Ok(inner);
        }
        Ok(Box::new(CompositeWriter::new(inner, self.view())))
    }
}
