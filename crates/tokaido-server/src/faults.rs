//! Faults of procedures: the log's record of them, and the id by which callers find it.

use std::sync::{
    Arc, Mutex, OnceLock, PoisonError,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use crate::shared::wall_clock_us;

/// Logs a request whose procedure is at fault in a single line, and returns the request id in that
/// line. No other request has the same id, not even one from an earlier start.
pub(crate) fn log(procedure: &str, message: &str, traceback: &str) -> String {
    static STARTED_US: OnceLock<u64> = OnceLock::new();
    static COUNT: AtomicU64 = AtomicU64::new(1);
    let started_us = STARTED_US.get_or_init(wall_clock_us);
    let request_id = format!("{started_us:x}-{}", COUNT.fetch_add(1, Relaxed));
    // As values of their own, message and traceback are quoted, so the log gets a single line
    // however many lines they have.
    tracing::error!(procedure, request_id, error = message, traceback, "a procedure failed");
    request_id
}

/// The last fault of something that is called repeatedly. A fault that stays the same is logged once.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastFault(Arc<Mutex<Last>>);

#[derive(Debug, Default)]
struct Last {
    /// The fault's message, and the request id in its log line.
    logged: Option<(String, String)>,
    /// Whether the call in progress had this fault.
    is_of_this_call: bool,
}

impl LastFault {
    /// As [`log`](log()), unless the previous call had the same fault: then returns the id of its line.
    pub(crate) fn log(&self, procedure: &str, message: &str, traceback: &str) -> String {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.is_of_this_call = true;
        if let Some((_, id)) = last.logged.as_ref().filter(|(logged, _)| logged == message) {
            return id.clone();
        }
        let id = log(procedure, message, traceback);
        last.logged = Some((message.to_owned(), id.clone()));
        id
    }

    /// To be called after each call; returns whether it had a fault, which has then been logged.
    /// After a call without one, any fault is logged again.
    pub(crate) fn end_call(&self) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let had_fault = std::mem::take(&mut last.is_of_this_call);
        if !had_fault {
            last.logged = None;
        }
        had_fault
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_logged_again_once_it_is_another_or_there_was_none() {
        let faults = LastFault::default();
        let first = faults.log("tick", "no more tea", "");
        assert!(faults.end_call());
        assert_eq!(faults.log("tick", "no more tea", ""), first);
        assert!(faults.end_call());
        let other = faults.log("tick", "no more rice", "");
        assert!(faults.end_call());
        assert_ne!(other, first);
        assert!(!faults.end_call());
        assert_ne!(faults.log("tick", "no more rice", ""), other);
    }
}
