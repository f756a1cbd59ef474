//! Libraries of functions that clients load: FUNCTION and its subcommands, and what FCALL calls of them.
//!
//! All libraries stand in one record of the store's internal database, with a digest of them. Whoever calls a
//! function reads the record in the transaction of the call, and has what it kept of the libraries if the digest is
//! the same: so a call sees what is committed, or what its own transaction has loaded.

mod commands;
mod describe;
mod library;
mod metadata;
mod payload;
mod run;
mod thread;

pub(super) use commands::COMMANDS;
pub(crate) use library::Functions;
pub(super) use run::{FunctionCall, LibraryChange, call_in, change_in, key_count, wanted};
pub(super) use thread::ThreadFunctions;
