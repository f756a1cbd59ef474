//! Hashes, sets, lists, sorted sets and streams, made of what every transaction can do: records of their kind,
//! and the elements of collections.
//!
//! A small collection is *packed* into its record: its texts stand in the record's value, and a change
//! writes the record again. One that has more elements, or longer ones, than [`Packing`] says is *large*: each
//! element is a record of its own, and the collection's record counts them. A large one does not
//! become a packed one again. docs/file-format.md has both forms, byte by byte.
//!
//! What is empty is not there: the record goes with the last element. Only a stream has no packed form, and may be empty. Every change writes the
//! record, so that its version tells of it.

#![deny(missing_docs)]

mod algebra;
mod hash;
mod list;
mod name_hash;
mod packed;
mod place;
mod sampling;
mod set;
mod sorted_set;
mod stream;
mod table;

use tokaido_store::{ReadError, Record};

pub use algebra::{intersect, subtract, unite};
pub use hash::Hash;
pub use list::{End, List};
pub use packed::Packing;
pub use place::Random;
pub use set::Set;
pub use sorted_set::{SortedSet, Span};
pub use stream::{Consumer, Fields, Group, OpenGroup, Pending, State, Stream, StreamId, Trim};

/// The number of elements of a collection, as its record tells; of a hash that is packed, it is that of its
/// texts, two for each field.
///
/// # Errors
/// If the record is damaged.
pub fn len(record: &Record<'_>) -> Result<u64, ReadError> {
    match record.collection {
        None => Ok(packed::count(record.value)? as u64),
        Some(_) => place::stored_count(record.value),
    }
}
