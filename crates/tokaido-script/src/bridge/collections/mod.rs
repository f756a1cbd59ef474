//! Hashes, lists, sets, sorted sets and streams, as handles of them in Lua call them: what commands of Redis do
//! to the same values, without a command.

pub(super) mod hash;
pub(super) mod list;
pub(super) mod set;
mod shared;
pub(super) mod sorted_set;
pub(super) mod stream;
pub(super) mod stream_group;
