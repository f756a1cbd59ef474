//! What the suites need from an engine, so that each runs over every engine.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tempfile::TempDir;
use tokaido_store::{
    Clock, Store,
    tree::{self, TreeStore},
};

#[path = "../common/directory.rs"]
mod directory;

pub(crate) use directory::fast_directory;

/// A clock that tests control.
pub(crate) struct TestClock(AtomicU64);

impl TestClock {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(1_700_000_000_000)))
    }

    pub(crate) fn pass(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }

    pub(crate) fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Clock for TestClock {
    fn now_ms(&self) -> u64 {
        self.now()
    }
}

/// An engine under test.
pub(crate) trait Engine {
    fn store(&self) -> Arc<dyn Store>;
    /// Closes the store and opens it again. No snapshot or writer is left.
    fn reopen(&mut self);
}

pub(crate) struct TreeEngine {
    directory: TempDir,
    options: tree::Options,
    store: Option<Arc<TreeStore>>,
}

impl TreeEngine {
    pub(crate) fn new(clock: Arc<TestClock>) -> Self {
        Self::with(tree::Options { clock, size_max: 1 << 30, ..tree::Options::default() })
    }

    /// With as many checkpoints as possible, one for every group, and in as many pieces.
    pub(crate) fn checkpointing(clock: Arc<TestClock>) -> Self {
        let options = tree::Options { clock, size_max: 1 << 30, ..tree::Options::default() };
        Self::with(tree::Options { memtable_bytes: 0, checkpoint_pages: 1, ..options })
    }

    /// Like [`checkpointing`](Self::checkpointing), but each checkpoint makes a run: some are joined, and some merged. The base
    /// is taken to be larger than memory.
    pub(crate) fn with_runs(clock: Arc<TestClock>) -> Self {
        let options = tree::Options { clock, size_max: 1 << 30, ..tree::Options::default() };
        let options = tree::Options { memtable_bytes: 0, checkpoint_pages: 1, ..options };
        let options = tree::Options { memory_bytes: Some(1), ..options };
        Self::with(tree::Options { runs_from_bytes: 0, runs_bytes_min: 30_000, ..options })
    }

    /// Every shutdown leaves the log empty.
    pub(crate) fn emptying_log(clock: Arc<TestClock>) -> Self {
        let options = tree::Options { clock, size_max: 1 << 30, ..tree::Options::default() };
        Self::with(tree::Options { log_left_bytes_max: 0, ..options })
    }

    /// The store itself, which has no other handle, and its directory.
    pub(crate) fn into_parts(self) -> (TreeStore, TempDir) {
        (self.store.and_then(Arc::into_inner).expect("no handle is left"), self.directory)
    }

    fn with(options: tree::Options) -> Self {
        let directory = fast_directory();
        let store = Some(Arc::new(tree::open(directory.path(), options.clone()).unwrap()));
        Self { directory, options, store }
    }
}

impl Engine for TreeEngine {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone().unwrap()
    }

    fn reopen(&mut self) {
        self.store = None;
        let report = tree::check(self.directory.path()).unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
        self.store =
            Some(Arc::new(tree::open(self.directory.path(), self.options.clone()).unwrap()));
    }
}
