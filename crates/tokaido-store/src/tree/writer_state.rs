//! The writer's state, which it leaves to the next writer.

use crate::CommitNumber;

use super::{
    base::BaseView, catalog::TreeMap, log::LogEnd, memtable::MemtableWriter, published::Follower,
};

pub(super) struct WriterState {
    pub(super) memtable: MemtableWriter,
    pub(super) log: LogEnd,
    /// The last transaction that was committed.
    pub(super) sequence: CommitNumber,
    pub(super) next_tree: u32,
    pub(super) trees: TreeMap,
    /// An unheld view of the base, kept since making one takes longer than a short group.
    pub(super) base: BaseView,
    /// Set while there are observers.
    pub(super) follower: Option<Follower>,
}
