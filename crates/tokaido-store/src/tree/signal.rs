//! How writers and the checkpointer communicate: the checkpoint that is to be run, and its outcome.

use std::{
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use crate::{WriteError, mutex::lock};

use super::{catalog::TreeMap, memtable::Memtable};

/// What a checkpoint has to do.
#[derive(Clone)]
pub(super) struct Job {
    pub(super) frozen: Arc<Memtable>,
    /// The last transaction in the frozen memtable.
    pub(super) sequence: u64,
    /// The trees that are in use after it.
    pub(super) trees: TreeMap,
    /// The first segment of the log that is still needed afterwards.
    pub(super) keep_from: u64,
    pub(super) reason: Reason,
}

/// Why a checkpoint is to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// The memtable is full.
    Full,
    /// Somebody has asked for it.
    Wanted,
    /// Nothing has been written for a while.
    Rest,
}

/// What the checkpointer has to do next.
pub(super) enum Waiting {
    Nothing,
    Job(Job),
    /// The store is being closed.
    Stop,
}

/// How writers and the checkpointer communicate.
#[derive(Default)]
pub(super) struct Signal {
    state: Mutex<State>,
    changed: Condvar,
    /// Whether the store was closed. Set while `state` is locked, so that no waiter misses it.
    is_stopping: AtomicBool,
    /// The checkpointer's thread, once there has been a checkpoint to run.
    pub(super) thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct State {
    job: Option<Job>,
    /// Why the last attempt at the job failed.
    failure: Option<String>,
    /// Whether anybody has ever waited for something.
    is_watched: bool,
    /// Whether the log is to be synced before it is due.
    is_sync_wanted: bool,
}

impl Signal {
    pub(super) fn begin(&self, job: Job) {
        let mut state = lock(&self.state);
        state.job = Some(job);
        state.failure = None;
        self.changed.notify_all();
    }

    /// Waits until the job is done. Gives up if it fails, or if nobody is left to do it.
    pub(super) fn wait_for_checkpoint(&self) -> Result<(), WriteError> {
        let mut state = lock(&self.state);
        state.is_watched = true;
        while state.job.is_some() {
            self.check_open()?;
            if let Some(why) = &state.failure {
                let message = format!("the last checkpoint failed: {why}");
                return Err(WriteError::Engine { message });
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }

    /// Refuses to write to a store that was closed: nobody runs its checkpoints or syncs its log in
    /// the background.
    pub(super) fn check_open(&self) -> Result<(), WriteError> {
        if self.is_stopping.load(Ordering::Acquire) {
            let message = "the store was closed; drop its writer and open it again".to_owned();
            return Err(WriteError::Engine { message });
        }
        Ok(())
    }

    pub(super) fn stop(&self) {
        let state = lock(&self.state);
        self.is_stopping.store(true, Ordering::Release);
        // Often nobody has ever waited, and this is a system call.
        if state.is_watched {
            self.changed.notify_all();
        }
    }

    pub(super) fn finish(&self, job: &Job, result: Result<(), String>) {
        let mut state = lock(&self.state);
        // As soon as the tables have changed, the writer may have begun the next job.
        let is_current =
            state.job.as_ref().is_some_and(|current| Arc::ptr_eq(&current.frozen, &job.frozen));
        match result {
            _ if !is_current => {}
            Ok(()) => {
                state.job = None;
                state.failure = None;
            }
            Err(why) => state.failure = Some(why),
        }
        self.changed.notify_all();
    }

    /// Asks for a sync of the log in the background.
    pub(super) fn want_sync(&self) {
        lock(&self.state).is_sync_wanted = true;
        self.changed.notify_all();
    }

    /// Whether a sync was asked for; clears the request.
    pub(super) fn take_sync_wanted(&self) -> bool {
        std::mem::take(&mut lock(&self.state).is_sync_wanted)
    }

    /// What waits for the checkpointer while it does something less urgent.
    pub(super) fn waiting(&self) -> Waiting {
        let state = lock(&self.state);
        if self.is_stopping.load(Ordering::Acquire) {
            return Waiting::Stop;
        }
        match &state.job {
            Some(job) => Waiting::Job(job.clone()),
            None => Waiting::Nothing,
        }
    }

    /// Waits for something to do: a job, or the time for a sync. `None` means to stop. After a
    /// failed job, it waits for `retry`.
    pub(super) fn next(&self, pause: Option<Duration>, retry: Duration) -> Option<Option<Job>> {
        let mut state = lock(&self.state);
        state.is_watched = true;
        loop {
            if self.is_stopping.load(Ordering::Acquire) {
                return None;
            }
            if state.failure.is_none() && state.job.is_some() {
                return Some(state.job.clone());
            }
            if state.is_sync_wanted {
                return Some(None);
            }
            let wait = if state.failure.is_some() { Some(retry) } else { pause };
            let Some(wait) = wait else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let (guard, timeout) =
                self.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner);
            state = guard;
            if timeout.timed_out() {
                state.failure = None;
                return Some(None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_failed_is_given_out_again_after_the_pause() {
        let signal = Signal::default();
        let frozen = Arc::clone(Memtable::create(0).table());
        let trees = TreeMap::default();
        signal.begin(Job { frozen, sequence: 1, trees, keep_from: 1, reason: Reason::Full });
        let (long, short) = (Duration::from_secs(3600), Duration::from_millis(1));
        let job = signal.next(None, long).flatten().expect("it is to be done");
        signal.finish(&job, Err("no room".to_owned()));
        assert!(signal.wait_for_checkpoint().is_err());
        assert!(signal.next(Some(long), short).is_some_and(|work| work.is_none()), "the pause");
        assert!(signal.next(None, long).flatten().is_some(), "the same again");
    }
}
