//! How often each command ran, and how long it took.
//!
//! Each thread counts in its own part, and the parts are added up on request: shared counters would travel
//! between the cores with every command.

use std::{
    array,
    sync::{
        OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
};

use crate::redis::{command::Command, table};

/// The number of parts. If there are more threads, they share them.
const PARTS: usize = 16;

/// One bucket for each power of two in microseconds. The last one also takes all above half a minute.
const BUCKETS: usize = 26;

/// The counts of one command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::redis) struct Row {
    pub(in crate::redis) calls: u64,
    pub(in crate::redis) took_us: u64,
    /// Calls that ran and replied with an error.
    pub(in crate::redis) failed: u64,
    /// Calls that were refused before they ran.
    pub(in crate::redis) rejected: u64,
    buckets: [u64; BUCKETS],
}

impl Row {
    /// A cumulative histogram: powers of two in µs with how many calls took at most that, without empty buckets.
    pub(super) fn steps(&self) -> Vec<(u64, u64)> {
        let (mut steps, mut calls) = (Vec::new(), 0);
        for (power, count) in self.buckets.iter().enumerate().filter(|(_, count)| **count > 0) {
            calls += count;
            steps.push((1 << power, calls));
        }
        steps
    }
}

#[derive(Default)]
struct Counters {
    took_us: AtomicU64,
    failed: AtomicU64,
    rejected: AtomicU64,
    buckets: [AtomicU64; BUCKETS],
}

type Part = Box<[Counters]>;

/// The counters of all commands.
pub(in crate::redis) struct CommandStatistics {
    parts: [OnceLock<Part>; PARTS],
}

impl Default for CommandStatistics {
    fn default() -> Self {
        Self { parts: array::from_fn(|_| OnceLock::new()) }
    }
}

/// The index of this thread's part.
fn own_part() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static PART: usize = THREADS.fetch_add(1, Relaxed) % PARTS;
    }
    PART.with(|part| *part)
}

impl CommandStatistics {
    fn counters(&self, command: &'static Command) -> Option<&Counters> {
        let part = self.parts[own_part()]
            .get_or_init(|| table::COMMANDS.iter().map(|_| Counters::default()).collect());
        part.get(table::number_of(command))
    }

    /// Counts a call that has run.
    pub(super) fn note(&self, command: &'static Command, took_us: u64, has_failed: bool) {
        let Some(counters) = self.counters(command) else { return };
        counters.took_us.fetch_add(took_us, Relaxed);
        if has_failed {
            counters.failed.fetch_add(1, Relaxed);
        }
        let power = took_us.max(1).next_power_of_two().trailing_zeros() as usize;
        counters.buckets[power.min(BUCKETS - 1)].fetch_add(1, Relaxed);
    }

    /// Counts a call that was refused.
    pub(in crate::redis) fn reject(&self, command: &'static Command) {
        if let Some(counters) = self.counters(command) {
            counters.rejected.fetch_add(1, Relaxed);
        }
    }

    /// The counts of the command with this number.
    pub(in crate::redis) fn row(&self, number: usize) -> Row {
        let mut row = Row::default();
        let parts = self.parts.iter().filter_map(OnceLock::get);
        for counters in parts.filter_map(|part| part.get(number)) {
            row.took_us += counters.took_us.load(Relaxed);
            row.failed += counters.failed.load(Relaxed);
            row.rejected += counters.rejected.load(Relaxed);
            for (sum, count) in row.buckets.iter_mut().zip(&counters.buckets) {
                *sum += count.load(Relaxed);
            }
        }
        row.calls = row.buckets.iter().sum();
        row
    }

    /// Resets all counts.
    pub(super) fn reset(&self) {
        for counters in self.parts.iter().filter_map(OnceLock::get).flatten() {
            let Counters { took_us, failed, rejected, buckets } = counters;
            for counter in [took_us, failed, rejected].into_iter().chain(buckets) {
                counter.store(0, Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_how_long_they_took() {
        let statistics = CommandStatistics::default();
        let get = table::find(b"get", None).expect("it is there");
        for took_us in [0, 1, 2, 3, 4, 5, 1 << 40] {
            statistics.note(get, took_us, took_us == 3);
        }
        statistics.reject(get);
        let row = statistics.row(table::number_of(get));
        assert_eq!((row.calls, row.failed, row.rejected), (7, 1, 1));
        assert_eq!(row.steps(), [(1, 2), (2, 3), (4, 5), (8, 6), (1 << 25, 7)]);
        statistics.reset();
        assert_eq!(statistics.row(table::number_of(get)), Row::default());
    }
}
