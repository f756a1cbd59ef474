//! What snapshots see: the base, the runs and memtables before it, and how far transactions are published.

use std::{
    sync::{
        Arc, Mutex, PoisonError, RwLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::{DatabaseStatistics, ReadError, mutex::lock};

use super::{
    base::{Base, BaseContents, BaseView},
    catalog::TreeMap,
    memtable::Memtable,
    runs::Runs,
    statistics::{Changes, Counting, Statistics},
    tables::Tables,
    totals::Totals,
    view::View,
};

/// How long commits may go first before counting goes on. A shorter time would not be any shorter in practice.
const COUNTING_PAUSE: Duration = Duration::from_micros(1);

/// A consistent state at one moment.
pub(super) struct Present {
    pub(super) tables: Arc<Tables>,
    pub(super) tables_version: u64,
    /// The last transaction that is published.
    pub(super) sequence: u64,
}

pub(super) struct Visible {
    base: Arc<Base>,
    tables: RwLock<Arc<Tables>>,
    /// Grows whenever `tables` changes.
    tables_version: AtomicU64,
    /// The version of the writer's view; the largest number if there is no writer.
    writer_version: AtomicU64,
    held: Mutex<Vec<Weak<Memtable>>>,
    statistics: Mutex<Statistics>,
    /// The last transaction that snapshots see.
    published: AtomicU64,
    /// The last transaction that changed the catalog.
    catalog_changed: AtomicU64,
    /// The trees of the databases as of `catalog_changed`.
    trees: Mutex<Arc<TreeMap>>,
    /// The last transaction that opening has found.
    found: u64,
}

impl Visible {
    /// Takes what opening has found: everything up to the transaction `found`.
    pub(super) fn new(
        base: Arc<Base>,
        tables: Tables,
        statistics: Statistics,
        found: u64,
        trees: TreeMap,
    ) -> Self {
        Self {
            base,
            held: Mutex::new(vec![Arc::downgrade(&tables.active)]),
            tables: RwLock::new(Arc::new(tables)),
            tables_version: AtomicU64::new(0),
            writer_version: AtomicU64::new(u64::MAX),
            statistics: Mutex::new(statistics),
            published: AtomicU64::new(found),
            catalog_changed: AtomicU64::new(found),
            found,
            trees: Mutex::new(Arc::new(trees)),
        }
    }

    pub(super) fn tables(&self) -> Arc<Tables> {
        Arc::clone(&self.tables.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn tables_version(&self) -> u64 {
        self.tables_version.load(Ordering::SeqCst)
    }

    /// An empty memtable takes over from the frozen one.
    pub(super) fn freeze(&self, active: Arc<Memtable>, frozen: Arc<Memtable>) {
        lock(&self.statistics).freeze(Arc::clone(&active));
        let mut held = lock(&self.held);
        held.retain(|table| table.strong_count() > 0);
        held.push(Arc::downgrade(&active));
        self.set_tables(|tables| Tables {
            active,
            frozen: Some(frozen),
            runs: Arc::clone(&tables.runs),
        });
    }

    /// Called when a checkpoint is about to change the base.
    pub(super) fn hold_base(&self) -> Result<(), ReadError> {
        lock(&self.statistics).hold_base(|| self.base_view())
    }

    /// The frozen memtable is now in the base or in one of these runs.
    pub(super) fn checkpointed(&self, contents: BaseContents, runs: Arc<Runs>) {
        let mut statistics = lock(&self.statistics);
        statistics.checkpointed(contents, Arc::clone(&runs));
        self.set_tables(|tables| Tables { active: Arc::clone(&tables.active), frozen: None, runs });
    }

    /// Some runs are now in the base, or several were joined into one, or counted; `runs` are the current ones.
    pub(super) fn merged(&self, runs: Arc<Runs>, totals: Totals) {
        let mut statistics = lock(&self.statistics);
        statistics.merged(Arc::clone(&runs), totals);
        self.set_tables(|tables| {
            let frozen = tables.frozen.as_ref().map(Arc::clone);
            Tables { active: Arc::clone(&tables.active), frozen, runs }
        });
    }

    /// The base has changed, but nothing that readers see. Holders of a view take a new one when
    /// they can: pages that an old view sees are not reused.
    pub(super) fn base_changed(&self) {
        self.tables_version.fetch_add(1, Ordering::SeqCst);
    }

    /// Sets the version of the writer's view from now on; `None` if it has none.
    pub(super) fn set_writer_version(&self, version: Option<u64>) {
        self.writer_version.store(version.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Whether the writer has seen all changes of the tables but the last one.
    pub(super) fn is_followed(&self) -> bool {
        self.writer_version.load(Ordering::Relaxed).saturating_add(1) >= self.tables_version()
    }

    /// What base and runs hold, by tree.
    pub(super) fn on_disk(&self) -> Totals {
        lock(&self.statistics).on_disk().clone()
    }

    /// Whether some of that is an estimate.
    pub(super) fn has_estimates(&self) -> bool {
        lock(&self.statistics).on_disk().has_estimates()
    }

    /// Several threads may change parts of the tables at a time.
    fn set_tables(&self, change: impl FnOnce(&Tables) -> Tables) {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        let new = Arc::new(change(&tables));
        *tables = new;
        self.tables_version.fetch_add(1, Ordering::SeqCst);
    }

    /// Bytes of all memtables that are still referenced.
    pub(super) fn held_bytes(&self) -> u64 {
        let held = lock(&self.held);
        held.iter().filter_map(Weak::upgrade).map(|table| table.bytes() as u64).sum()
    }

    pub(super) fn published(&self) -> u64 {
        self.published.load(Ordering::SeqCst)
    }

    /// Lets snapshots see the transactions up to `sequence`, with these changes, and the trees if
    /// they have changed.
    pub(super) fn publish(
        &self,
        sequence: u64,
        changes: &mut Changes,
        trees: Option<Arc<TreeMap>>,
    ) {
        lock(&self.statistics).publish(changes);
        if let Some(trees) = trees {
            let mut current = lock(&self.trees);
            *current = trees;
            self.catalog_changed.store(sequence, Ordering::SeqCst);
        }
        self.published.store(sequence, Ordering::SeqCst);
    }

    /// The sum of a tree as of the last commit. Where the base does not fit into memory, it is an estimate even if an exact one
    /// is asked for.
    pub(super) fn total(
        &self,
        tree: u32,
        counting: Counting,
    ) -> Result<DatabaseStatistics, ReadError> {
        let counting = if self.base.is_large() { Counting::Estimate } else { counting };
        loop {
            let total = lock(&self.statistics).total(tree, counting, || self.base_view())?;
            if let Some(total) = total {
                return Ok(total);
            }
            // The lock goes to a commit before the rest is counted, or to a checkpoint that has committed to the base, and
            // is about to report it.
            std::thread::sleep(COUNTING_PAUSE);
        }
    }

    /// Whether anything has been published since the store was opened.
    pub(super) fn is_as_found(&self) -> bool {
        self.published() == self.found
    }

    /// The trees of the databases, and the transaction that last changed them. If that is not
    /// published yet, it will be at once.
    pub(super) fn trees(&self) -> (u64, Arc<TreeMap>) {
        let trees = lock(&self.trees);
        (self.catalog_changed(), Arc::clone(&trees))
    }

    pub(super) fn catalog_changed(&self) -> u64 {
        self.catalog_changed.load(Ordering::SeqCst)
    }

    /// A view of the base, which [`renew`](Self::renew) brings up to date.
    pub(super) fn base_view(&self) -> Result<BaseView, ReadError> {
        BaseView::new(Arc::clone(&self.base))
    }

    /// A new view of the tables and the base as they are now, which sees versions up to
    /// `sequence`.
    pub(super) fn view(&self, sequence: u64) -> Result<View, ReadError> {
        let mut base = self.base_view()?;
        let Present { tables, .. } = self.renew(&mut base)?;
        Ok(View::new(tables, base, sequence))
    }

    /// The last published transaction, if the tables are still those of `tables_version`, and so
    /// the base is, too.
    pub(super) fn published_in(&self, tables_version: u64) -> Option<u64> {
        // In this order: a new table is in place before anything in it is published.
        let sequence = self.published();
        (self.tables_version() == tables_version).then_some(sequence)
    }

    /// Moves a view of the base to the newest checkpoint, and returns the state that belongs to it.
    ///
    /// The tables, the sequence and the base are read one after the other, and belong together if
    /// the tables have not changed meanwhile: whatever is published goes into the newest table,
    /// and a checkpoint changes the tables after the base.
    pub(super) fn renew(&self, base: &mut BaseView) -> Result<Present, ReadError> {
        loop {
            let tables_version = self.tables_version();
            let tables = self.tables();
            let sequence = self.published();
            base.renew()?;
            if tables_version == self.tables_version() {
                return Ok(Present { tables, tables_version, sequence });
            }
        }
    }
}
