//! Libraries of functions that clients load: FUNCTION and its subcommands, and the functions that FCALL calls.
//!
//! One record of the store's internal database holds all libraries, with their digest. A call of a function reads
//! the record in its own transaction, and uses the libraries that its thread has kept if the digest is the same. So
//! a call sees what is committed, or what its own transaction has loaded.

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
