//! Sorted sets: members, each once, ordered by score, and by bytes where scores are equal.
//!
//! A large one has two ranges of elements, by the hash of the member and by rank, and, once ranks were requested, the counts
//! that `ranks.rs` describes.

mod counting;
mod ranks;
mod reads;
mod record;
mod score;
mod writes;

pub use counting::count_requested;
pub use reads::SortedSet;
pub(super) use score::SCORE_LEN;
pub use score::Span;
