//! Synchronisation primitives: the standard library's, or shuttle's, with which tests choose every
//! interleaving.

#[cfg(feature = "shuttle")]
pub(super) use shuttle::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering},
};
#[cfg(not(feature = "shuttle"))]
pub(super) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering},
};

use super::shard::Shard;

/// Locks a shard. If a panic left it half changed, it is emptied: a cache may forget, but must not
/// answer wrongly, and one request's panic must not take the others down.
#[cfg(not(feature = "shuttle"))]
pub(super) fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(|poisoned| {
        let mut guard = poisoned.into_inner();
        guard.clear();
        shard.clear_poison();
        guard
    })
}

/// Locks a shard. A panic ends shuttle's whole execution, so there is nothing to repair.
#[cfg(feature = "shuttle")]
pub(super) fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().expect("shuttle stops at the first panic")
}
