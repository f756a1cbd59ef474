//! Checkpoints: a frozen memtable goes to the disk, in order, and its part of the log goes away.
//!
//! It goes into the base, or into a run of its own (`run_checkpoint`) where it is little beside what the base has.

use std::{path::Path, sync::Arc};

use crate::DatabaseStatistics;

use super::{
    LogStorage,
    base::{BaseError, Layer},
    checkpointer::Checkpointer,
    files,
    memtable::Node,
    signal::Job,
};

/// Runs are merged into the base when together they have this part of its bytes: then each page that is changed takes
/// several records with it. With a smaller part more pages are written for a record, with a larger one readers find more
/// runs, and the disk more bytes that the base has as well.
pub(super) const RUNS_PART: u64 = 3;

/// Bytes that a record takes on disk beside its key and its value, about.
const RECORD_HEAD_BYTES: u64 = 24;

/// Bytes that records of these sums take on disk, about.
fn bytes_on_disk<'d>(sums: impl IntoIterator<Item = &'d (u32, DatabaseStatistics)>) -> u64 {
    let bytes = |sum: &DatabaseStatistics| {
        sum.key_bytes
            .saturating_add(sum.value_bytes)
            .saturating_add(sum.records.saturating_mul(RECORD_HEAD_BYTES))
    };
    sums.into_iter().fold(0, |all, (_, sum)| all.saturating_add(bytes(sum)))
}

impl Checkpointer<'_> {
    /// Bytes of runs that are this part of the base, from which on they are merged into it; `None` if the store is too small
    /// for runs.
    pub(super) fn runs_bytes_max(&self, part: u64) -> Option<u64> {
        let bytes = bytes_on_disk(&self.shared.visible.on_disk());
        let options = &self.shared.options;
        let max = (bytes / part).max(options.runs_bytes_min);
        (bytes >= options.runs_from_bytes).then_some(max)
    }

    pub(super) fn checkpoint(&mut self, job: &Job) -> Result<(), BaseError> {
        self.shared.base.forget_dead_readers()?;
        self.shared.base.follow_size();
        let runs = Arc::clone(&self.shared.visible.tables().runs);
        let is_always = self.shared.options.runs_from_bytes == 0;
        let is_little = |max| is_always || (job.frozen.bytes() as u64) < max;
        // A record in the base would be hidden by an older one in a run.
        if !runs.is_empty() || self.runs_bytes_max(RUNS_PART).is_some_and(is_little) {
            // What an attempt has done of it is done anew by the next one.
            self.shared.pace.advance(0);
            let written = self.checkpoint_into_run(job, &runs);
            return written.inspect_err(|_| self.shared.pace.advance(0));
        }
        self.checkpoint_into_base(job)
    }

    /// The memtable goes into the base in pieces, in order. The base has the sequence of the last checkpoint until the
    /// last of them, so whoever opens it in between replays all of the log, and writes again what is there. Whoever
    /// copies it in between needs the log up to the last transaction of the memtable.
    fn checkpoint_into_base(&mut self, job: &Job) -> Result<(), BaseError> {
        let shared = self.shared;
        let commits = &shared.base.commits;
        let mut layer = Layer::begin(&shared.base)?;
        // First, so that those that come find the room of those that go.
        layer.retain(|tree| self.is_live(tree))?;
        // What an attempt before this one has committed is not written again: its pages would be needed twice.
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

/// Removes the segments that the base has made needless. What cannot be removed now is removed
/// after the next checkpoint, or when the store is opened.
///
/// The base must be found under its name after a power failure: a compaction that was killed may
/// have given it that name, and not have synced it.
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
