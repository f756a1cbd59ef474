//! Writing a checkpoint into the base: one LMDB transaction, from the first change to the last.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError},
};

use crate::{ReadError, record};

use super::{
    contents::{BaseContents, BaseOpenError},
    format::{self, TreeEntry},
    handle::Base,
    lmdb::{Dbi, Insert, LmdbError, WriteTxn},
    lmdb_base::{self, LmdbBase},
    long_key,
};

/// A checkpoint under way. Dropped without [`commit`](Self::commit), it changes nothing.
pub(in crate::tree) struct Layer {
    /// Before `base`, which closes the environment if it is the last to go.
    txn: WriteTxn,
    base: Arc<LmdbBase>,
    trees: HashMap<u32, TreeEntry>,
    slots: Vec<Dbi>,
    slots_known: usize,
}

/// A checkpoint failed; the base is as it was.
#[derive(Debug, thiserror::Error)]
pub(in crate::tree) enum LayerError {
    #[error("{0}")]
    Lmdb(#[from] LmdbError),
    #[error("{0}")]
    Read(#[from] ReadError),
    #[error("the base is damaged: {0}")]
    Damaged(&'static str),
}

impl From<BaseOpenError> for LayerError {
    fn from(error: BaseOpenError) -> Self {
        match error {
            BaseOpenError::Lmdb(error) => Self::Lmdb(error),
            BaseOpenError::Damaged(what) => Self::Damaged(what),
            BaseOpenError::Version(_) => Self::Damaged("its version has changed"),
            BaseOpenError::Io(_) => Self::Damaged("it cannot be read"),
        }
    }
}

impl LayerError {
    /// What the user can do so that trying again helps.
    pub(in crate::tree) fn remedy(&self) -> &'static str {
        match self {
            Self::Lmdb(error) if error.is_map_full() => {
                "raise store_bytes_max (size_max of a Rust program's options) and restart"
            }
            _ => "free some space",
        }
    }

    /// Whether there was no room, so that trying again later may help.
    pub(in crate::tree) fn is_full(&self) -> bool {
        matches!(self, Self::Lmdb(error) if error.is_full())
    }
}

impl Layer {
    pub(in crate::tree) fn begin(base: &Arc<Base>) -> Result<Self, LayerError> {
        let base = base.lmdb()?;
        // Of backups that were killed: nobody else would ever let go of their pages.
        base.environment.forget_dead_readers()?;
        let mut txn = base.environment.write()?;
        let trees = lmdb_base::read_trees(&mut txn, base.directory)?.into_iter().collect();
        let slots = base.slots();
        let base = Arc::clone(base);
        Ok(Self { txn, base, trees, slots_known: slots.len(), slots })
    }

    /// Puts a stored record, or removes one.
    pub(in crate::tree) fn apply(
        &mut self,
        tree: u32,
        key: &[u8],
        stored: Option<&[u8]>,
    ) -> Result<(), LayerError> {
        let dbi = match self.trees.get(&tree) {
            Some(entry) => self.slots[entry.slot as usize],
            None if stored.is_none() => return Ok(()),
            None => self.create(tree)?,
        };
        let old_len = if long_key::is_long(key) {
            self.apply_long(dbi, key, stored)?
        } else {
            self.apply_short(dbi, key, stored)?
        };
        let new_len = stored.map(value_len).transpose()?;
        let statistics = &mut self.trees.entry(tree).or_default().statistics;
        if let Some(len) = old_len {
            statistics.records -= 1;
            statistics.key_bytes -= key.len() as u64;
            statistics.value_bytes -= len;
        }
        if let Some(len) = new_len {
            statistics.records += 1;
            statistics.key_bytes += key.len() as u64;
            statistics.value_bytes += len;
        }
        Ok(())
    }

    /// Gives the length of the value that was replaced.
    fn apply_short(
        &mut self,
        dbi: Dbi,
        key: &[u8],
        stored: Option<&[u8]>,
    ) -> Result<Option<u64>, LayerError> {
        let Some(stored) = stored else {
            let old = self.txn.find(dbi, key)?.map(value_len).transpose()?;
            if old.is_some() {
                self.txn.remove(dbi)?;
            }
            return Ok(old);
        };
        match self.txn.insert(dbi, key, stored.len())? {
            Insert::Vacant(room) => {
                room.copy_from_slice(stored);
                Ok(None)
            }
            Insert::Occupied(old) => {
                let old = value_len(old)?;
                self.txn.overwrite(dbi, key, stored.len())?.copy_from_slice(stored);
                Ok(Some(old))
            }
        }
    }

    fn apply_long(
        &mut self,
        dbi: Dbi,
        key: &[u8],
        stored: Option<&[u8]>,
    ) -> Result<Option<u64>, LayerError> {
        let head = long_key::tree_key(key);
        let bucket = self.txn.find(dbi, head)?.unwrap_or_default();
        let old = long_key::find(bucket, key)?.map(value_len).transpose()?;
        let is_there = !bucket.is_empty();
        let bucket = long_key::replace(bucket, key, stored)?;
        if !bucket.is_empty() {
            lmdb_base::put(&mut self.txn, dbi, head, &bucket)?;
        } else if is_there {
            self.txn.find(dbi, head)?;
            self.txn.remove(dbi)?;
        }
        Ok(old)
    }

    /// Gives a tree a slot that no other has.
    fn create(&mut self, tree: u32) -> Result<Dbi, LayerError> {
        let is_taken = |slot: usize| self.trees.values().any(|entry| entry.slot as usize == slot);
        let slot = match (0..self.slots.len()).find(|slot| !is_taken(*slot)) {
            Some(slot) => slot,
            None => {
                let slot = self.slots.len();
                self.slots.push(self.txn.create_database(&format::slot_name(slot))?);
                slot
            }
        };
        let entry = TreeEntry { slot: slot as u32, ..TreeEntry::default() };
        self.trees.insert(tree, entry);
        Ok(self.slots[slot])
    }

    /// Drops every tree for which `is_live` does not hold.
    pub(in crate::tree) fn retain(
        &mut self,
        is_live: impl Fn(u32) -> bool,
    ) -> Result<(), LayerError> {
        let dead: Vec<u32> = self.trees.keys().copied().filter(|tree| !is_live(*tree)).collect();
        for tree in dead {
            let Some(entry) = self.trees.remove(&tree) else { continue };
            self.txn.clear(self.slots[entry.slot as usize])?;
            if self.txn.find(self.base.directory, &format::tree_key(tree))?.is_some() {
                self.txn.remove(self.base.directory)?;
            }
        }
        Ok(())
    }

    /// Commits, durably. `sequence` is the last transaction that the base holds now.
    pub(in crate::tree) fn commit(mut self, sequence: u64) -> Result<BaseContents, LayerError> {
        let directory = self.base.directory;
        for (tree, entry) in &self.trees {
            let key = format::tree_key(*tree);
            lmdb_base::put(&mut self.txn, directory, &key, &entry.encode())?;
        }
        let bytes = sequence.to_le_bytes();
        lmdb_base::put(&mut self.txn, directory, format::SEQUENCE_KEY, &bytes)?;
        let Self { txn, base, trees, slots, slots_known } = self;
        txn.commit()?;
        let mut shared = base.slots.write().unwrap_or_else(PoisonError::into_inner);
        shared.extend_from_slice(&slots[slots_known..]);
        let trees = trees.into_iter().map(|(tree, entry)| (tree, entry.statistics)).collect();
        Ok(BaseContents { sequence, trees })
    }
}

fn value_len(stored: &[u8]) -> Result<u64, ReadError> {
    Ok(record::decode(stored)?.value.len() as u64)
}
