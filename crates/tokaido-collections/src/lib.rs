//! Hashes, sets, lists and sorted sets, made of what every transaction can do: records of their kind,
//! and the elements of collections.
//!
//! A small collection is *packed* into its record: its texts stand in the record's value, and a change
//! writes the record again. One that has more elements, or longer ones, than [`Packing`] says is *large*: each
//! element is a record of its own, and the collection's record counts them. A large one does not
//! become a packed one again. docs/file-format.md has both forms, byte by byte.
//!
//! What is empty is not there: the record goes with the last element. Every change writes the
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
mod table;

pub use algebra::{intersect, subtract, unite};
pub use hash::Hash;
pub use list::{End, List};
pub use packed::Packing;
pub use place::Random;
pub use set::Set;
pub use sorted_set::{SortedSet, Span};
