//! CLIENT TRACKING: clients that keep what they read are told which keys have changed since.
//!
//! What has changed is told by an observer of what is committed, whoever changed it. No change is
//! missed between a read and its entry in the table: see [`Reader`].

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
