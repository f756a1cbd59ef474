//! Back-pressure on the writer while runs are merged into the base.
//!
//! What is written meanwhile becomes further runs. If, merge after merge, as many were added as are merged, they would
//! grow without bound. So a writer that is ahead pauses briefly before a group, as it does for a checkpoint.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use super::{pace::Pace, runs::Runs};

/// How far the merge under way has come, and how much may be added meanwhile.
#[derive(Debug, Default)]
pub(super) struct MergePace {
    pace: Pace,
    /// Bytes of the runs being merged.
    merged_bytes: AtomicU64,
    /// Bytes of runs that may be added meanwhile.
    bytes_max: AtomicU64,
}

/// A merge that is under way.
pub(super) struct Merging<'p> {
    pace: &'p Pace,
}

impl Merging<'_> {
    /// Notes that this many entries are in the base.
    pub(super) fn advance(&self, done: usize) {
        self.pace.advance(done);
    }
}

impl Drop for Merging<'_> {
    fn drop(&mut self) {
        self.pace.end();
    }
}

impl MergePace {
    /// Begins a merge of these runs. The runs added meanwhile should take no more than `bytes_max`.
    pub(super) fn begin(&self, runs: &Runs, bytes_max: u64) -> Merging<'_> {
        self.merged_bytes.store(runs.bytes(), Relaxed);
        self.bytes_max.store(bytes_max, Relaxed);
        self.pace.begin(runs.count() as usize);
        Merging { pace: &self.pace }
    }

    /// How long a writer is to pause, given these runs and a memtable of this many bytes.
    pub(super) fn pause(&self, runs: &Runs, memtable_bytes: usize) -> Option<Duration> {
        if !self.pace.is_under_way() {
            return None;
        }
        let newer = runs.bytes().saturating_sub(self.merged_bytes.load(Relaxed));
        // Half of a memtable's bytes do not go into the run that it becomes.
        let bytes = newer as usize + memtable_bytes / 2;
        self.pace.pause(bytes, self.bytes_max.load(Relaxed) as usize, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_pauses_only_while_there_is_a_merge() {
        let (pace, runs) = (MergePace::default(), Runs::default());
        assert_eq!(pace.pause(&runs, 1 << 30), None);
        let merging = pace.begin(&runs, 1 << 20);
        assert_eq!(pace.pause(&runs, 1 << 30), None, "there is nothing to be merged");
        drop(merging);
        pace.pace.begin(100);
        assert!(pace.pause(&runs, 1 << 30).is_some());
        assert_eq!(pace.pause(&runs, 1000), None);
        pace.pace.end();
        assert_eq!(pace.pause(&runs, 1 << 30), None);
    }
}
