//! The memtable: every write since the last checkpoint, in memory.
//!
//! One writer, many readers. A record is found by hash and met in order by a list, into which a
//! B-tree leads; both ways lead to the same node, which holds a chain of versions, newest first, so
//! that a reader of an older commit finds what it saw. Nothing is freed or moved until the whole
//! table goes, so a reader never loses what it points to.
//!
//! Finding a key takes no lock, and writing one only for more memory. Whoever asks for an order, be
//! it a scan or the checkpoint, takes a lock if there are nodes that have no place in it yet, and
//! gives them theirs; others who ask meanwhile wait for that. The steps of a scan take none.

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
