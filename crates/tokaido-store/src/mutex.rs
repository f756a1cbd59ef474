//! Locking of mutexes that a panic cannot leave inconsistent.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, even if a thread has panicked while holding it. What the mutexes of this crate
/// guard is replaced as a whole, and no caller's code runs under them, so a panic leaves it intact.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
