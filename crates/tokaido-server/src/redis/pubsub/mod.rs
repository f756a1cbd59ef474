//! Publish and subscribe: messages to the subscribers of a channel. Nothing of it is stored.

mod channels;
mod commands;
mod subscriptions;

pub(crate) use channels::{Channels, Message, Names};
pub(super) use commands::{COMMANDS, pong};
pub(super) use subscriptions::Subscriptions;
