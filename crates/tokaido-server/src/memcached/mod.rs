//! The memcached protocol: text with meta commands, and binary. `docs/memcached.md` is its manual.
//!
//! The tables of commands are the codec's, `COMMANDS` and `OPERATIONS` of `tokaido_wire::memcached`; what a command may do
//! follows from it here, and so does the page of documentation. `operations` is what all of them do to
//! records, `text`, `meta` and `binary` say it in their own words.

mod access;
mod binary;
mod clients;
mod documentation;
mod failure;
mod figures;
mod meta;
mod operations;
mod protocol;
mod session;
mod state;
mod stats;
mod text;

#[cfg(test)]
mod tests;

pub(crate) use clients::Clients;
pub use documentation::documentation;
pub(crate) use protocol::{Memcached, refusal};
pub(crate) use session::Session;
pub(crate) use state::State;

/// The version of memcached whose commands are understood; clients switch features on by it.
pub(crate) const MEMCACHED_VERSION: &str = "1.6.18";
