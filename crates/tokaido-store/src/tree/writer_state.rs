//! What the writer has while there is one, and leaves to the next.

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
    /// A view of the base that is not held, since making one takes longer than a short group.
    pub(super) base: BaseView,
    /// While somebody observes.
    pub(super) follower: Option<Follower>,
}
