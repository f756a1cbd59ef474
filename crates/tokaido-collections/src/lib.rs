//! Hashes, sets, lists, sorted sets and streams, built on what every transaction offers: records of
//! a kind, and elements of collections.
//!
//! A small collection is *packed*: its texts are in its record's value, and a change rewrites that.
//! One with more or longer elements than [`Packing`] allows is *large*: each element is a record of
//! its own, and the collection's record counts them. A large one never becomes packed again.
//! docs/file-format.md describes both forms, byte by byte.
//!
//! Empty collections do not exist: the record is deleted with the last element. Only streams have
//! no packed form, and may be empty. Every change writes the record, so its version reflects it.

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
pub use sorted_set::{SortedSet, Span, count_requested};
pub use stream::{Consumer, Fields, Group, OpenGroup, Pending, State, Stream, StreamId, Trim};

/// The number of elements of a collection, according to its record; for a packed hash it is the
/// number of texts, two for each field.
///
/// # Errors
/// If the record is damaged.
pub fn len(record: &Record<'_>) -> Result<u64, ReadError> {
    match record.collection {
        None => Ok(packed::count(record.value)? as u64),
        Some(_) => place::stored_count(record.value),
    }
}
