//! Collections in the writer's transaction, and the removal of their elements.
//!
//! A record with a collection owns its elements. When it is deleted, expires or is replaced, its
//! elements are not looked up: an entry of the expiry index lists the collection, and the sweep,
//! which follows the index, removes them in the background.

use std::ops::{Bound, ControlFlow};

use crate::{CollectionId, DatabaseId, Direction, Kind, NewRecord, WriteError, prefix_end, record};

use super::{expiry, transaction::TreeTransaction};

impl TreeTransaction {
    /// Drops the collection of the record that a new one is about to replace, unless it is kept.
    pub(super) fn replace_collection(
        &mut self,
        database: DatabaseId,
        tree: u32,
        key: &[u8],
        new: &NewRecord<'_>,
    ) -> Result<(), WriteError> {
        if database.is_elements() {
            return Err(WriteError::BytesOnly);
        }
        let number = self.number;
        let old = self.find(tree, key)?.map(record::decode).transpose()?;
        let old = old.and_then(|old| old.collection);
        let new = new.collection.filter(|_| new.kind != Kind::Bytes);
        match (old, new) {
            _ if old == new => Ok(()),
            (_, Some(new)) if !new.is_of(number) => Err(WriteError::ForeignCollection),
            (Some(old), _) => self.drop_collection(database, old),
            (None, _) => Ok(()),
        }
    }

    /// Lists a collection whose elements are to be removed, since its record is going.
    pub(super) fn drop_collection(
        &mut self,
        database: DatabaseId,
        collection: CollectionId,
    ) -> Result<(), WriteError> {
        if !self.trees.has_elements(database) {
            return Ok(());
        }
        // The sweep has its own limit.
        if !self.is_sweep {
            self.account(expiry::ENTRY_HEAD_LEN + CollectionId::LEN)?;
        }
        self.move_expiry(database.elements(), &collection.prefix(), None, Some(self.now_ms))
    }

    /// Removes up to `limit` elements whose keys begin with `prefix`, and returns how many it
    /// removed. If they are fewer than `limit`, none are left.
    pub(super) fn remove_elements(
        &mut self,
        elements: DatabaseId,
        prefix: &[u8],
        limit: usize,
    ) -> Result<usize, WriteError> {
        let Some(tree) = self.trees.get(elements) else { return Ok(0) };
        // Removed elements remain as tombstones until the next checkpoint, and must not be walked
        // over again and again.
        let is_begun = self.reclaimed.starts_with(prefix);
        let from = Bound::Excluded(if is_begun { &self.reclaimed[..] } else { prefix });
        let mut found = Vec::new();
        let end = prefix_end(prefix);
        let to = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        self.view.scan(tree, from, to, Direction::Forward, |(key, stored)| {
            if found.len() == limit {
                return Ok(ControlFlow::Break(()));
            }
            found.push((key.to_vec(), record::decode(stored)?.expires_at_ms));
            Ok(ControlFlow::Continue(()))
        })?;
        for (key, expires_at_ms) in &found {
            self.write(tree, key, None)?;
            self.move_expiry(elements, key, *expires_at_ms, None)?;
        }
        let removed = found.len();
        if let Some((last, _)) = found.pop() {
            self.reclaimed = last;
        }
        Ok(removed)
    }
}
