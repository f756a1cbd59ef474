//! The memtable: every write since the last checkpoint, in memory.
//!
//! One writer, many readers, no locks between them. A record is found by hash and met in order by
//! a skip list; both lead to the same node, which holds a chain of versions, newest first, so that
//! a reader of an older commit finds what it saw. Nothing is freed or moved until the whole table
//! goes, so a reader never waits and never loses what it points to.

mod arena;
mod index;
mod list;
mod node;
mod sync;
mod table;

#[cfg(test)]
mod tests;

pub(super) use node::{Node, Seen};
pub(super) use table::{Memtable, MemtableWriter, Written};
