//! How fast a writer may go while runs are merged into the base.
//!
//! What comes meanwhile becomes further runs. If there came as many as are merged before that has ended, and again, they
//! would grow without bound; so the writer pauses for a little while before a group if it is ahead, as it does for a
//! checkpoint.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use super::{pace::Pace, runs::Runs};

/// How far the merge under way has come, and what may come meanwhile.
#[derive(Debug, Default)]
pub(super) struct MergePace {
    pace: Pace,
    /// Bytes of the runs that are merged.
    merged_bytes: AtomicU64,
    /// Bytes of runs that may come meanwhile.
    bytes_max: AtomicU64,
}

/// A merge that is under way.
pub(super) struct Merging<'p> {
    pace: &'p Pace,
}

impl Merging<'_> {
    /// So many entries are in the base.
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
    /// These runs are merged, and of those that come meanwhile there should be no more than `bytes_max`.
    pub(super) fn begin(&self, runs: &Runs, bytes_max: u64) -> Merging<'_> {
        self.merged_bytes.store(runs.bytes(), Relaxed);
        self.bytes_max.store(bytes_max, Relaxed);
        self.pace.begin(runs.count() as usize);
        Merging { pace: &self.pace }
    }

    /// How long a writer is to pause while there are these runs, and a memtable of so many bytes.
    pub(super) fn pause(&self, runs: &Runs, memtable_bytes: usize) -> Option<Duration> {
        if !self.pace.is_under_way() {
            return None;
        }
        let newer = runs.bytes().saturating_sub(self.merged_bytes.load(Relaxed));
        // Half of a memtable is not in the run that it becomes.
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
