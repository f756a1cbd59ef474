//! The Tokaido server: protocols, workers and the writer around a store and its procedures.

pub mod redis;
mod shared;

pub use shared::{Counters, Shared, SharedOptions};
