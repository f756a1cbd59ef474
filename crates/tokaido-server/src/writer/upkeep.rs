//! What the writer does between groups, some times a second: it tidies the store, counts members of sorted sets for which readers
//! have asked, and removes expired records and elements of collections that are gone. Those are invisible in any case; this frees
//! space.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};

use tokaido_collections::count_requested;
use tokaido_store::{
    GroupWriter, TransactError, WriteError, Writer as _, limits::RECLAIM_MAX, transact_unflushed,
};

use super::Pen;
use crate::{Limits, pause::Pause};

/// When the next round is due, and how much it may do.
pub(super) struct Upkeep {
    pub(super) due: Instant,
    pub(super) interval: Duration,
    /// Whether this writer does it, and not another one.
    is_mine: bool,
    /// Maximum number of records that one transaction removes or counts, so that writes wait only briefly for it.
    records_max: usize,
    /// Whether the last look failed; said once, not every half second.
    failing: bool,
}

impl Upkeep {
    pub(super) fn new(limits: &Limits, is_mine: bool) -> Self {
        let interval = Duration::from_millis(limits.expiry_interval_ms);
        let records_max = limits.expiry_batch_max.min(RECLAIM_MAX);
        Self { due: Instant::now() + interval, interval, is_mine, records_max, failing: false }
    }

    pub(super) fn wait(&self) -> Duration {
        self.due.saturating_duration_since(Instant::now())
    }

    /// Removes one batch, and tidies, if it is time. After a full batch the next one is due at
    /// once, but waiting jobs come first.
    pub(super) fn run_if_due(&mut self, pen: &Pen, pause: &Pause) {
        if Instant::now() < self.due {
            return;
        }
        self.due = Instant::now() + self.interval;
        if !self.is_mine {
            return;
        }
        let mut pen = pen.lock();
        // Only now: another writer may have begun a pause while this one waited for the pen.
        if pause.holds_writes() {
            return;
        }
        let Some(writer) = pen.as_mut() else { return };
        if !pause.keeps_expired() {
            self.remove_and_count(writer);
        }
        // Last: from then on, a writer that rests holds nothing of the base.
        if let Err(error) = writer.tidy() {
            tracing::warn!(%error, "what was written stays in memory and in the log");
        }
    }

    fn remove_and_count(&mut self, writer: &mut GroupWriter) {
        let done = catch_unwind(AssertUnwindSafe(|| {
            let done = transact_unflushed(writer, |tx| {
                let removed = tx.reclaim(self.records_max)?;
                Ok(removed + count_requested(tx, self.records_max.saturating_sub(removed))?)
            });
            let done = done.map_err(|error: TransactError<WriteError>| error.to_string())?;
            writer.end_group().map_err(|e| e.to_string())?;
            Ok(done)
        }))
        .unwrap_or_else(|_| Err("a panic, see the log".to_owned()));
        match &done {
            Err(error) if !self.failing => {
                tracing::warn!(%error, "cannot remove expired records, or count members of sorted sets");
            }
            _ => {}
        }
        self.failing = done.is_err();
        if done.is_ok_and(|n| n >= self.records_max) {
            self.due = Instant::now();
        }
    }
}
