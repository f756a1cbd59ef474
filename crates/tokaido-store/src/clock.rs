//! Where a transaction gets its time from.

use std::time::{SystemTime, UNIX_EPOCH};

/// The clock of a store. A transaction reads it once, when it begins, so that a procedure that is
/// run again after a conflict sees time stand still. Tests substitute a clock that they control.
pub trait Clock: Send + Sync {
    /// Milliseconds since the Unix epoch.
    fn now_ms(&self) -> u64;
}

/// The machine's wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}
