//! Timers: functions of procedure files that are run once some time is over, for no request.

use std::time::Duration;

/// A timer, whose time begins when [`Runtime::take_timers`](crate::Runtime::take_timers) gives it.
#[derive(Clone, Debug)]
pub struct Timer {
    /// No two have the same one, whatever virtual machine they are of.
    pub number: u64,
    /// After this [`Runtime::run_timer`](crate::Runtime::run_timer) is to be called.
    pub delay: Duration,
    /// The procedure that made it; `None` if a file did so when it was loaded.
    pub maker: Option<String>,
}

impl Timer {
    /// What it is called in messages and in the log.
    #[must_use]
    pub fn name(&self) -> &str {
        self.maker.as_deref().unwrap_or("init_worker")
    }
}
