//! Checkpoints of a large store: the frozen memtable becomes a run.

use std::{collections::HashMap, sync::Arc, time::Duration};

use crate::{DatabaseStatistics, ReadError, record};

use super::{
    base::{BaseError, Layer, Total},
    checkpoint::remove_segments,
    checkpointer::Checkpointer,
    disk::Disk,
    memtable::Node,
    runs::{Run, RunEntry, RunList, RunWriter, Runs, key_hash},
    shadows::{Group, Shadows, is_sampled},
    signal::{Job, Reason},
    totals::Totals,
};

/// After so many nodes, the writer is told how far the checkpoint is. Each may read a page from disk.
const NODES_PER_LOOK: usize = 256;

/// If there are more runs than that, not all keys of a large tree are looked up in them.
const LOOKED_INTO_MAX: usize = 16;

/// Nor are they if a memtable is full less than this time after the previous checkpoint: the checkpointer would spend more than a
/// tenth of its time on look-ups, and a faster writer would wait for them.
const HURRIED_TIME: Duration = Duration::from_secs(5);

/// What a run changes in the totals of base and runs, by tree.
#[derive(Default)]
struct Changed {
    trees: HashMap<u32, TreeChanged, foldhash::fast::RandomState>,
}

#[derive(Default)]
struct TreeChanged {
    /// What the run's records add, less what its deletions remove.
    added: DatabaseStatistics,
    puts: u64,
    /// What its records replace.
    shadows: Shadows,
}

impl Changed {
    /// Counts a record of the run. `find` looks up what there is under its key. If `may_estimate`, most keys are not
    /// looked up.
    fn put<'d>(
        &mut self,
        tree: u32,
        key: &[u8],
        new: &[u8],
        may_estimate: bool,
        find: impl FnOnce() -> Result<Option<&'d [u8]>, ReadError>,
    ) -> Result<(), ReadError> {
        let changed = self.trees.entry(tree).or_default();
        changed.added.add(record::statistics(key, new)?);
        let group = if may_estimate { Group::of(changed.puts, true) } else { Group::First };
        changed.shadows.count(group);
        if group == Group::First || is_sampled(changed.puts) {
            let old = find()?.map(|old| record::statistics(key, old)).transpose()?;
            changed.shadows.found(group, old);
        }
        changed.puts += 1;
        Ok(())
    }

    /// Counts that a key which has the record `old` was deleted.
    fn delete(&mut self, tree: u32, key: &[u8], old: &[u8]) -> Result<(), ReadError> {
        self.trees.entry(tree).or_default().added.subtract(record::statistics(key, old)?);
        Ok(())
    }

    fn add_to(&self, totals: &mut Totals) {
        for (tree, changed) in &self.trees {
            let mut sum = changed.added;
            sum.subtract(changed.shadows.total());
            totals.add(*tree, Total { sum, is_estimate: changed.shadows.is_estimate() });
        }
    }
}

impl Checkpointer<'_> {
    /// Makes the memtable a run before `runs`. It is written and synced before the base lists it,
    /// and any failure before that leaves the store as it was.
    pub(super) fn checkpoint_into_run(
        &mut self,
        job: &Job,
        runs: &Arc<Runs>,
    ) -> Result<(), BaseError> {
        let shared = self.shared;
        let mut totals = shared.visible.on_disk();
        let written = self.write_run(job, runs, &mut totals)?;
        let all = match &written {
            Some(run) => Arc::new(runs.replaced(0..0, Some(Arc::clone(run)))),
            None => Arc::clone(runs),
        };
        let mut layer = Layer::begin(&shared.base)?;
        layer.retain(|tree| self.is_live(tree))?;
        totals.retain(|tree| self.is_live(tree));
        let list = RunList { next: shared.runs.next(), entries: all.entries() };
        layer.set_runs(list, &totals)?;
        let committed = shared.base.commits.hold(|| layer.commit(job.sequence, job.keep_from));
        let contents = committed.inspect_err(|_| self.give_up_run(written.as_deref()))?;
        shared.visible.checkpointed(contents, all);
        remove_segments(&shared.durable.directory, &*shared.durable.storage, job.keep_from);
        Ok(())
    }

    /// Writes the live entries of the memtable to a run, unless there are none, and adds them to `totals`.
    ///
    /// What a record replaces need not be known for anything but the totals. It is looked up all the same, so that they are
    /// exact, but not in large trees where that takes long or time is short.
    fn write_run(
        &mut self,
        job: &Job,
        runs: &Runs,
        totals: &mut Totals,
    ) -> Result<Option<Arc<Run>>, BaseError> {
        let shared = self.shared;
        let mut base = shared.visible.base_view()?;
        base.renew()?;
        let disk = Disk { runs, base: &base };
        let may_estimate = self.saves_look_ups(job, runs);
        let is_large = |tree| totals.get(tree).sum.records >= shared.options.estimated_from_records;
        let mut changed = Changed::default();
        let mut writer = RunWriter::begin(&shared.runs, shared.base.store, job.frozen.len())?;
        for (done, node) in job.frozen.nodes().enumerate() {
            if done.is_multiple_of(NODES_PER_LOOK) {
                shared.pace.advance(done);
            }
            let (tree, key) = (node.tree(), node.key());
            if !self.is_live(tree) {
                continue;
            }
            let Some(seen) = Node::latest(node) else { continue };
            let (hash, new) = (key_hash(tree, key), seen.record());
            let find = || disk.find_hashed(hash, tree, key);
            match new {
                Some(new) => {
                    changed.put(tree, key, new, may_estimate && is_large(tree), find)?;
                }
                None => match find()? {
                    Some(old) => changed.delete(tree, key, old)?,
                    // If nothing is there, nothing need be hidden.
                    None => continue,
                },
            }
            if writer.push(hash, tree, key, new)? {
                self.look_around();
            }
        }
        changed.add_to(totals);
        match writer.is_empty() {
            true => Ok(None),
            false => self.open_run(writer.finish()?).map(Some),
        }
    }

    /// Whether most keys of large trees are not to be looked up: if almost every look-up reads a page from disk, or looks into
    /// many runs, as there are when a merge does not keep up with what is written, or if checkpoints come one after the other.
    fn saves_look_ups(&self, job: &Job, runs: &Runs) -> bool {
        let is_soon = self.checkpointed_at.is_some_and(|ended| ended.elapsed() < HURRIED_TIME);
        let is_hurried = job.reason == Reason::Full && is_soon;
        is_hurried || self.shared.base.is_large() || runs.len() > LOOKED_INTO_MAX
    }

    /// Opens a run that has been written.
    pub(super) fn open_run(&self, entry: RunEntry) -> Result<Arc<Run>, BaseError> {
        let run = Run::open(&self.shared.runs.path(entry.number), self.shared.base.store, entry);
        let run = run.inspect_err(|_| self.shared.runs.remove(entry.number))?;
        if self.shared.base.is_large() {
            run.expect_random_reads();
        }
        Ok(Arc::new(run))
    }

    /// Removes a run if it is certain that it was not committed.
    pub(super) fn give_up_run(&self, run: Option<&Run>) {
        if let Some(run) = run
            && !self.shared.base.is_given_up()
        {
            self.shared.runs.remove(run.entry().number);
        }
    }
}
