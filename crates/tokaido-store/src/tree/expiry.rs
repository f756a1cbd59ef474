//! Removing what has expired, by following the expiry index.

use crate::{DatabaseId, ReadError, WriteError, limits};

use super::{group::Group, layout, lmdb::Step, long_key, transaction::TreeTransaction};

/// Follows up to `limit` due entries of the index. Gives the number of records removed.
pub(super) fn sweep(transaction: &mut TreeTransaction, limit: usize) -> Result<usize, WriteError> {
    let mut removed = 0;
    for _ in 0..limit {
        let Some(entry) = next_due(transaction)? else { break };
        removed += follow(transaction, &entry)?;
        let dbi = transaction.shared.expiry;
        let Group { edit, broken, .. } = &mut transaction.group;
        Group::guard(broken, edit.remove(dbi, &entry).map(|_| ()))?;
    }
    Ok(removed)
}

fn next_due(transaction: &mut TreeTransaction) -> Result<Option<Vec<u8>>, WriteError> {
    let dbi = transaction.shared.expiry;
    let now_ms = transaction.now_ms;
    let first = transaction.group.edit.txn.step(dbi, Step::First).map_err(ReadError::from)?;
    let Some((entry, _)) = first else { return Ok(None) };
    let is_due = layout::parse_expiry_key(entry).is_none_or(|(at_ms, ..)| at_ms <= now_ms);
    Ok(is_due.then(|| entry.to_vec()))
}

/// Removes what one entry of the index stands for.
fn follow(transaction: &mut TreeTransaction, entry: &[u8]) -> Result<usize, WriteError> {
    let Some((_, index, part)) = layout::parse_expiry_key(entry) else { return Ok(0) };
    if index >= limits::DATABASES_MAX || part.is_empty() {
        return Ok(0);
    }
    let database = DatabaseId::from_index(index);
    if part.len() < layout::EXPIRY_KEY_PART_LEN {
        return Ok(transaction.remove_if_expired(database, part)?.into());
    }
    let mut removed = 0;
    for key in keys_with_prefix(transaction, database, part)? {
        removed += usize::from(transaction.remove_if_expired(database, &key)?);
    }
    Ok(removed)
}

/// All keys, of records expired or not, that begin with a key part of the index.
fn keys_with_prefix(
    transaction: &mut TreeTransaction,
    database: DatabaseId,
    prefix: &[u8],
) -> Result<Vec<Vec<u8>>, WriteError> {
    let mut keys = Vec::new();
    let Some(dbi) = transaction.group.tree(database.index()) else { return Ok(keys) };
    let txn = &mut transaction.group.edit.txn;
    let mut step = Step::AtOrAfter(prefix);
    while let Some((tree_key, stored)) = txn.step(dbi, step).map_err(ReadError::from)? {
        if !tree_key.starts_with(prefix) {
            break;
        }
        if long_key::is_bucket(tree_key) {
            for pair in long_key::pairs(stored) {
                keys.push(pair?.0.to_vec());
            }
        } else {
            keys.push(tree_key.to_vec());
        }
        step = Step::Next;
    }
    Ok(keys)
}
