//! The durable engine.

use std::{path::Path, sync::Arc};

use crate::{
    Clock, DatabaseError, DatabaseId, OpenError, ReadError, Snapshot, Store, SystemClock,
    WriteError, Writer,
};

/// How to open a store.
#[derive(Clone)]
pub struct Options {
    /// The clock that expiry goes by.
    pub clock: Arc<dyn Clock>,
    /// Most bytes that the file may grow to. Address space, not memory or disk.
    pub size_max: usize,
    /// Most snapshots at one time.
    pub snapshots_max: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { clock: Arc::new(SystemClock), size_max: 1 << 40, snapshots_max: 1024 }
    }
}

/// The durable engine.
pub struct TreeStore {}

/// Opens the store in `directory`, and makes both if they are not there.
///
/// # Errors
/// See [`OpenError`].
pub fn open(_directory: &Path, _options: Options) -> Result<TreeStore, OpenError> {
    unimplemented!()
}

impl Store for TreeStore {
    fn database(&self, _name: &str) -> Result<DatabaseId, DatabaseError> {
        unimplemented!()
    }
    fn find_database(&self, _name: &str) -> Option<DatabaseId> {
        unimplemented!()
    }
    fn databases(&self) -> Vec<(DatabaseId, String)> {
        unimplemented!()
    }
    fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError> {
        unimplemented!()
    }
    fn writer(&self) -> Result<Box<dyn Writer>, WriteError> {
        unimplemented!()
    }
}
