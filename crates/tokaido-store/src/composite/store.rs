//! A store with databases mounted beside its own.

use std::{any::Any, sync::Arc};

use crate::{
    Capabilities, DatabaseError, DatabaseId, Observer, ObserverGuard, ReadError, Snapshot, Store,
    Usage, WriteError, WriteTransaction, Writer, cache::Cache,
};

use super::{
    Mount, MountError, Options,
    mounts::{Kind, Mounts},
    transaction::{CompositeSnapshot, CompositeWriter},
    view::MountView,
};

/// A store with caches and constant databases mounted beside its own databases. They share one
/// namespace, and a transaction reaches all of them. [`Capabilities`] tell what each guarantees.
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

    /// As [`new`](Self::new), with options other than the defaults.
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

    /// The cache that is mounted under an id, for operations that only a cache has.
    #[must_use]
    pub fn cache(&self, database: DatabaseId) -> Option<&Arc<Cache>> {
        match self.mounts.get(database)? {
            Kind::Cache(cache) => Some(cache),
            Kind::Cdb(_) => None,
        }
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

    fn internal_database(&self) -> Option<DatabaseId> {
        self.inner.internal_database()
    }

    fn databases_dropped(&self) -> u64 {
        self.inner.databases_dropped()
    }

    fn databases(&self) -> Vec<(DatabaseId, String)> {
        let mut databases = self.inner.databases();
        databases.retain(|(_, name)| self.mounts.find(name).is_none());
        databases.extend(self.mounts.names().map(|(id, name)| (id, name.to_owned())));
        databases
    }

    fn capabilities(&self, database: DatabaseId) -> Capabilities {
        match self.mounts.get(database) {
            None => self.inner.capabilities(database),
            Some(Kind::Cache(_)) => Capabilities::CACHE,
            Some(Kind::Cdb(_)) => Capabilities::CDB,
        }
    }

    fn run_in_place(
        &self,
        database: DatabaseId,
        body: &mut dyn FnMut(&mut dyn WriteTransaction),
    ) -> Result<(), WriteError> {
        match self.mounts.get(database) {
            None => self.inner.run_in_place(database, body),
            Some(Kind::Cache(cache)) => cache.transact(database, |tx| {
                body(tx);
                Ok(())
            }),
            Some(Kind::Cdb(_)) => Err(WriteError::ReadOnly),
        }
    }

    fn usage(&self) -> Usage {
        self.inner.usage()
    }

    fn has_upkeep_request(&self) -> bool {
        self.inner.has_upkeep_request()
    }

    /// Observes only the inner store's databases, not caches: there, records change and are evicted
    /// without a transaction.
    fn observe(&self, observer: Arc<dyn Observer>) -> Option<ObserverGuard> {
        self.inner.observe(observer)
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

/// The cache behind a database, if `store` is a [`CompositeStore`] and has one there.
#[must_use]
pub fn cache(store: &dyn Store, database: DatabaseId) -> Option<&Arc<Cache>> {
    let store: &dyn Any = store;
    store.downcast_ref::<CompositeStore>()?.cache(database)
}
