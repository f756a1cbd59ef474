//! Options that apply to all mounted databases.

use std::time::Duration;

/// How mounted databases are maintained.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How often to check whether the files of constant databases were replaced: one `stat` call
    /// for each.
    pub look_interval: Duration,
    /// About how many records of each cache one call of [`reclaim`](crate::WriteTransaction::reclaim) looks
    /// at.
    pub sweep_records_max: usize,
}

/// The default of [`Options::look_interval`].
pub const LOOK_INTERVAL_DEFAULT: Duration = Duration::from_millis(100);

/// The default of [`Options::sweep_records_max`].
pub const SWEEP_RECORDS_DEFAULT: usize = 4096;

impl Default for Options {
    fn default() -> Self {
        Self { look_interval: LOOK_INTERVAL_DEFAULT, sweep_records_max: SWEEP_RECORDS_DEFAULT }
    }
}
