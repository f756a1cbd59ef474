//! The memcached protocol: text with meta commands, and binary. The manual is `docs/memcached.md`.
//!
//! The codec has the tables of commands, `COMMANDS` and `OPERATIONS` of `tokaido_wire::memcached`.
//! From them follow the rights that a command needs, and the page of documentation. `operations` is
//! what all commands do to records; `text`, `meta` and `binary` are their three forms.

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

/// The version of memcached whose commands are supported; clients enable features by it.
pub(crate) const MEMCACHED_VERSION: &str = "1.6.18";
