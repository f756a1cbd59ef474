//! CLIENT PAUSE: for a time the writer runs nothing, or no request is answered at all. No thread is
//! blocked for a request: requests stay in the writer's queue, or their connections sleep.
//!
//! A pause holds for every protocol, since whoever pauses a server wants its data to stay as it is.
//! Invariant: once writes are paused, no job of the writer begins, except the one that has paused
//! them. So a pause must begin on the writer, unless one is in force already.

use std::{
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::Notify;

/// Which requests wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Paused {
    /// Requests that write.
    Writes,
    /// Every request.
    All,
}

/// Which requests wait now, and until when.
#[derive(Default)]
pub(crate) struct Pause {
    /// Whether there may be a pause. Changed only under the lock.
    is_on: AtomicBool,
    state: Mutex<State>,
    /// Tells threads that the pause is over, or is another one.
    changed: Condvar,
    /// The same for tasks.
    changed_for_tasks: Notify,
    /// Whether the sweep of expired records is suspended until it is told to go on.
    keeps_expired: AtomicBool,
}

#[derive(Default)]
struct State {
    pause: Option<(Paused, Instant)>,
    /// Whether the server is stopping: waiting requests are given up.
    is_closed: bool,
}

impl State {
    /// The pause, if it is not over.
    fn current(&self) -> Option<(Paused, Instant)> {
        self.pause.filter(|(_, until)| *until > Instant::now())
    }
}

impl Pause {
    /// Pauses until then. A pause that lasts longer, or holds up more, is not shortened or narrowed.
    pub(crate) fn begin(&self, paused: Paused, until: Instant) {
        self.change(|state| {
            let (held, longest) = state.current().unwrap_or((paused, until));
            state.pause = Some((held.max(paused), longest.max(until)));
        });
    }

    /// As [`begin`](Self::begin), but only if writes are paused. Returns whether they are.
    pub(crate) fn prolong(&self, paused: Paused, until: Instant) -> bool {
        let mut state = self.lock();
        let Some((held, longest)) = state.current() else { return false };
        state.pause = Some((held.max(paused), longest.max(until)));
        drop(state);
        self.announce();
        true
    }

    /// Ends the pause.
    pub(crate) fn end(&self) {
        self.change(|state| state.pause = None);
    }

    /// Makes waiting requests give up, since the server is stopping.
    pub(crate) fn close(&self) {
        self.change(|state| state.is_closed = true);
    }

    /// Whether writes wait.
    #[inline]
    pub(crate) fn holds_writes(&self) -> bool {
        self.is_on.load(Ordering::Relaxed) && self.looks_on()
    }

    /// Whether every request waits.
    #[inline]
    pub(crate) fn holds_all(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
            && self.lock().current().is_some_and(|(paused, _)| paused == Paused::All)
    }

    #[cold]
    fn looks_on(&self) -> bool {
        let mut state = self.lock();
        let is_on = state.current().is_some();
        if !is_on {
            state.pause = None;
            self.is_on.store(false, Ordering::Relaxed);
        }
        is_on
    }

    /// Waits until writes may go on, but no longer than `timeout`. Returns whether they are given up.
    pub(crate) fn wait(&self, timeout: Duration) -> bool {
        let state = self.lock();
        let left =
            state.current().map(|(_, until)| until.saturating_duration_since(Instant::now()));
        match left {
            Some(left) if !state.is_closed => {
                let waited = self.changed.wait_timeout(state, left.min(timeout));
                waited.unwrap_or_else(PoisonError::into_inner).0.is_closed
            }
            left => left.is_some() && state.is_closed,
        }
    }

    /// Waits until these requests need not wait any more, or the server stops.
    pub(crate) async fn until_over(&self, waiting: Paused) {
        while self.is_on.load(Ordering::Relaxed) {
            let changed = self.changed_for_tasks.notified();
            let mut changed = std::pin::pin!(changed);
            // From here on no change is missed.
            changed.as_mut().enable();
            let until = {
                let state = self.lock();
                match state.current() {
                    Some((held, until)) if held >= waiting && !state.is_closed => until,
                    _ => return,
                }
            };
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep_until(until.into()) => {}
            }
        }
    }

    /// Whether expired records are left in place.
    pub(crate) fn keeps_expired(&self) -> bool {
        self.keeps_expired.load(Ordering::Relaxed)
    }

    /// Leaves expired records in place, or has them removed again.
    pub(crate) fn keep_expired(&self, keeps: bool) {
        self.keeps_expired.store(keeps, Ordering::Relaxed);
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        self.is_on.store(state.pause.is_some(), Ordering::Relaxed);
        drop(state);
        self.announce();
    }

    fn announce(&self) {
        self.changed.notify_all();
        self.changed_for_tasks.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(1000);

    #[test]
    fn the_longer_and_the_wider_pause_stays() {
        let pause = Pause::default();
        assert!(!pause.holds_writes() && !pause.holds_all());
        assert!(!pause.prolong(Paused::All, Instant::now() + LONG));
        pause.begin(Paused::Writes, Instant::now() + LONG);
        assert!(pause.holds_writes() && !pause.holds_all());
        assert!(pause.prolong(Paused::All, Instant::now()));
        assert!(pause.holds_writes() && pause.holds_all());
        pause.begin(Paused::Writes, Instant::now());
        assert!(pause.holds_all());
        pause.end();
        assert!(!pause.holds_writes() && !pause.holds_all());
    }

    #[test]
    fn a_pause_ends_by_itself() {
        let pause = Pause::default();
        pause.begin(Paused::All, Instant::now());
        assert!(!pause.holds_all() && !pause.holds_writes() && !pause.wait(LONG));
    }

    #[test]
    fn who_waits_is_told_of_the_end_and_of_the_stop() {
        let pause = Pause::default();
        pause.begin(Paused::All, Instant::now() + LONG);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let runtime =
                    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
                runtime.block_on(pause.until_over(Paused::All));
            });
            let writer = scope.spawn(|| pause.wait(LONG));
            pause.end();
            waiting.join().unwrap();
            assert!(!writer.join().unwrap());
        });
        pause.begin(Paused::Writes, Instant::now() + LONG);
        pause.close();
        assert!(pause.wait(LONG), "it waits although the server stops");
    }
}
