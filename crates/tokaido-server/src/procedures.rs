//! What the server knows of its procedures beside their code: how long their calls take, and so
//! where they may run.
//!
//! A procedure earns its place on the event loop. One that is new, or that took long of late, runs
//! on a thread of the pool, where only its own client waits for it. One whose calls have been short
//! runs on the worker itself, which saves two thread hops.

use std::{
    sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

use tokaido_script::{Procedure, ProcedureId};

/// Short calls in a row after which a procedure runs on the workers.
const SHORT_CALLS_NEEDED: u32 = 3;

/// Each time a procedure loses its place it needs twice as many, up to this.
const SHORT_CALLS_NEEDED_MAX: u32 = 1 << 12;

/// After so many short calls in a row the past is forgotten: a call can look long only because the
/// machine was busy.
const SHORT_CALLS_FORGIVE: u32 = 1 << 16;

/// The procedures of a server, by [`ProcedureId::index`].
pub(crate) struct Procedures {
    list: Vec<Procedure>,
    statistics: Vec<CallStatistics>,
    /// A call that took no longer may run on a worker, whose other connections wait meanwhile.
    short_call_max: Duration,
}

impl Procedures {
    pub(crate) fn new(list: Vec<Procedure>, short_call_max: Duration) -> Self {
        let statistics = list.iter().map(|_| CallStatistics::default()).collect();
        Self { list, statistics, short_call_max }
    }

    pub(crate) fn list(&self) -> &[Procedure] {
        &self.list
    }

    pub(crate) fn get(&self, id: ProcedureId) -> Option<&Procedure> {
        self.list.get(id.index())
    }

    /// Whether a worker may run it itself.
    pub(crate) fn runs_inline(&self, id: ProcedureId) -> bool {
        self.statistics.get(id.index()).is_some_and(CallStatistics::is_short)
    }

    /// Makes a call, and notes how long it took and whether it succeeded.
    pub(crate) fn timed<T, E>(
        &self,
        id: ProcedureId,
        call: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let started = Instant::now();
        let result = call();
        if let Some(statistics) = self.statistics.get(id.index()) {
            let took = started.elapsed();
            statistics.called(took, took <= self.short_call_max, result.is_ok());
        }
        result
    }

    /// Procedures with what was counted of them.
    pub(crate) fn statistics(&self) -> impl Iterator<Item = (&Procedure, &CallStatistics)> {
        self.list.iter().zip(&self.statistics)
    }
}

/// Calls of one procedure, from all threads. On a cache line of its own, since every worker that
/// calls the procedure writes to it.
#[repr(align(64))]
pub(crate) struct CallStatistics {
    pub(crate) calls: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) time_ns: AtomicU64,
    short_in_a_row: AtomicU32,
    short_needed: AtomicU32,
}

impl Default for CallStatistics {
    fn default() -> Self {
        Self {
            calls: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            time_ns: AtomicU64::new(0),
            short_in_a_row: AtomicU32::new(0),
            short_needed: AtomicU32::new(SHORT_CALLS_NEEDED),
        }
    }
}

impl CallStatistics {
    fn is_short(&self) -> bool {
        self.short_in_a_row.load(Relaxed) >= self.short_needed.load(Relaxed)
    }

    /// Threads may overwrite each other's step of the two small counters; that only moves the
    /// decision by a call or two.
    fn called(&self, took: Duration, is_short: bool, succeeded: bool) {
        self.calls.fetch_add(1, Relaxed);
        self.time_ns.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Relaxed);
        if !succeeded {
            self.errors.fetch_add(1, Relaxed);
        }
        let in_a_row = self.short_in_a_row.load(Relaxed);
        if !is_short {
            if self.is_short() {
                let needed = self.short_needed.load(Relaxed);
                self.short_needed.store((needed * 2).min(SHORT_CALLS_NEEDED_MAX), Relaxed);
            }
            self.short_in_a_row.store(0, Relaxed);
        } else if in_a_row < SHORT_CALLS_FORGIVE {
            self.short_in_a_row.store(in_a_row + 1, Relaxed);
        } else {
            self.short_needed.store(SHORT_CALLS_NEEDED, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_millis(1);
    const SHORT: bool = true;
    const LONG: bool = false;

    fn short_calls_until_inline(statistics: &CallStatistics) -> u32 {
        (0..)
            .find(|_| {
                statistics.is_short() || {
                    statistics.called(TIME, SHORT, true);
                    false
                }
            })
            .unwrap_or(0)
    }

    #[test]
    fn a_place_on_the_worker_is_earned_lost_and_harder_to_earn_again() {
        let statistics = CallStatistics::default();
        assert_eq!(short_calls_until_inline(&statistics), SHORT_CALLS_NEEDED);
        statistics.called(TIME, LONG, true);
        assert!(!statistics.is_short());
        assert_eq!(short_calls_until_inline(&statistics), 2 * SHORT_CALLS_NEEDED);
        statistics.called(TIME, LONG, false);
        statistics.called(TIME, LONG, false);
        assert_eq!(short_calls_until_inline(&statistics), 4 * SHORT_CALLS_NEEDED);
        assert_eq!(statistics.errors.load(Relaxed), 2);
    }

    #[test]
    fn a_long_past_is_forgiven() {
        let statistics = CallStatistics::default();
        for _ in 0..20 {
            short_calls_until_inline(&statistics);
            statistics.called(TIME, LONG, true);
        }
        assert_eq!(short_calls_until_inline(&statistics), SHORT_CALLS_NEEDED_MAX);
        for _ in 0..=SHORT_CALLS_FORGIVE {
            statistics.called(TIME, SHORT, true);
        }
        statistics.called(TIME, LONG, true);
        assert_eq!(short_calls_until_inline(&statistics), 2 * SHORT_CALLS_NEEDED);
    }
}
