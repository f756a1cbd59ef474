//! Counting records without looking each of them up.
//!
//! A put need not know whether it replaces a record of the base, and finding out would cost a
//! random read. So the sums are kept in parts: what the base and the runs hold, exactly, as of the last
//! checkpoint, which looks up what it replaces; what the memtables add, exactly; and what their nodes
//! *shadow*, which is looked up for all of them together when somebody asks.

use std::{collections::HashMap, ptr::NonNull, sync::Arc};

use crate::{DatabaseStatistics, ReadError, record};

use super::{
    base::{BaseContents, BaseView},
    disk::Disk,
    memtable::{Chain, Memtable, MemtableWriter, Node, Seen},
    runs::Runs,
};

/// Sums by tree.
#[derive(Clone, Debug, Default)]
struct Sums {
    sums: HashMap<u32, DatabaseStatistics, foldhash::fast::RandomState>,
}

impl Sums {
    fn of(base: BaseContents) -> Self {
        Self { sums: base.trees.into_iter().collect() }
    }

    #[inline]
    fn get_mut(&mut self, tree: u32) -> &mut DatabaseStatistics {
        self.sums.entry(tree).or_default()
    }

    fn get(&self, tree: u32) -> DatabaseStatistics {
        self.sums.get(&tree).copied().unwrap_or_default()
    }

    fn append(&mut self, other: &mut Self) {
        for (tree, sum) in other.sums.drain() {
            self.get_mut(tree).add(sum);
        }
    }
}

/// The sums that writes have added, and the nodes whose shadows are still to be looked up.
#[derive(Default)]
pub(super) struct Changes {
    added: Sums,
    /// Nodes that these changes were the first to write to in their table.
    nodes: Chain,
    /// The last node that is counted in `shadowed`, as are all before it.
    resolved: Option<NonNull<Node>>,
    shadowed: Sums,
}

/// What a write has found.
pub(super) struct Noted {
    /// The expiry of the record in the memtable.
    pub(super) old_expiry: Option<u64>,
    /// The node, if this transaction had not written to it before, but an earlier one had.
    pub(super) touched: Option<NonNull<Node>>,
}

// SAFETY: the nodes are kept alive by the table that is kept beside the changes, and shared nodes
// may be used by any thread.
unsafe impl Send for Changes {}

/// What is below a memtable.
pub(super) struct Below<'v> {
    pub(super) frozen: Option<&'v Memtable>,
    pub(super) disk: Disk<'v>,
}

impl Below<'_> {
    fn find(&self, tree: u32, key: &[u8]) -> Result<Option<&[u8]>, ReadError> {
        let node = self.frozen.and_then(|table| table.find(tree, key));
        match node.and_then(Node::latest) {
            Some(seen) => Ok(seen.record()),
            None => self.disk.find(tree, key),
        }
    }
}

impl Changes {
    /// Writes to a memtable, always the same one, and records what changes.
    pub(super) fn write(
        &mut self,
        memtable: &mut MemtableWriter,
        tree: u32,
        key: &[u8],
        parts: Option<[&[u8]; 2]>,
        sequence: u64,
    ) -> Result<Noted, ReadError> {
        let sum = self.added.get_mut(tree);
        let mut old_expiry = Ok(None);
        let written = memtable.write(tree, key, parts, sequence, |seen| {
            let Some(Seen::Record(stored)) = seen else { return };
            old_expiry = record::decode(stored).map(|old| {
                sum.subtract(DatabaseStatistics::of_record(key.len(), old.value.len()));
                old.expires_at_ms
            });
        });
        if let Some([header, value]) = parts {
            // From the log, a record comes in one part, with its header.
            let value_len =
                if header.is_empty() { record::decode(value)?.value.len() } else { value.len() };
            sum.add(DatabaseStatistics::of_record(key.len(), value_len));
        }
        // SAFETY: the memtable has just returned the node, and lives as long as these changes.
        let is_new = unsafe { self.nodes.push(written.node) };
        let touched = (written.is_first && !is_new).then_some(written.node);
        Ok(Noted { old_expiry: old_expiry?, touched })
    }

