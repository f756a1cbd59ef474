//! What the memtable's threads share: the system's atomics and locks, or shuttle's where the tests
//! choose every interleaving.

#[cfg(feature = "shuttle")]
pub(super) use shuttle::sync::{
    Mutex, PoisonError,
    atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering},
};
#[cfg(not(feature = "shuttle"))]
pub(super) use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering},
};
