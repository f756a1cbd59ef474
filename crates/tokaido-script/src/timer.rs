//! Timers: functions of procedure files that run after some time, for no request.

use std::time::Duration;

/// A timer. Its time begins when [`Runtime::take_timers`](crate::Runtime::take_timers) gives it.
#[derive(Clone, Debug)]
pub struct Timer {
    /// Unique across all virtual machines.
    pub number: u64,
    /// How long until [`Runtime::run_timer`](crate::Runtime::run_timer) is to be called.
    pub delay: Duration,
    /// The procedure that made it; `None` if a file did so when it was loaded.
    pub maker: Option<String>,
}

impl Timer {
    /// Its name in messages and in the log.
    #[must_use]
    pub fn name(&self) -> &str {
        self.maker.as_deref().unwrap_or("init_worker")
    }
}
