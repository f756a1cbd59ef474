//! Blocking commands: BLPOP and its like wait for an element to pop, XREAD and XREADGROUP for stream entries. A waiting client
//! holds no thread.
//!
//! The client has a place in a queue for each key that it waits for. An observer of commits wakes the
//! clients at the front, however an element was added, and their requests run again.

mod commands;
mod plan;
mod run;
mod streams;
mod waiters;

pub(super) use commands::COMMANDS;
pub(crate) use plan::Plan;
pub(super) use run::{run, run_within};
pub(super) use streams::{run as run_reading, run_within as run_reading_within};
pub(crate) use waiters::Waiters;
pub(super) use waiters::{Unblocked, Waiting};
