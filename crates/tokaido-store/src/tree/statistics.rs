//! Counting records without looking each of them up.
//!
//! A put need not know whether it replaces a record of the base, and finding out would cost a
//! random read. So the sums are kept in parts: what the base and the runs hold as of the last
//! checkpoint, which looks up what it replaces; what the memtables add, exactly; and what their nodes
//! *shadow*, which is looked up for all of them together when somebody asks, or estimated.

use std::{
    collections::HashMap,
    ptr::NonNull,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{DatabaseStatistics, ReadError, record};

use super::{
    base::{BaseContents, BaseView},
    disk::Disk,
    memtable::{Chain, Memtable, MemtableWriter, Node, Seen},
    runs::Runs,
    shadows::{Group, Shadows, is_sampled},
    totals::Totals,
};

/// While somebody counts for an estimate, commits wait for about so long at most, unless a page must be read from disk.
const HOLD_TIME_MAX: Duration = Duration::from_micros(500);

/// After so many keys, that time is checked.
const STEPS_PER_LOOK: usize = 32;

/// How what writes shadow is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counting {
    /// Every key is looked up. Commits wait until that is done.
    Exact,
    /// In large trees, only some keys are looked up. Commits go first.
    Estimate,
}

/// What writes have added to their trees, and what they shadow, as far as that was looked up.
#[derive(Default)]
pub(super) struct Changes {
    trees: HashMap<u32, TreeChanges, foldhash::fast::RandomState>,
    /// Nodes that these changes were the first to write to in their table.
    nodes: Chain,
    /// The last node that was looked up for `TreeChanges::shadowed`, as were all before it.
    counted_to: Option<NonNull<Node>>,
    /// The last node that was looked up for `TreeChanges::shadowed_in_small`, if its tree was small, as were all before it.
    counted_small_to: Option<NonNull<Node>>,
}

#[derive(Default)]
struct TreeChanges {
    added: DatabaseStatistics,
    shadowed: DatabaseStatistics,
    shadowed_in_small: DatabaseStatistics,
    /// Whether some nodes are missing in `shadowed_in_small`.
    is_large: bool,
    estimated: Shadows,
    /// Keys that belong to a sample and are to be looked up.
    sample: Vec<(NonNull<Node>, Group)>,
}

/// What a write has found.
pub(super) struct Noted {
    /// The expiry of the record in the memtable.
    pub(super) old_expiry: Option<u64>,
    /// The node, if this transaction had not written to it before, but an earlier one had.
    pub(super) touched: Option<NonNull<Node>>,
}

/// What is below a memtable.
pub(super) struct Below<'v> {
    pub(super) frozen: Option<&'v Memtable>,
    pub(super) disk: Disk<'v>,
}

impl Below<'_> {
    /// What a node shadows.
    ///
    /// # Safety
    /// The node still exists.
    unsafe fn shadowed_by(
        &self,
        node: NonNull<Node>,
    ) -> Result<Option<DatabaseStatistics>, ReadError> {
        // SAFETY: guaranteed by the caller.
        let node = unsafe { node.as_ref() };
        let (tree, key) = (node.tree(), node.key());
        let frozen = self.frozen.and_then(|table| table.find(tree, key)).and_then(Node::latest);
        let found = match frozen {
            Some(seen) => seen.record(),
            None => self.disk.find(tree, key)?,
        };
        found.map(|stored| record::statistics(key, stored)).transpose()
    }
}

/// Ends work that others wait for, after a while.
struct Patience {
    steps: usize,
    until: Instant,
}

impl Patience {
    fn new() -> Self {
        Self { steps: 0, until: Instant::now() + HOLD_TIME_MAX }
    }

    /// Whether to stop before the next step.
    fn is_over(&mut self) -> bool {
        self.steps += 1;
        self.steps.is_multiple_of(STEPS_PER_LOOK) && Instant::now() >= self.until
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
        let changes = self.trees.entry(tree).or_default();
        let sum = &mut changes.added;
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
        if is_new {
            let before = memtable.table().len() as u64 - 1;
            let group = Group::of(before, parts.is_some());
            changes.estimated.count(group);
            if is_sampled(before) {
                changes.sample.push((written.node, group));
            }
        }
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
        *self = Self::default();
    }

