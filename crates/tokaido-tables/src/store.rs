//! A store in which some databases are tables.

use std::sync::Arc;

use tokaido_store::{
    Capabilities, DatabaseError, DatabaseId, Observer, ObserverGuard, ReadError, Snapshot, Store,
    Usage, WriteError, WriteTransaction, Writer,
};

use crate::{declaration::Declaration, writer::TableWriter};

/// Which databases are tables. This is fixed when the store is opened.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// Sorted.
    ids: Vec<DatabaseId>,
}

impl Tables {
    /// Whether a database is a table.
    #[must_use]
    pub fn has(&self, database: DatabaseId) -> bool {
        self.place(database).is_some()
    }

    /// The index of a table in the list.
    #[inline]
    pub(crate) fn place(&self, database: DatabaseId) -> Option<usize> {
        self.ids.binary_search(&database).ok()
    }

    pub(crate) fn ids(&self) -> &[DatabaseId] {
        &self.ids
    }
}

/// A store that maintains the indexes of its tables. It passes everything on, and a write to a
/// table also writes the entries. Without tables, it hands out the inner store's own writers.
pub struct TableStore {
    inner: Box<dyn Store>,
    tables: Arc<Tables>,
}

impl TableStore {
    /// Tables are the databases with these names, and all that already have indexes, named or not.
    /// So no write through a `TableStore` can leave an index out of date.
    ///
    /// # Errors
    /// For an invalid name, and if the store cannot be read.
    pub fn new<'n>(
        inner: Box<dyn Store>,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<Self, WriteError> {
        let named = names.into_iter().map(|name| inner.database(name));
        let mut ids: Vec<_> = named.collect::<Result<_, _>>()?;
        let mut snapshot = inner.snapshot()?;
        for (id, name) in inner.databases() {
            if Declaration::is_there(&mut *snapshot, id)? {
                // Its id is held from here on, even if it is dropped meanwhile.
                ids.push(inner.database(&name)?);
            }
        }
        drop(snapshot);
        ids.sort_unstable();
        ids.dedup();
        Ok(Self { inner, tables: Arc::new(Tables { ids }) })
    }

    /// Which databases are tables.
    #[must_use]
    pub fn tables(&self) -> Arc<Tables> {
        Arc::clone(&self.tables)
    }
}

impl Store for TableStore {
    fn database(&self, name: &str) -> Result<DatabaseId, DatabaseError> {
        self.inner.database(name)
    }

    fn find_database(&self, name: &str) -> Option<DatabaseId> {
        self.inner.find_database(name)
    }

    fn internal_database(&self) -> Option<DatabaseId> {
        self.inner.internal_database()
    }

    fn databases_dropped(&self) -> u64 {
        self.inner.databases_dropped()
    }

    fn databases(&self) -> Vec<(DatabaseId, String)> {
        self.inner.databases()
    }

    fn capabilities(&self, database: DatabaseId) -> Capabilities {
        self.inner.capabilities(database)
    }

    /// Tables are transactional, so a database that is run in place is not a table.
    fn run_in_place(
        &self,
        database: DatabaseId,
        body: &mut dyn FnMut(&mut dyn WriteTransaction),
    ) -> Result<(), WriteError> {
        self.inner.run_in_place(database, body)
    }

    fn usage(&self) -> Usage {
        self.inner.usage()
    }

    fn has_upkeep_request(&self) -> bool {
        self.inner.has_upkeep_request()
    }

    fn observe(&self, observer: Arc<dyn Observer>) -> Option<ObserverGuard> {
        self.inner.observe(observer)
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError> {
        self.inner.snapshot()
    }

    fn writer(&self) -> Result<Box<dyn Writer>, WriteError> {
        let inner = self.inner.writer()?;
        if self.tables.ids.is_empty() {
            return Ok(inner);
        }
        Ok(Box::new(TableWriter::new(inner, self.tables())))
    }
}