    /// The nodes that these changes were the first to write to in their table.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NonNull<Node>> {
        self.nodes.nodes()
    }

    /// Forgets everything, since the writes were undone.
    pub(super) fn discard(&mut self) {
        self.nodes.clear();
        self.added.sums.clear();
        self.shadowed.sums.clear();
        self.resolved = None;
    }

    /// Appends later changes.
    pub(super) fn append(&mut self, later: &mut Self) {
        let are_resolved = self.are_resolved() && later.are_resolved();
        self.added.append(&mut later.added);
        self.nodes.append(&mut later.nodes);
        if are_resolved {
            self.shadowed.append(&mut later.shadowed);
            self.resolved = self.nodes.last();
        }
        later.shadowed.sums.clear();
        later.resolved = None;
    }

    fn are_resolved(&self) -> bool {
        self.resolved == self.nodes.last()
    }

    /// What the changes add up to for a tree, after looking up what they shadow.
    pub(super) fn total(
        &mut self,
        tree: u32,
        below: &Below<'_>,
    ) -> Result<DatabaseStatistics, ReadError> {
        while let Some(next) = self.nodes.behind(self.resolved) {
            // SAFETY: chained by `write`; the table lives as long as these changes.
            let node = unsafe { next.as_ref() };
            if let Some(stored) = below.find(node.tree(), node.key())? {
                let value_len = record::decode(stored)?.value.len();
                self.shadowed
                    .get_mut(node.tree())
                    .add(DatabaseStatistics::of_record(node.key().len(), value_len));
            }
            self.resolved = Some(next);
        }
        let mut sum = self.added.get(tree);
        sum.subtract(self.shadowed.get(tree));
        Ok(sum)
    }
}

/// A table and what was written to it.
struct TableStatistics {
    /// Keeps the nodes of `changes` alive.
    table: Arc<Memtable>,
    changes: Changes,
}

/// The published state of all sums.
pub(super) struct Statistics {
    /// The sums of base and runs.
    disk: Sums,
    runs: Arc<Runs>,
    base_sequence: u64,
    frozen: Option<TableStatistics>,
    active: TableStatistics,
    /// For lookups in the base, once somebody has asked; not held in between.
    view: Option<BaseView>,
    /// The base as it was before the checkpoint in progress, which is written into it in pieces.
    before: Option<BaseView>,
}

impl Statistics {
    pub(super) fn new(
        base: BaseContents,
        runs: Arc<Runs>,
        active: Arc<Memtable>,
        changes: Changes,
    ) -> Self {
        let active = TableStatistics { table: active, changes };
        let (base_sequence, disk) = (base.sequence, Sums::of(base));
        Self { disk, runs, base_sequence, frozen: None, active, view: None, before: None }
    }

    /// The sums of base and runs, by tree.
    pub(super) fn on_disk(&self) -> impl Iterator<Item = (u32, DatabaseStatistics)> {
        self.disk.sums.iter().map(|(tree, sum)| (*tree, *sum))
    }

    /// Adds the changes of a committed group.
    pub(super) fn publish(&mut self, changes: &mut Changes) {
        self.active.changes.append(changes);
    }

    pub(super) fn freeze(&mut self, active: Arc<Memtable>) {
        let active = TableStatistics { table: active, changes: Changes::default() };
        self.frozen = Some(std::mem::replace(&mut self.active, active));
    }

    /// Runs were merged, which leaves the sums of base and runs as they are.
    pub(super) fn merged(&mut self, runs: Arc<Runs>) {
        self.runs = runs;
    }

    /// The frozen table is now in the base or in one of these runs.
    pub(super) fn checkpointed(&mut self, base: BaseContents, runs: Arc<Runs>) {
        self.base_sequence = base.sequence;
        self.disk = Sums::of(base);
        self.runs = runs;
        self.frozen = None;
        self.before = None;
    }

    /// Keeps the base as it is until the frozen table is in it. If it is kept already, a checkpoint
    /// is being retried that may be half done.
    pub(super) fn hold_base(
        &mut self,
        new_view: impl FnOnce() -> Result<BaseView, ReadError>,
    ) -> Result<(), ReadError> {
        if self.before.is_none() {
            let mut view = new_view()?;
            view.renew()?;
            self.before = Some(view);
        }
        Ok(())
    }

    /// The sum of a tree as of the last commit; `None` if the base is now at another checkpoint.
    pub(super) fn total(
        &mut self,
        tree: u32,
        new_view: impl FnOnce() -> Result<BaseView, ReadError>,
    ) -> Result<Option<DatabaseStatistics>, ReadError> {
        if let Some(before) = self.before.take() {
            let total = self.total_over(tree, &before);
            self.before = Some(before);
            return total;
        }
        let mut view = self.view.take().map_or_else(new_view, Ok)?;
        view.renew()?;
        let total = self.total_over(tree, &view);
        view.release();
        self.view = Some(view);
        total
    }

    fn total_over(
        &mut self,
        tree: u32,
        base: &BaseView,
    ) -> Result<Option<DatabaseStatistics>, ReadError> {
        if base.sequence() != self.base_sequence {
            return Ok(None);
        }
        let mut sum = self.disk.get(tree);
        let disk = Disk { runs: &self.runs, base };
        if let Some(frozen) = &mut self.frozen {
            sum.add(frozen.changes.total(tree, &Below { frozen: None, disk })?);
        }
        let frozen = self.frozen.as_ref().map(|frozen| &*frozen.table);
        sum.add(self.active.changes.total(tree, &Below { frozen, disk })?);
        Ok(Some(sum))
    }
}
