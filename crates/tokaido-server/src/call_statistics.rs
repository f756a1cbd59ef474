//! Statistics of each procedure: how long its calls take, and so where they may run.
//!
//! A procedure earns its place on the event loop. One that is new, or has been slow lately, runs on
//! a pool thread, where only its own client waits for it. One whose calls have been short runs on
//! the worker itself, which saves two thread hops.

use std::{
    sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// Short calls in a row after which a procedure runs on the workers.
const SHORT_CALLS_NEEDED: u32 = 3;

/// Each time a procedure loses its place, it needs twice as many, up to this.
const SHORT_CALLS_NEEDED_MAX: u32 = 1 << 12;

/// After so many short calls in a row the past is forgotten: a call can look long just because the
/// machine was busy.
const SHORT_CALLS_FORGIVE: u32 = 1 << 16;

/// Calls of one procedure, from all threads. On a cache line of its own, since every worker that
/// calls the procedure writes to it.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct CallStatistics {
    pub(crate) calls: AtomicU64,
    pub(crate) refusals: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) time_ns: AtomicU64,
    short_in_a_row: AtomicU32,
    short_needed: AtomicU32,
}

impl Default for CallStatistics {
    fn default() -> Self {
        Self {
            calls: AtomicU64::new(0),
            refusals: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            time_ns: AtomicU64::new(0),
            short_in_a_row: AtomicU32::new(0),
            short_needed: AtomicU32::new(SHORT_CALLS_NEEDED),
        }
    }
}

impl CallStatistics {
    /// The statistics of a procedure that replaces one of the same name: the counts go on, but it
    /// has yet to earn its place on the workers.
    pub(crate) fn after(&self) -> Self {
        let copy = |counter: &AtomicU64| AtomicU64::new(counter.load(Relaxed));
        Self {
            calls: copy(&self.calls),
            refusals: copy(&self.refusals),
            errors: copy(&self.errors),
            time_ns: copy(&self.time_ns),
            ..Self::default()
        }
    }

    pub(crate) fn is_short(&self) -> bool {
        self.short_in_a_row.load(Relaxed) >= self.short_needed.load(Relaxed)
    }

    /// Counts a call without a result: the procedure refused, as it was written to, or it failed.
    pub(crate) fn failed(&self, is_refusal: bool) {
        let counter = if is_refusal { &self.refusals } else { &self.errors };
        counter.fetch_add(1, Relaxed);
    }

    /// Adds the time of a call, or of its part after a wait.
    pub(crate) fn took(&self, took: Duration) {
        self.time_ns.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    /// Counts a call. Threads may overwrite each other's update of the two small counters; that
    /// only shifts the decision by a call or two.
    pub(crate) fn called(&self, took: Duration, is_short: bool) {
        self.calls.fetch_add(1, Relaxed);
        self.took(took);
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
                    statistics.called(TIME, SHORT);
                    false
                }
            })
            .unwrap_or(0)
    }

    #[test]
    fn a_place_on_the_worker_is_earned_lost_and_harder_to_earn_again() {
        let statistics = CallStatistics::default();
        assert_eq!(short_calls_until_inline(&statistics), SHORT_CALLS_NEEDED);
        statistics.called(TIME, LONG);
        assert!(!statistics.is_short());
        assert_eq!(short_calls_until_inline(&statistics), 2 * SHORT_CALLS_NEEDED);
        statistics.called(TIME, LONG);
        statistics.called(TIME, LONG);
        assert_eq!(short_calls_until_inline(&statistics), 4 * SHORT_CALLS_NEEDED);
    }

    #[test]
    fn a_long_past_is_forgiven() {
        let statistics = CallStatistics::default();
        for _ in 0..20 {
            short_calls_until_inline(&statistics);
            statistics.called(TIME, LONG);
        }
        assert_eq!(short_calls_until_inline(&statistics), SHORT_CALLS_NEEDED_MAX);
        for _ in 0..=SHORT_CALLS_FORGIVE {
            statistics.called(TIME, SHORT);
        }
        statistics.called(TIME, LONG);
        assert_eq!(short_calls_until_inline(&statistics), 2 * SHORT_CALLS_NEEDED);
    }
}
