//! Keyspace events: messages about every change of a key, if the setting `notify-keyspace-events` enables
//! them.
//!
//! An observer of commits reports what has changed, whoever changed it. A command
//! records its names for the changes under the number of its transaction.

mod classes;
mod names;
mod notifier;

pub(crate) use classes::{Classes, LETTERS};
pub(crate) use notifier::Notifier;
