//! Streams: entries ordered by their ids, and groups of consumers that share them.

mod claims;
mod entries;
mod groups;
mod ids;
mod info;
mod options;
mod pending;
mod reading;
mod writing;

pub(super) use claims::COMMANDS as CLAIMS;
pub(super) use entries::COMMANDS as ENTRIES;
pub(super) use groups::COMMANDS as GROUPS;
pub(super) use info::COMMANDS as INFO;
pub(super) use pending::COMMANDS as PENDING;
pub(crate) use reading::Reading;
pub(super) use reading::{COMMANDS as READING, asks_to_wait, keys, read, read_group, starts};
