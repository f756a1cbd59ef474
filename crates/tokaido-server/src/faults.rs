//! Faults of procedures: what the log has of them, and what callers find it by.

use std::sync::{
    OnceLock,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use crate::shared::wall_clock_us;

/// Writes the one line that the log has of a request whose procedure is at fault, and gives the
/// request the id that stands in it. No other request has the same, also of an earlier start.
pub(crate) fn log(procedure: &str, message: &str, traceback: &str) -> String {
    static STARTED_US: OnceLock<u64> = OnceLock::new();
    static COUNT: AtomicU64 = AtomicU64::new(1);
    let started_us = STARTED_US.get_or_init(wall_clock_us);
    let request_id = format!("{started_us:x}-{}", COUNT.fetch_add(1, Relaxed));
    // As values of their own, message and traceback are quoted: however many lines they have, the
    // log gets one.
    tracing::error!(procedure, request_id, error = message, traceback, "a procedure failed");
    request_id
}
