//! CLIENT TRACKING: notifies clients that cache what they read of keys that have changed since.
//!
//! An observer of commits reports the changes, whoever made them. No change is missed
//! between a read and its entry in the table: see [`Reader`].

mod commands;
mod listener;
mod prefixes;
mod reader;
mod request;
mod session;
mod table;
mod tracker;

pub(super) use commands::COMMANDS;
pub(crate) use reader::Reader;
pub(super) use request::{begin, end, note_reads};
pub(super) use session::Tracking;
pub(super) use tracker::Authored;
pub(crate) use tracker::Tracker;
