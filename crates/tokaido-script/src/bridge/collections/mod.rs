//! Hashes, lists, sets, sorted sets and streams, as their handles in Lua call them: what Redis commands do to
//! the same values, without a command.

pub(super) mod hash;
pub(super) mod list;
pub(super) mod set;
mod shared;
pub(super) mod sorted_set;
pub(super) mod stream;
pub(super) mod stream_group;
