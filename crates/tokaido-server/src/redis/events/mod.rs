//! Keyspace events: messages about every change of a key, if the setting `notify-keyspace-events` asks for
//! them.
//!
//! What has changed is told by an observer of what is committed, whoever changed it. What a command calls
//! its change, it notes under the number of its transaction.

mod classes;
mod names;
mod notifier;

pub(crate) use classes::{Classes, LETTERS};
pub(crate) use notifier::Notifier;
