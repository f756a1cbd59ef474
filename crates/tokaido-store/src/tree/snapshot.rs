//! Snapshots: views that are kept and renewed.

use std::{
    ops::{Bound, ControlFlow},
    sync::Arc,
};

use crate::{
    DatabaseId, DatabaseStatistics, Direction, Entry, ReadError, ReadTransaction, Record, Snapshot,
};

use super::{
    base::BaseView,
    catalog::{EXPIRY_TREE, TreeMap},
    expiring, live,
    shared::Shared,
    statistics::Counting,
    view::{self, View},
    visible::Present,
};

pub(super) struct TreeSnapshot {
    /// Declared before `shared`. `None` while no view is held.
    view: Option<View>,
    /// The handle of the base, while no view is held.
    spare: Option<BaseView>,
    shared: Arc<Shared>,
    /// The version of the view's tables.
    tables_version: u64,
    now_ms: u64,
    /// Whether [`renew`](Snapshot::renew) has set the time, but the view is still to be taken.
    is_renewed: bool,
    trees: Arc<TreeMap>,
    /// The commit that last changed `trees`.
    trees_changed: Option<u64>,
}

impl TreeSnapshot {
    pub(super) fn new(shared: Arc<Shared>) -> Result<Self, ReadError> {
        let mut snapshot = Self {
            view: None,
            spare: None,
            shared,
            tables_version: 0,
            now_ms: 0,
            is_renewed: false,
            trees: Arc::default(),
            trees_changed: None,
        };
        snapshot.take_view()?;
        Ok(snapshot)
    }

    /// The view, its time, and the tree of a database, if it has one. Takes a view now if none is
    /// held.
    #[inline]
    fn hold(&mut self, database: DatabaseId) -> Result<Option<(&View, u64, u32)>, ReadError> {
        if self.view.is_none() {
            self.take_view()?;
        }
        let view = self.view.as_ref().expect("it was just taken");
        Ok(self.trees.get(database).map(|tree| (view, self.now_ms, tree)))
    }

    /// The statistics of a database as of the last commit.
    fn total(
        &self,
        database: DatabaseId,
        counting: Counting,
    ) -> Result<DatabaseStatistics, ReadError> {
        // The tree must be that of the same commit.
        loop {
            let (changed, trees) = self.shared.visible.trees();
            let Some(tree) = trees.get(database) else {
                return Ok(DatabaseStatistics::default());
            };
            let sum = self.shared.visible.total(tree, counting)?;
            if changed == self.shared.visible.catalog_changed() {
                return Ok(sum);
            }
        }
    }

    fn take_view(&mut self) -> Result<(), ReadError> {
        if !std::mem::take(&mut self.is_renewed) {
            self.now_ms = self.shared.clock.now_ms();
        }
        let mut base = match self.spare.take() {
            Some(base) => base,
            None => self.shared.visible.base_view()?,
        };
        loop {
            let present = self.shared.visible.renew(&mut base)?;
            if self.take_trees(present.sequence) {
                let Present { tables, tables_version, sequence } = present;
                self.tables_version = tables_version;
                self.view = Some(View::new(tables, base, sequence));
                return Ok(());
            }
        }
    }

    /// Takes the trees as of the last commit; returns whether they are also those of `sequence`. If
    /// not, a later commit is being published, and will be in a moment.
    fn take_trees(&mut self, sequence: u64) -> bool {
        if self.trees_changed != Some(self.shared.visible.catalog_changed()) {
            let (changed, trees) = self.shared.visible.trees();
            self.trees_changed = Some(changed);
            self.trees = trees;
        }
        let are_of = self.trees_changed.is_some_and(|changed| changed <= sequence);
        if !are_of {
            std::thread::yield_now();
        }
        are_of
    }
}

impl ReadTransaction for TreeSnapshot {
    fn now_ms(&self) -> u64 {
        self.now_ms
    }

    fn get<'t>(
        &'t mut self,
        database: DatabaseId,
        key: &[u8],
    ) -> Result<Option<Record<'t>>, ReadError> {
        view::check_key(database, key)?;
        let Some((view, now_ms, tree)) = self.hold(database)? else { return Ok(None) };
        live::record(view.find(tree, key)?, now_ms)
    }

    fn seek<'t>(
        &'t mut self,
        database: DatabaseId,
        from: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<Option<Entry<'t>>, ReadError> {
        live::check_bound(database, from)?;
        let Some((view, now_ms, tree)) = self.hold(database)? else { return Ok(None) };
        live::seek(view, tree, from, direction, now_ms)
    }

    fn scan(
        &mut self,
        database: DatabaseId,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        live::check_bound(database, from)?;
        let Some((view, now_ms, tree)) = self.hold(database)? else { return Ok(()) };
        live::scan(view, tree, from, to, direction, now_ms, visit)
    }

    fn statistics(&mut self, database: DatabaseId) -> Result<DatabaseStatistics, ReadError> {
        self.total(database, Counting::Estimate)
    }

    fn exact_statistics(&mut self, database: DatabaseId) -> Result<DatabaseStatistics, ReadError> {
        self.total(database, Counting::Exact)
    }

    fn request_upkeep(&mut self, database: DatabaseId, key: &[u8]) {
        self.shared.upkeep_requests.add(database, key);
    }

    fn expiring(&mut self, database: DatabaseId) -> Result<u64, ReadError> {
        let entries = self.shared.visible.total(EXPIRY_TREE, Counting::Estimate)?.records;
        let Some((view, now_ms, tree)) = self.hold(database)? else { return Ok(0) };
        expiring::count(view, (database, tree), now_ms, entries)
    }
}

impl Snapshot for TreeSnapshot {
    fn renew(&mut self) -> Result<(), ReadError> {
        let Some(view) = &mut self.view else {
            self.now_ms = self.shared.clock.now_ms();
            self.is_renewed = true;
            return Ok(());
        };
        // Between two checkpoints, only the last commit is new.
        if let Some(sequence) = self.shared.visible.published_in(self.tables_version) {
            view.move_to(sequence);
            if self.take_trees(sequence) {
                self.now_ms = self.shared.clock.now_ms();
                return Ok(());
            }
        }
        self.release();
        self.take_view()
    }

    fn release(&mut self) {
        self.is_renewed = false;
        if let Some(view) = self.view.take() {
            self.spare = Some(view.release());
        }
    }
}