    /// Appends later changes.
    pub(super) fn append(&mut self, later: &mut Self) {
        let are_counted = self.are_counted() && later.are_counted();
        self.nodes.append(&mut later.nodes);
        for (tree, mut later) in later.trees.drain() {
            let changes = self.trees.entry(tree).or_default();
            changes.added.add(later.added);
            changes.estimated.add(&later.estimated);
            changes.sample.append(&mut later.sample);
            if are_counted {
                changes.shadowed.add(later.shadowed);
            }
        }
        if are_counted {
            self.counted_to = self.nodes.last();
        }
        (later.counted_to, later.counted_small_to) = (None, None);
    }

    /// Whether it is known exactly what the changes shadow.
    fn are_counted(&self) -> bool {
        self.counted_to == self.nodes.last()
    }

    /// What the changes add up to for a tree, after looking up what they shadow.
    pub(super) fn total(
        &mut self,
        tree: u32,
        below: &Below<'_>,
    ) -> Result<DatabaseStatistics, ReadError> {
        while let Some(next) = self.nodes.behind(self.counted_to) {
            // SAFETY: chained by `write`; the table lives as long as these changes.
            let (of, shadowed) = unsafe { (next.as_ref().tree(), below.shadowed_by(next)?) };
            self.trees.entry(of).or_default().shadowed.add(shadowed.unwrap_or_default());
            self.counted_to = Some(next);
        }
        let Some(changes) = self.trees.get(&tree) else { return Ok(DatabaseStatistics::default()) };
        let mut sum = changes.added;
        sum.subtract(changes.shadowed);
        Ok(sum)
    }

    /// Like [`total`](Self::total), but what is shadowed in large trees is estimated; `None` if that is not done after a while.
    fn estimate(
        &mut self,
        tree: u32,
        below: &Below<'_>,
        is_large: impl Fn(u32) -> bool,
    ) -> Result<Option<DatabaseStatistics>, ReadError> {
        let mut patience = Patience::new();
        let Some(changes) = self.trees.get_mut(&tree) else {
            return Ok(Some(DatabaseStatistics::default()));
        };
        changes.is_large |= is_large(tree);
        if !changes.is_large && !self.count_in_small(below, is_large, &mut patience)? {
            return Ok(None);
        }
        let changes = self.trees.entry(tree).or_default();
        let mut sum = changes.added;
        if changes.is_large {
            while let Some((node, group)) = changes.sample.last() {
                if patience.is_over() {
                    return Ok(None);
                }
                // SAFETY: taken from the chain by `write`; the table lives as long as these changes.
                let shadowed = unsafe { below.shadowed_by(*node)? };
                changes.estimated.found(*group, shadowed);
                changes.sample.pop();
            }
            sum.subtract(changes.estimated.total());
        } else {
            sum.subtract(changes.shadowed_in_small);
        }
        Ok(Some(sum))
    }

    /// Looks up what further nodes of small trees shadow. Returns whether all are counted.
    fn count_in_small(
        &mut self,
        below: &Below<'_>,
        is_large: impl Fn(u32) -> bool,
        patience: &mut Patience,
    ) -> Result<bool, ReadError> {
        while let Some(next) = self.nodes.behind(self.counted_small_to) {
            if patience.is_over() {
                return Ok(false);
            }
            // SAFETY: chained by `write`; the table lives as long as these changes.
            let tree = unsafe { next.as_ref() }.tree();
            let changes = self.trees.entry(tree).or_default();
            changes.is_large |= is_large(tree);
            if !changes.is_large {
                // SAFETY: as above.
                let shadowed = unsafe { below.shadowed_by(next)? };
                changes.shadowed_in_small.add(shadowed.unwrap_or_default());
            }
            self.counted_small_to = Some(next);
        }
        Ok(true)
    }
}

