//! Snapshots: views that are kept and renewed.

use std::{
    ops::{Bound, ControlFlow},
    sync::Arc,
};

use crate::{
    DatabaseId, DatabaseStatistics, Direction, Entry, ReadError, ReadTransaction, Record, Snapshot,
    limits, record,
};

use super::{
    base::BaseView,
    catalog::TreeMap,
    shared::{Present, Shared, lock},
    view::{self, View},
};

pub(super) struct TreeSnapshot {
    /// Before `shared`. `None` while no view is held.
    view: Option<View>,
    /// The handle of the base, while no view is held.
    spare: Option<BaseView>,
    shared: Arc<Shared>,
    /// The version of the tables that the view has.
    tables_version: u64,
    now_ms: u64,
    trees: TreeMap,
    /// The commit that `trees` was read at.
    trees_read_at: Option<u64>,
}

impl TreeSnapshot {
    pub(super) fn new(shared: Arc<Shared>) -> Result<Self, ReadError> {
        let mut snapshot = Self {
            view: None,
            spare: None,
            shared,
            tables_version: 0,
            now_ms: 0,
            trees: TreeMap::default(),
            trees_read_at: None,
        };
        snapshot.hold()?;
        Ok(snapshot)
    }

    /// The view, which is taken now if none is held.
    #[inline]
    fn hold(&mut self) -> Result<&View, ReadError> {
        if self.view.is_none() {
            self.take_view()?;
        }
        Ok(self.view.as_ref().expect("it was just taken"))
    }

    fn take_view(&mut self) -> Result<(), ReadError> {
        self.now_ms = self.shared.clock.now_ms();
        let mut base = match self.spare.take() {
            Some(base) => base,
            None => BaseView::new(Arc::clone(&self.shared.base)),
        };
        let Present { tables, tables_version, sequence } = self.shared.renew(&mut base)?;
        self.tables_version = tables_version;
        self.view = Some(View::new(tables, base, sequence));
        self.read_trees()
    }

    fn read_trees(&mut self) -> Result<(), ReadError> {
        let Some(view) = &self.view else { return Ok(()) };
        let changed = self.shared.catalog_changed();
        if self.trees_read_at.is_none_or(|read_at| read_at < changed) {
            self.trees_read_at = None;
            self.trees = self.shared.trees(view)?;
            self.trees_read_at = Some(view.sequence());
        }
        Ok(())
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
        view::check_key(key)?;
        self.hold()?;
        let Some(tree) = self.trees.get(database) else { return Ok(None) };
        let (now_ms, view) = (self.now_ms, self.hold()?);
        let Some(stored) = view.find(tree, key)? else { return Ok(None) };
        Ok(Some(record::decode(stored)?).filter(|record| record.is_live(now_ms)))
    }

    fn seek<'t>(
        &'t mut self,
        database: DatabaseId,
        from: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<Option<Entry<'t>>, ReadError> {
        self.hold()?;
        let Some(tree) = self.trees.get(database) else { return Ok(None) };
        let (now_ms, view) = (self.now_ms, self.hold()?);
        seek_live(view, tree, from, direction, now_ms)
    }

    fn scan(
        &mut self,
        database: DatabaseId,
        from: Bound<&[u8]>,
        direction: Direction,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        self.hold()?;
        let Some(tree) = self.trees.get(database) else { return Ok(()) };
        let (now_ms, view) = (self.now_ms, self.hold()?);
        scan_live(view, tree, from, direction, now_ms, visit)
    }

    fn statistics(&mut self, database: DatabaseId) -> Result<DatabaseStatistics, ReadError> {
        // The sums are of the last commit, so the tree and the base must be those of now.
        loop {
            let changed = self.shared.catalog_changed();
            let view = self.shared.view(self.shared.published())?;
            let Some(tree) = self.shared.trees(&view)?.get(database) else {
                return Ok(DatabaseStatistics::default());
            };
            let sum = lock(&self.shared.accounts).total(tree, &view.base)?;
            if let Some(sum) = sum
                && changed == self.shared.catalog_changed()
            {
                return Ok(sum.into());
            }
            std::thread::yield_now();
        }
    }
}

/// The nearest entry that has not expired.
pub(super) fn seek_live<'v>(
    view: &'v View,
    tree: u32,
    from: Bound<&[u8]>,
    direction: Direction,
    now_ms: u64,
) -> Result<Option<Entry<'v>>, ReadError> {
    check_bound(from)?;
    let mut found = None;
    view.scan(tree, from, direction, |(key, stored)| {
        let record = record::decode(stored)?;
        if !record.is_live(now_ms) {
            return Ok(ControlFlow::Continue(()));
        }
        found = Some(Entry { key, record });
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// Shows `visit` the entries that have not expired, until it breaks off.
pub(super) fn scan_live(
    view: &View,
    tree: u32,
    from: Bound<&[u8]>,
    direction: Direction,
    now_ms: u64,
    visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
) -> Result<(), ReadError> {
    check_bound(from)?;
    view.scan(tree, from, direction, |(key, stored)| {
        let record = record::decode(stored)?;
        Ok(match record.is_live(now_ms) {
            true => visit(Entry { key, record }),
            false => ControlFlow::Continue(()),
        })
    })
}

fn check_bound(bound: Bound<&[u8]>) -> Result<(), ReadError> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) if key.len() > limits::KEY_LEN_MAX => {
            Err(ReadError::KeyLength { len: key.len(), max: limits::KEY_LEN_MAX })
        }
        _ => Ok(()),
    }
}

impl Snapshot for TreeSnapshot {
    fn renew(&mut self) -> Result<(), ReadError> {
        // Between two checkpoints there is nothing new but the last commit.
        if let Some(view) = &mut self.view
            && view.base.is_held()
            && let Some(sequence) = self.shared.published_in(self.tables_version)
        {
            view.move_to(sequence);
            self.now_ms = self.shared.clock.now_ms();
            return self.read_trees();
        }
        self.release();
        self.take_view()
    }

    fn release(&mut self) {
        if let Some(view) = self.view.take() {
            let mut base = view.into_base();
            base.release();
            self.spare = Some(base);
        }
    }
}
