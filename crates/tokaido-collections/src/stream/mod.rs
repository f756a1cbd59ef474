//! Streams: entries in the order of their ids, which only grow, and groups of consumers that share them out.
//!
//! A stream has elements from its first entry on. It is not packed: it grows at its end, and to write a whole record for
//! each entry would cost more than to put one element. It may be empty, and stays until it is deleted.
//!
//! What a group has delivered and nobody has acknowledged is *pending*: an element by id for the group, and one for the consumer
//! that has it. That changes no record, as it changes nothing that a reader of the stream would see; entries, groups and consumers
//! that come or go do.

mod consumer;
mod entries;
mod fields;
mod group;
mod id;
mod opened;
mod pending;
mod reads;
mod state;

pub use consumer::Consumer;
pub use entries::Trim;
pub use fields::Fields;
pub use group::Group;
pub use id::StreamId;
pub use opened::OpenGroup;
pub use pending::Pending;
pub use reads::Stream;
pub use state::State;

/// The ranges of elements.
mod tag {
    /// Entries by id.
    pub(super) const ENTRIES: u8 = 1;
    /// Groups by name.
    pub(super) const GROUPS: u8 = 2;
    /// The numbers of consumers, by group and name.
    pub(super) const CONSUMER_NUMBERS: u8 = 3;
    /// Consumers, by group and number.
    pub(super) const CONSUMERS: u8 = 4;
    /// What is pending, by group and id.
    pub(super) const PENDING: u8 = 5;
    /// Who has what is pending, by group, consumer and id.
    pub(super) const OWNED: u8 = 6;
}
