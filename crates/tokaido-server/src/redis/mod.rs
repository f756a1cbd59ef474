//! The Redis command layer: one table of commands, and what each does to a store.
//!
//! [`execute`] runs one request for one [`Session`]. It knows no sockets: the caller decodes
//! requests, sends the replies, and owns the snapshot or the writer that commands run on.

mod call;
mod client;
mod clients;
mod command;
mod connection;
mod counters;
mod documentation;
mod execute;
mod expiry;
mod failure;
mod glob;
mod info;
mod introspection;
mod keys;
mod keyspace;
mod options;
mod procedures;
mod scan;
mod server;
mod session;
mod set;
mod strings;
mod syntax;
mod table;
mod transactions;

#[cfg(test)]
mod tests;

pub(crate) use clients::Clients;
pub use command::{Access, Command, Group, KeyPositions};
pub use documentation::documentation;
pub use execute::{Context, Step, Target, execute};
pub(crate) use scan::Cursors;
pub use session::Session;
pub use table::COMMANDS;
