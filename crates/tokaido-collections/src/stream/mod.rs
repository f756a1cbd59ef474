//! Streams: entries ordered by ids, which only grow, and groups of consumers that share them.
//!
//! A stream is never packed: it grows at its end, and writing a whole record for each entry would
//! cost more than putting one element. It may be empty, and stays until it is deleted.
//!
//! An entry that a group has delivered but that is not acknowledged is *pending*: an element by id
//! for the group, and one for its consumer. That does not change the record, since readers of the
//! stream see no difference. Adding or removing entries, groups and consumers does.

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
    /// Pending entries, by group and id.
    pub(super) const PENDING: u8 = 5;
    /// The owners of pending entries, by group, consumer and id.
    pub(super) const OWNED: u8 = 6;
}
