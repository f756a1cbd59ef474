//! Locking mutexes that a panic leaves whole.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, whether or not a thread has panicked with it: what the mutexes of this crate guard
/// is replaced as a whole, and no caller's code runs under them, so a panic leaves it whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
