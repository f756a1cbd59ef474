//! What a group of transactions has changed, read from the frame that went to the log.

use crate::{Change, CommitNumber, TransactionChanges, What, record};

use super::{
    catalog::{self, CATALOG_TREE, FIRST_TREE, Keyspaces, TreeMap},
    log::{FrameBuilder, Operation, operations},
};

/// Knows which keyspace each tree belongs to, as of the last group that it was shown.
pub(super) struct Follower {
    trees: TreeMap,
    keyspaces: Keyspaces,
}

impl Follower {
    /// `trees` are those before the first group.
    pub(super) fn new(trees: TreeMap) -> Self {
        Self { keyspaces: trees.keyspaces(), trees }
    }

    /// The changes of each transaction of the next group. `sweeps` are those that removed what had
    /// expired.
    pub(super) fn changes<'f>(
        &mut self,
        frame: &'f FrameBuilder,
        sweeps: &[CommitNumber],
    ) -> Vec<TransactionChanges<'f>> {
        let transactions = frame.transactions().map(|(number, bytes)| {
            let is_sweep = sweeps.contains(&number);
            // Trees first: of a database that was cleared, some operations may be of its old one.
            let mut changes = Vec::new();
            for operation in operations(bytes).flatten() {
                if operation.tree == CATALOG_TREE {
                    changes.extend(self.follow(&operation));
                }
            }
            let records = operations(bytes).flatten().filter(|record| record.tree >= FIRST_TREE);
            changes.extend(records.filter_map(|operation| {
                let Operation { tree, key, record } = operation;
                let database = *self.keyspaces.get(&tree)?;
                let what = match record {
                    Some(stored) => What::Put { key, record: record::decode(stored).ok()? },
                    None if is_sweep => What::Reclaimed { key },
                    None => What::Deleted { key },
                };
                Some(Change { database, what })
            }));
            TransactionChanges { number, changes }
        });
        transactions.collect()
    }

    /// Gives a keyspace the tree that the catalog gives it, and tells if it had another.
    fn follow<'f>(&mut self, operation: &Operation<'f>) -> Option<Change<'f>> {
        let database = catalog::parse_key(operation.key)?;
        let entry = operation
            .record
            .and_then(|stored| catalog::parse(operation.key, record::decode(stored).ok()?.value));
        let before = self.trees.get(database);
        before.map(|tree| self.keyspaces.remove(&tree));
        let tree = entry.map(|entry| entry.tree);
        tree.map(|tree| self.keyspaces.insert(tree, database));
        self.trees.set(database, tree);
        before.map(|_| Change { database, what: What::Cleared })
    }
}
