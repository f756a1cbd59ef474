//! Everything that observes running commands, and where each is recorded.

use std::{
    sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use tokaido_wire::resp::Request;

use super::{
    command_statistics::CommandStatistics, latency::LatencyLog, monitors::Monitors,
    slow_log::SlowLog,
};
use crate::{
    config::RedisConfig,
    redis::{clients::Client, command::Command},
    shared::wall_clock_us,
};

/// What a server records of its commands, and the settings that select them.
pub(crate) struct Instruments {
    /// -1: records none.
    pub(super) slower_than_us: AtomicI64,
    /// 0: records none.
    pub(super) latency_threshold_ms: AtomicU64,
    pub(super) slow_entries_max: AtomicUsize,
    pub(super) slow_log: SlowLog,
    pub(super) latency: LatencyLog,
    pub(in crate::redis) statistics: CommandStatistics,
    pub(in crate::redis) monitors: Monitors,
}

/// A command that has run.
pub(in crate::redis) struct Ran<'r> {
    pub(in crate::redis) command: &'static Command,
    pub(in crate::redis) request: Request<'r>,
    pub(in crate::redis) client: &'r Client,
    pub(in crate::redis) took: Duration,
    pub(in crate::redis) has_failed: bool,
}

impl Instruments {
    pub(crate) fn new(config: &RedisConfig) -> Self {
        Self {
            slower_than_us: AtomicI64::new(config.slowlog_slower_than_us),
            latency_threshold_ms: AtomicU64::new(config.latency_threshold_ms),
            slow_entries_max: AtomicUsize::new(config.slowlog_entries_max),
            slow_log: SlowLog::default(),
            latency: LatencyLog::default(),
            statistics: CommandStatistics::default(),
            monitors: Monitors::default(),
        }
    }

    /// Records a command after its reply.
    pub(in crate::redis) fn note(&self, ran: &Ran<'_>) {
        let took_us = u64::try_from(ran.took.as_micros()).unwrap_or(u64::MAX);
        self.statistics.note(ran.command, took_us, ran.has_failed);
        let slower_than_us = self.slower_than_us.load(Relaxed);
        if u64::try_from(slower_than_us).is_ok_and(|slow_us| took_us >= slow_us) {
            self.slow_log.note(ran, took_us, self.slow_entries_max.load(Relaxed));
        }
        let threshold_ms = self.latency_threshold_ms.load(Relaxed);
        if threshold_ms > 0 && took_us / 1000 >= threshold_ms {
            self.latency.note(ran.command, wall_clock_us() / 1_000_000, took_us / 1000);
        }
        self.monitors.show(ran.client, ran.command, ran.request);
    }
}
