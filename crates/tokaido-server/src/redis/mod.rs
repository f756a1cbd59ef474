//! The Redis command layer: one table of commands, and what each does to a store.
//!
//! [`execute`] runs one request for one [`Session`]. It knows no sockets: the caller decodes
//! requests, sends the replies, and owns the snapshot or the writer that commands run on.

mod acl;
mod bitfields;
mod bitmaps;
mod blocking;
mod call;
mod client;
mod clients;
mod cluster;
mod command;
mod connection;
mod counters;
mod coverage;
mod debug;
mod documentation;
mod dump;
mod element_scan;
mod eval;
mod events;
mod execute;
mod expiry;
mod failure;
mod functions;
mod geo;
mod glob;
mod hashes;
mod hyperloglog;
mod info;
mod instead;
mod introspection;
mod keys;
mod keyspace;
mod lcs;
mod lists;
mod memory;
mod number;
mod operator;
mod options;
mod pausing;
mod procedures;
mod protocol;
mod pubsub;
mod random;
mod random_key;
mod reply;
mod scan;
mod script;
mod server;
mod session;
mod set;
mod sets;
mod sort;
mod sorted_sets;
mod standalone;
mod streams;
mod strings;
mod syntax;
mod table;
mod tracking;
mod transactions;
mod written;

#[cfg(test)]
mod tests;

pub(crate) use blocking::Waiters;
pub(crate) use clients::{Clients, show_address};
pub use command::{Access, Command, Group, KeyPositions};
pub use documentation::documentation;
pub(crate) use eval::{ScriptCache, ThreadScripts};
pub(crate) use events::{Classes as EventClasses, LETTERS as EVENT_LETTERS, Notifier};
pub use execute::{Step, execute};
pub(crate) use functions::Functions;
pub(crate) use operator::Instruments;
pub(crate) use protocol::Redis;
pub(crate) use pubsub::{Channels, Message};
pub use reply::Reply;
pub(crate) use scan::Cursors;
pub(crate) use script::ScriptCommands;
pub use session::Session;
pub use table::COMMANDS;
pub(crate) use tracking::Tracker;