// SAFETY: the nodes are kept alive by the table that is kept beside the changes, and shared nodes
// may be used by any thread.
unsafe impl Send for Changes {}

/// A table and what was written to it.
struct TableStatistics {
    /// Keeps the nodes of `changes` alive.
    table: Arc<Memtable>,
    changes: Changes,
}

/// The published state of all sums.
pub(super) struct Statistics {
    disk: Totals,
    runs: Arc<Runs>,
    base_sequence: u64,
    frozen: Option<TableStatistics>,
    active: TableStatistics,
    /// The number of records from which on a tree is large.
    large_from: u64,
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
        large_from: u64,
    ) -> Self {
        let active = TableStatistics { table: active, changes };
        let (base_sequence, disk) = (base.sequence, base.trees.into_iter().collect());
        let (frozen, view, before) = (None, None, None);
        Self { disk, runs, base_sequence, frozen, active, large_from, view, before }
    }

    /// What base and runs hold.
    pub(super) fn on_disk(&self) -> &Totals {
        &self.disk
    }

    /// Adds the changes of a committed group.
    pub(super) fn publish(&mut self, changes: &mut Changes) {
        self.active.changes.append(changes);
    }

    pub(super) fn freeze(&mut self, active: Arc<Memtable>) {
        let active = TableStatistics { table: active, changes: Changes::default() };
        self.frozen = Some(std::mem::replace(&mut self.active, active));
    }

    /// Runs were merged or counted, which changes nothing in what base and runs hold, but estimates of it.
    pub(super) fn merged(&mut self, runs: Arc<Runs>, totals: Totals) {
        self.runs = runs;
        self.disk = totals;
    }

    /// The frozen table is now in the base or in one of these runs.
    pub(super) fn checkpointed(&mut self, base: BaseContents, runs: Arc<Runs>) {
        self.base_sequence = base.sequence;
        self.disk = base.trees.into_iter().collect();
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

    /// The sum of a tree as of the last commit; `None` if the base is now at another checkpoint, or if an estimate
    /// takes longer.
    pub(super) fn total(
        &mut self,
        tree: u32,
        counting: Counting,
        new_view: impl FnOnce() -> Result<BaseView, ReadError>,
    ) -> Result<Option<DatabaseStatistics>, ReadError> {
        if let Some(before) = self.before.take() {
            let total = self.total_over(tree, counting, &before);
            self.before = Some(before);
            return total;
        }
        let mut view = self.view.take().map_or_else(new_view, Ok)?;
        view.renew()?;
        let total = self.total_over(tree, counting, &view);
        view.release();
        self.view = Some(view);
        total
    }

    fn total_over(
        &mut self,
        tree: u32,
        counting: Counting,
        base: &BaseView,
    ) -> Result<Option<DatabaseStatistics>, ReadError> {
        if base.sequence() != self.base_sequence {
            return Ok(None);
        }
        let total = self.disk.get(tree);
        let mut sum = total.sum;
        let (large_from, totals) = (self.large_from, &self.disk);
        let is_large = |tree: u32| totals.get(tree).sum.records >= large_from;
        let mut add = |changes: &mut Changes, below: &Below<'_>| {
            let added = match counting {
                Counting::Exact => Some(changes.total(tree, below)?),
                Counting::Estimate => changes.estimate(tree, below, is_large)?,
            };
            added.inspect(|added| sum.add(*added));
            Ok::<_, ReadError>(added.is_some())
        };
        let disk = Disk { runs: &self.runs, base };
        if let Some(frozen) = &mut self.frozen
            && !add(&mut frozen.changes, &Below { frozen: None, disk })?
        {
            return Ok(None);
        }
        let frozen = self.frozen.as_ref().map(|frozen| &*frozen.table);
        if !add(&mut self.active.changes, &Below { frozen, disk })? {
            return Ok(None);
        }
        let may_be_off = counting == Counting::Estimate || total.is_estimate;
        Ok(Some(if may_be_off { sum.at_least_zero() } else { sum }))
    }
}
