//! A store on disk that can be reopened.

use std::sync::Arc;

use tempfile::TempDir;
use tokaido_store::{Store, tree};

pub(crate) struct Engine {
    directory: TempDir,
    options: tree::Options,
    store: Option<Arc<dyn Store>>,
}

impl Engine {
    pub(crate) fn new() -> Self {
        Self::with(tree::Options::default())
    }

    /// With as many checkpoints as possible: one for every group.
    pub(crate) fn checkpointing() -> Self {
        Self::with(tree::Options { memtable_bytes: 0, ..tree::Options::default() })
    }

    fn with(options: tree::Options) -> Self {
        // In memory if the system has such a directory: the file is synced at every checkpoint.
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let options = tree::Options { size_max: 1 << 30, ..options };
        let mut engine = Self { directory, options, store: None };
        engine.open();
        engine
    }

    fn open(&mut self) {
        let store = tree::open(self.directory.path(), self.options.clone()).unwrap();
        self.store = Some(Arc::new(store));
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        self.store.clone().unwrap()
    }

    /// Closes the store, checks its files and reopens it. No snapshot or writer may be left.
    pub(crate) fn reopen(&mut self) {
        self.store = None;
        let report = tree::check(self.directory.path()).unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
        self.open();
    }
}
