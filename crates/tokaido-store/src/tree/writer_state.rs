//! What the writer has while there is one, and leaves to the next.

use crate::CommitNumber;

use super::{catalog::TreeMap, log::LogEnd, memtable::MemtableWriter};

pub(super) struct WriterState {
    pub(super) memtable: MemtableWriter,
    pub(super) log: LogEnd,
    /// The last transaction that was committed.
    pub(super) sequence: CommitNumber,
    pub(super) next_tree: u32,
    pub(super) trees: TreeMap,
}
