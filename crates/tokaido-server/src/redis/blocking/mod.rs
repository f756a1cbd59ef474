//! Commands that wait: for an element to pop, BLPOP and its like, or for entries of streams, XREAD and XREADGROUP. A client that
//! waits holds no thread.
//!
//! It stands in a queue for each key that it waits for. An observer of what is committed wakes those
//! in front, whichever way an element came there, and their requests run again.

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
