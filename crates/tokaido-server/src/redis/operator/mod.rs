//! Commands to observe a server and change its settings as it runs: CONFIG, SLOWLOG, LATENCY, MONITOR.

mod command_statistics;
mod config;
mod instruments;
mod latency;
mod monitors;
mod shown;
mod slow_log;

pub(super) use command_statistics::Row;
pub(super) use config::COMMANDS as CONFIG;
pub(crate) use instruments::Instruments;
pub(super) use instruments::Ran;
pub(super) use latency::COMMANDS as LATENCY;
pub(super) use monitors::{COMMANDS as MONITOR, Monitoring};
pub(super) use slow_log::COMMANDS as SLOWLOG;
