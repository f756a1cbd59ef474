//! The atomics and locks of the memtable: the standard ones, or shuttle's where the tests choose
//! every interleaving.

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
