//! The memtable, the frozen one and the base, read as one.

use std::{ops::Bound, sync::Arc};

use crate::{Direction, ReadError, limits};

use super::{
    base::BaseView,
    memtable::{Memtable, Node, Seen},
    shared::Tables,
};

/// A key and its stored record.
pub(super) type Stored<'v> = (&'v [u8], &'v [u8]);

/// All records as of one commit.
pub(super) struct View {
    pub(super) tables: Arc<Tables>,
    pub(super) base: BaseView,
    /// Versions above this one are not seen.
    pub(super) sequence: u64,
}

/// Refuses a key that no record can have.
pub(super) fn check_key(key: &[u8]) -> Result<(), ReadError> {
    if key.is_empty() || key.len() > limits::KEY_LEN_MAX {
        return Err(ReadError::KeyLength { len: key.len() });
    }
    Ok(())
}

impl View {
    /// The stored record under `key`, expired or not.
    #[inline]
    pub(super) fn find(&self, tree: u32, key: &[u8]) -> Result<Option<&[u8]>, ReadError> {
        for table in self.tables.each() {
            if let Some(seen) = table.find(tree, key).and_then(|node| node.see(self.sequence)) {
                return Ok(seen.record());
            }
        }
        self.base.find(tree, key)
    }

    /// The nearest entry from `from` on of which `accept` says yes.
    pub(super) fn seek(
        &self,
        tree: u32,
        from: Bound<&[u8]>,
        direction: Direction,
        mut accept: impl FnMut(&[u8]) -> Result<bool, ReadError>,
    ) -> Result<Option<Stored<'_>>, ReadError> {
        if let Bound::Included(key) | Bound::Excluded(key) = from
            && key.len() > limits::KEY_LEN_MAX
        {
            return Err(ReadError::KeyLength { len: key.len() });
        }
        let is_nearer = |a: &[u8], b: &[u8]| match direction {
            Direction::Forward => a < b,
            Direction::Backward => a > b,
        };
        let mut nodes = self.tables.each().map(|table| self.node(table, tree, from, direction));
        let mut newer = [nodes.next().flatten(), nodes.next().flatten()];
        let mut base = self.base.seek(tree, from, direction)?;
        loop {
            // The nearest key; of those who have it, the newest layer speaks.
            let mut best: Option<(&[u8], Seen<'_>)> = None;
            for (key, seen) in newer.iter().flatten().copied() {
                if best.is_none_or(|(nearest, _)| is_nearer(key, nearest)) {
                    best = Some((key, seen));
                }
            }
            if let Some((key, stored)) = base
                && best.is_none_or(|(nearest, _)| is_nearer(key, nearest))
            {
                best = Some((key, Seen::Record(stored)));
            }
            let Some((key, seen)) = best else { return Ok(None) };
            if let Seen::Record(stored) = seen
                && accept(stored)?
            {
                return Ok(Some((key, stored)));
            }
            // Everybody who is at this key goes on.
            let behind = Bound::Excluded(key);
            for (table, at) in self.tables.each().zip(&mut newer) {
                if at.is_some_and(|(found, _)| found == key) {
                    *at = self.node(table, tree, behind, direction);
                }
            }
            if base.is_some_and(|(found, _)| found == key) {
                base = self.base.seek(tree, behind, direction)?;
            }
        }
    }

    /// The nearest node of one table that this view sees, and what it sees there.
    fn node<'v>(
        &self,
        table: &'v Memtable,
        tree: u32,
        from: Bound<&[u8]>,
        direction: Direction,
    ) -> Option<(&'v [u8], Seen<'v>)> {
        let mut node = match (direction, from) {
            (Direction::Forward, Bound::Unbounded) => table.after(tree, &[], true),
            (Direction::Forward, Bound::Included(key)) => table.after(tree, key, true),
            (Direction::Forward, Bound::Excluded(key)) => table.after(tree, key, false),
            (Direction::Backward, Bound::Unbounded) => table.last(tree),
            (Direction::Backward, Bound::Included(key)) => table.before(tree, key, true),
            (Direction::Backward, Bound::Excluded(key)) => table.before(tree, key, false),
        };
        while let Some(found) = node {
            if let Some(seen) = found.see(self.sequence) {
                return Some((found.key(), seen));
            }
            let next = match direction {
                Direction::Forward => Node::next(found),
                Direction::Backward => Node::back(found),
            };
            node = next.filter(|next| next.tree() == tree);
        }
        None
    }

    /// Whether nothing below the active memtable holds a tree.
    pub(super) fn is_new(&self, tree: u32) -> bool {
        self.tables.frozen.is_none() && self.base.is_empty(tree)
    }
}
