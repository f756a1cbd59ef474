//! Checkpoints: a frozen memtable is written to disk, in order, and its part of the log is removed.
//!
//! It is written into the base, or into a run of its own (`run_checkpoint`) if it is small compared with the base.

use std::{path::Path, sync::Arc};

use crate::DatabaseStatistics;

use super::{
    LogStorage,
    base::{BaseError, Layer},
    checkpointer::Checkpointer,
    files,
    memtable::Node,
    signal::Job,
    totals::Totals,
};

/// Runs are merged into the base when together they have this fraction (1 / `RUNS_PART`) of its bytes: then each changed
/// page takes several records. With a smaller fraction, more pages are written per record; with a larger one, readers
/// find more runs, and more bytes on disk are duplicates of what the base has.
pub(super) const RUNS_PART: u64 = 3;

/// Bytes on disk per record beside its key and its value, roughly.
const RECORD_HEAD_BYTES: u64 = 24;

/// Bytes on disk of the records in these trees, roughly.
fn bytes_on_disk(totals: &Totals) -> u64 {
    let bytes = |sum: &DatabaseStatistics| {
        sum.key_bytes
            .saturating_add(sum.value_bytes)
            .saturating_add(sum.records.saturating_mul(RECORD_HEAD_BYTES))
    };
    totals.iter().fold(0, |all, (_, total)| all.saturating_add(bytes(&total.sum)))
}

impl Checkpointer<'_> {
    /// The size of runs, 1 / `part` of the base, at which they are merged into it; `None` if the
    /// store is too small for runs.
    pub(super) fn runs_bytes_max(&self, part: u64) -> Option<u64> {
        let bytes = bytes_on_disk(&self.shared.visible.on_disk());
        let options = &self.shared.options;
        let max = (bytes / part).max(options.runs_bytes_min);
        (bytes >= options.runs_from_bytes).then_some(max)
    }

    pub(super) fn checkpoint(&mut self, job: &Job) -> Result<(), BaseError> {
        self.shared.base.forget_dead_readers()?;
        self.shared.base.follow_size(self.shared.options.memory_bytes);
        let runs = Arc::clone(&self.shared.visible.tables().runs);
        let is_always = self.shared.options.runs_from_bytes == 0;
        let is_little = |max| is_always || (job.frozen.bytes() as u64) < max;
        // An older record in a run would hide one that is written to the base.
        if !runs.is_empty() || self.runs_bytes_max(RUNS_PART).is_some_and(is_little) {
            // The next attempt repeats whatever a failed attempt has done.
            self.shared.pace.advance(0);
            let written = self.checkpoint_into_run(job, &runs);
            return written.inspect_err(|_| self.shared.pace.advance(0));
        }
        self.checkpoint_into_base(job)
    }

    /// Writes the memtable into the base in pieces, in order. Until the last piece, the base has the sequence of the
    /// previous checkpoint. So opening it in between replays the whole log, and rewrites what is already there. A copy
    /// made in between needs the log up to the last transaction of the memtable.
    fn checkpoint_into_base(&mut self, job: &Job) -> Result<(), BaseError> {
        let shared = self.shared;
        let commits = &shared.base.commits;
        let mut layer = Layer::begin(&shared.base)?;
        // First, so that new trees find the room of the dropped ones.
        layer.retain(|tree| self.is_live(tree))?;
        // What an earlier attempt has committed is not written again: its pages would be needed twice.
        for (done, node) in job.frozen.nodes().enumerate().skip(shared.pace.done()) {
            if !self.is_live(node.tree()) {
                continue;
            }
            if layer.pages_changed() >= shared.options.checkpoint_pages.max(1) {
                commits.hold(|| layer.commit_piece())?;
                shared.pace.advance(done);
                self.look_around();
                layer = Layer::begin(&shared.base)?;
            }
            if let Some(seen) = Node::latest(node) {
                layer.apply(node.tree(), node.key(), seen.record())?;
            }
        }
        let contents = commits.hold(|| layer.commit(job.sequence, job.keep_from))?;
        shared.visible.checkpointed(contents, Arc::default());
        remove_segments(&shared.durable.directory, &*shared.durable.storage, job.keep_from);
        Ok(())
    }
}

/// Removes the segments that the base has made unnecessary. Any that cannot be removed now are
/// removed after the next checkpoint, or when the store is opened.
///
/// The base must be found under its name after a power failure: a compaction that was killed may
/// have given it that name without syncing it.
pub(super) fn remove_segments(directory: &Path, storage: &dyn LogStorage, keep_from: u64) {
    let listed = files::sync_directory(directory).and_then(|()| storage.list());
    let removed = listed.and_then(|segments| {
        for segment in segments.into_iter().filter(|segment| *segment < keep_from) {
            storage.remove(segment)?;
        }
        Ok(())
    });
    if let Err(error) = removed {
        tracing::warn!(%error, "an old segment of the log could not be removed");
    }
}
