//! Checkpoints of a large store: the frozen memtable becomes a run.

use std::{collections::HashMap, sync::Arc};

use crate::{DatabaseStatistics, ReadError, record};

use super::{
    base::{BaseError, Layer},
    checkpoint::remove_segments,
    checkpointer::Checkpointer,
    disk::Disk,
    memtable::Node,
    runs::{Change, Run, RunEntry, RunList, RunWriter, Runs, key_hash},
    signal::Job,
};

/// After so many nodes, the writer is told how far the checkpoint is. Each may read a page from disk.
const NODES_PER_LOOK: usize = 256;

/// The totals of base and runs by tree, while more is added.
struct Totals {
    sums: HashMap<u32, DatabaseStatistics, foldhash::fast::RandomState>,
}

impl Totals {
    /// Counts that a key's record `old` was replaced by `new`.
    fn replace(
        &mut self,
        tree: u32,
        key: &[u8],
        old: Change<'_>,
        new: Change<'_>,
    ) -> Result<(), ReadError> {
        let sum = |stored: &[u8]| {
            let value_len = record::decode(stored)?.value.len();
            Ok::<_, ReadError>(DatabaseStatistics::of_record(key.len(), value_len))
        };
        let total = self.sums.entry(tree).or_default();
        if let Some(old) = old {
            total.subtract(sum(old)?);
        }
        if let Some(new) = new {
            total.add(sum(new)?);
        }
        Ok(())
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
        let mut totals = Totals { sums: shared.visible.on_disk().into_iter().collect() };
        let written = self.write_run(job, runs, &mut totals)?;
        let all = match &written {
            Some(run) => Arc::new(runs.replaced(0..0, Some(Arc::clone(run)))),
            None => Arc::clone(runs),
        };
        let mut layer = Layer::begin(&shared.base)?;
        layer.retain(|tree| self.is_live(tree))?;
        totals.sums.retain(|tree, _| self.is_live(*tree));
        let list = RunList { next: shared.runs.next(), entries: all.entries() };
        layer.set_runs(list, totals.sums.into_iter().collect())?;
        let committed = shared.base.commits.hold(|| layer.commit(job.sequence, job.keep_from));
        let contents = committed.inspect_err(|_| self.give_up_run(written.as_deref()))?;
        shared.visible.checkpointed(contents, all);
        remove_segments(&shared.durable.directory, &*shared.durable.storage, job.keep_from);
        Ok(())
    }

    /// Writes the live entries of the memtable to a run, unless there are none.
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
            let old = disk.find_hashed(hash, tree, key)?;
            // If nothing is there, nothing need be hidden.
            if old.is_none() && new.is_none() {
                continue;
            }
            totals.replace(tree, key, old, new)?;
            if writer.push(hash, tree, key, new)? {
                self.look_around();
            }
        }
        match writer.is_empty() {
            true => Ok(None),
            false => self.open_run(writer.finish()?).map(Some),
        }
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
