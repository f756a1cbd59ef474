//! Memtables and runs that only old views still see.
//!
//! Freeing their memory takes milliseconds, and a tenth of a second for runs of some hundred
//! megabytes. Whoever releases them last would have to do it: a writer or a reader in the middle of
//! a request. So the checkpointer keeps them until it is the only owner.

use std::{sync::Arc, time::Duration};

use super::{
    memtable::Memtable,
    runs::{Run, Runs},
};

/// How often to check whether anybody else still has them, and how many times at most: a view that
/// is kept for long frees them itself.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(20);
const LOOKS_MAX: u32 = 50;

/// Objects that are kept until all others have released them.
#[derive(Default)]
pub(super) struct Retired {
    memtables: Vec<Arc<Memtable>>,
    runs: Vec<Arc<Run>>,
    looks: u32,
}

impl Retired {
    pub(super) fn add_memtable(&mut self, memtable: &Arc<Memtable>) {
        self.memtables.push(Arc::clone(memtable));
        self.looks = 0;
    }

    pub(super) fn add_runs(&mut self, runs: &Runs) {
        self.runs.extend(runs.iter().map(Arc::clone));
        self.looks = 0;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.memtables.is_empty() && self.runs.is_empty()
    }

    /// Releases what nobody else has, and everything after a while.
    pub(super) fn look(&mut self) {
        if self.is_empty() {
            return;
        }
        self.looks += 1;
        let is_patient = self.looks < LOOKS_MAX;
        self.memtables.retain(|memtable| is_patient && Arc::strong_count(memtable) > 1);
        self.runs.retain(|run| is_patient && Arc::strong_count(run) > 1);
    }
}
