//! The memtable: every write since the last checkpoint, in memory.
//!
//! There is one writer and many readers. A hash index finds a record by key. A list, searched by a
//! B-tree, keeps the records in order. Both lead to the same node, which holds a chain of versions,
//! newest first, so that a reader of an older commit finds what it saw. Nothing is freed or moved
//! until the whole table is dropped, so a reader never loses what it points to.
//!
//! Finding a key takes no lock; writing one takes a lock only to get more memory. A scan or a
//! checkpoint needs the order. If some nodes have no place in it yet, it takes a lock and links
//! them; others that need the order meanwhile wait for that. The steps of a scan take no lock.

mod arena;
mod chain;
mod index;
mod list;
mod node;
mod order_index;
mod sync;
mod table;
mod walk;

#[cfg(test)]
mod tests;

pub(super) use chain::Chain;
pub(super) use node::{Node, Seen};
pub(super) use table::{Memtable, MemtableWriter};
pub(super) use walk::Walk;
