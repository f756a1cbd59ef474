//! The changes of a group of transactions, read from the frame that went to the log.

use crate::{Change, CommitNumber, DatabaseId, TransactionChanges, What, record};

use super::{
    catalog::{self, CATALOG_TREE, FIRST_TREE, Keyspaces, TreeMap},
    log::{FrameBuilder, Operation, operations},
};

/// Tracks which keyspace each tree belongs to, as of the last group that it was shown.
pub(super) struct Follower {
    trees: TreeMap,
    keyspaces: Keyspaces,
}

impl Follower {
    /// `trees` are those before the first group.
    pub(super) fn new(trees: TreeMap) -> Self {
        Self { keyspaces: trees.keyspaces(), trees }
    }

    /// The changes of each transaction of the next group. `sweeps` are the transactions that
    /// removed expired records.
    pub(super) fn changes<'f>(
        &mut self,
        frame: &'f FrameBuilder,
        sweeps: &[CommitNumber],
    ) -> Vec<TransactionChanges<'f>> {
        let transactions = frame.transactions().map(|(number, bytes)| {
            let is_sweep = sweeps.contains(&number);
            // Trees first: if a database was cleared, some operations may be in its old tree.
            let entries = operations(bytes).flatten().filter(|entry| entry.tree == CATALOG_TREE);
            let mut changes = self.follow(entries);
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

    /// Gives keyspaces the trees that the catalog gives them, and reports those that had another
    /// tree, or that got one from another keyspace.
    fn follow<'f>(&mut self, entries: impl Iterator<Item = Operation<'f>>) -> Vec<Change<'f>> {
        let given = entries.filter_map(|entry| {
            let stored = entry.record.and_then(|stored| record::decode(stored).ok());
            let found = stored.and_then(|stored| catalog::parse(entry.key, stored.value));
            Some((catalog::parse_key(entry.key)?, found.map(|found| found.tree)))
        });
        let given: Vec<(DatabaseId, Option<u32>)> = given.collect();
        let mut changes = Vec::new();
        for &(database, tree) in &given {
            let before = self.trees.get(database);
            let owner = tree.and_then(|tree| self.keyspaces.get(&tree).copied());
            let what = match owner.filter(|owner| *owner != database) {
                Some(from) => Some(What::Moved { from }),
                None if before.is_some() && before != tree => Some(What::Cleared),
                None => None,
            };
            changes.extend(what.map(|what| Change { database, what }));
        }
        // A tree that moves between keyspaces is removed from all before it is given to any.
        for &(database, _) in &given {
            self.trees.get(database).map(|tree| self.keyspaces.remove(&tree));
        }
        for (database, tree) in given {
            tree.map(|tree| self.keyspaces.insert(tree, database));
            self.trees.set(database, tree);
        }
        changes
    }
}
