//! Who has to wait, so that a command that keeps losing races gets through.

use std::sync::PoisonError;

use super::sync::{AtomicBool, Mutex, MutexGuard, Ordering};

/// The turn to write, taken only by a command that keeps losing races. While one has it, the others
/// wait before they begin; one that has already begun may still win, once.
#[derive(Default)]
pub(super) struct Turn {
    is_taken: AtomicBool,
    queue: Mutex<()>,
}

/// The turn, until it is dropped.
pub(super) struct Taken<'t> {
    turn: &'t Turn,
    _queue: MutexGuard<'t, ()>,
}

impl Turn {
    /// Lets commands that have taken the turn go first. While none has, this is one load.
    #[inline]
    pub(super) fn wait(&self) {
        if self.is_taken.load(Ordering::Acquire) {
            drop(self.queue());
        }
    }

    pub(super) fn take(&self) -> Taken<'_> {
        let queue = self.queue();
        self.is_taken.store(true, Ordering::Release);
        Taken { turn: self, _queue: queue }
    }

    /// It guards no data that a panic could leave half changed.
    fn queue(&self) -> MutexGuard<'_, ()> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.turn.is_taken.store(false, Ordering::Release);
    }
}
