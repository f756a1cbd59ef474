//! The cache. With `--features shuttle`, under all interleavings that shuttle tries; else as it is.

#[cfg(not(feature = "shuttle"))]
mod eviction;
#[cfg(not(feature = "shuttle"))]
mod expiry;
#[cfg(feature = "shuttle")]
mod interleavings;
#[cfg(not(feature = "shuttle"))]
mod memory;
#[cfg(not(feature = "shuttle"))]
mod model;
#[cfg(not(feature = "shuttle"))]
mod semantics;
#[cfg(not(feature = "shuttle"))]
mod stress;
mod support;
