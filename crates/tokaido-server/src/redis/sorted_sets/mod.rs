//! Sorted sets: members, each once, ordered by their scores.

mod combine;
mod members;
mod pops;
mod range;
mod ranges;

pub(super) use combine::COMMANDS as COMBINING;
pub(super) use members::{COMMANDS as MEMBERS, Rules, give_scores, sorted_set};
pub(super) use pops::{COMMANDS as POPS, keys_to_pop, pop_from};
pub(super) use ranges::COMMANDS as RANGES;
