//! What a group of transactions has changed, read from the frame that went to the log.

use crate::{Change, CommitNumber, TransactionChanges, What, record};

use super::{
    catalog::{self, CATALOG_TREE, FIRST_TREE, Keyspaces, TreeMap},
    log::{FrameBuilder, Operation, operations},
};

/// The changes of each transaction. `trees` are those before the group; `sweeps` are the
/// transactions that removed what had expired.
pub(super) fn changes<'f>(
    frame: &'f FrameBuilder,
    mut trees: TreeMap,
    sweeps: &[CommitNumber],
) -> Vec<TransactionChanges<'f>> {
    let mut keyspaces = trees.keyspaces();
    let transactions = frame.transactions().map(|(number, bytes)| {
        let is_sweep = sweeps.contains(&number);
        // Trees first: of a database that was cleared, some operations may be of its old one.
        let mut changes = Vec::new();
        for operation in operations(bytes).flatten() {
            if operation.tree == CATALOG_TREE {
                changes.extend(follow(&mut trees, &mut keyspaces, &operation));
            }
        }
        let records = operations(bytes).flatten().filter(|operation| operation.tree >= FIRST_TREE);
        changes.extend(records.filter_map(|operation| {
            let Operation { tree, key, record } = operation;
            let database = *keyspaces.get(&tree)?;
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
fn follow<'f>(
    trees: &mut TreeMap,
    keyspaces: &mut Keyspaces,
    operation: &Operation<'f>,
) -> Option<Change<'f>> {
    let database = catalog::parse_key(operation.key)?;
    let entry = operation
        .record
        .and_then(|stored| catalog::parse(operation.key, record::decode(stored).ok()?.value));
    let before = trees.get(database);
    before.map(|tree| keyspaces.remove(&tree));
    let tree = entry.map(|entry| entry.tree);
    tree.map(|tree| keyspaces.insert(tree, database));
    trees.set(database, tree);
    before.map(|_| Change { database, what: What::Cleared })
}
