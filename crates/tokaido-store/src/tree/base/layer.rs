//! Writing a checkpoint, or a piece of one, into the base: one LMDB transaction, from the first change to the last.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, PoisonError},
};

use tokaido_lmdb::{Dbi, Insert, WriteTxn};

use crate::{
    DatabaseStatistics, ReadError, record,
    tree::{runs::RunList, totals::Totals},
};

use super::{
    format::{self, Total, TreeEntry},
    handle::{self, Base, BaseContents, BaseError},
    long_key,
};

/// A piece of a checkpoint under way. If it is dropped, or its commit fails, nothing has changed.
pub(in crate::tree) struct Layer {
    /// Declared before `base`, since dropping the last user of `base` closes the environment.
    txn: WriteTxn,
    base: Arc<Base>,
    trees: HashMap<u32, TreeEntry>,
    slots: Vec<Dbi>,
    slots_known: usize,
    /// The slots that hold no tree.
    free: Vec<usize>,
    pages: PageCount,
    runs: RunList,
    /// The totals of base and runs together, if there are runs.
    totals: Vec<(u32, Total)>,
}

/// Counts changed pages, roughly, from the addresses of entries in the order of their keys.
#[derive(Default)]
struct PageCount {
    count: usize,
    last: usize,
}

impl PageCount {
    /// Counts the pages of an entry, of which there may be several.
    fn note(&mut self, entry: &[u8]) {
        let at = entry.as_ptr().addr();
        if at.abs_diff(self.last) >= PAGE_LEN {
            self.count += 1;
            self.last = at;
        }
        self.count += entry.len() / PAGE_LEN;
    }
}

impl Layer {
    pub(in crate::tree) fn begin(base: &Arc<Base>) -> Result<Self, BaseError> {
        let txn = base.environment.write()?;
        let trees: HashMap<_, _> = handle::read_trees(&txn, base.directory)?.into_iter().collect();
        let slots = base.slots();
        let taken: HashSet<_> =
            trees.values().map(|entry: &TreeEntry| entry.slot as usize).collect();
        let free = (0..slots.len()).rev().filter(|slot| !taken.contains(slot)).collect();
        let runs = handle::read_runs(&txn, base.directory)?;
        let totals = handle::read_totals(&txn, base.directory)?;
        let base = Arc::clone(base);
        let (slots_known, pages) = (slots.len(), PageCount::default());
        Ok(Self { txn, base, trees, slots_known, slots, free, pages, runs, totals })
    }

    /// How many pages it has changed, roughly.
    pub(in crate::tree) fn pages_changed(&self) -> usize {
        self.pages.count
    }

    /// Puts a stored record, or removes one.
    pub(in crate::tree) fn apply(
        &mut self,
        tree: u32,
        key: &[u8],
        stored: Option<&[u8]>,
    ) -> Result<(), BaseError> {
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
            statistics.subtract(DatabaseStatistics::of_record(key.len(), len));
        }
        if let Some(len) = new_len {
            statistics.add(DatabaseStatistics::of_record(key.len(), len));
        }
        Ok(())
    }

    /// Returns the length of the value that was replaced.
    fn apply_short(
        &mut self,
        dbi: Dbi,
        key: &[u8],
        stored: Option<&[u8]>,
    ) -> Result<Option<usize>, BaseError> {
        let Some(stored) = stored else {
            let Some(entry) = self.txn.entry(dbi, key)? else { return Ok(None) };
            self.pages.note(entry.value());
            let old = value_len(entry.value())?;
            entry.remove()?;
            return Ok(Some(old));
        };
        match self.txn.insert(dbi, key, stored.len())? {
            Insert::Vacant(room) => {
                self.pages.note(room);
                room.copy_from_slice(stored);
                Ok(None)
            }
            Insert::Occupied(entry) => {
                self.pages.note(entry.value());
                let old = value_len(entry.value())?;
                entry.overwrite(stored.len())?.copy_from_slice(stored);
                Ok(Some(old))
            }
        }
    }

    fn apply_long(
        &mut self,
        dbi: Dbi,
        key: &[u8],
        stored: Option<&[u8]>,
    ) -> Result<Option<usize>, BaseError> {
        let head = long_key::tree_key(key);
        let bucket = self.txn.find(dbi, head)?.unwrap_or_default();
        let old = long_key::find(bucket, key)?.map(value_len).transpose()?;
        let bucket = long_key::replace(bucket, key, stored)?;
        self.pages.note(&bucket);
        if !bucket.is_empty() {
            handle::put(&mut self.txn, dbi, head, &bucket)?;
        } else if let Some(entry) = self.txn.entry(dbi, head)? {
            entry.remove()?;
        }
        Ok(old)
    }

    /// Gives a tree a slot that no other tree has.
    fn create(&mut self, tree: u32) -> Result<Dbi, BaseError> {
        let slot = match self.free.pop() {
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

    /// Drops every tree for which `is_live` is false.
    pub(in crate::tree) fn retain(
        &mut self,
        is_live: impl Fn(u32) -> bool,
    ) -> Result<(), BaseError> {
        let dead: Vec<u32> = self.trees.keys().copied().filter(|tree| !is_live(*tree)).collect();
        for tree in dead {
            let Some(entry) = self.trees.remove(&tree) else { continue };
            self.txn.clear(self.slots[entry.slot as usize])?;
            self.free.push(entry.slot as usize);
            if let Some(entry) = self.txn.entry(self.base.directory, &format::tree_key(tree))? {
                entry.remove()?;
            }
        }
        Ok(())
    }

    /// The totals of base and runs together.
    fn all_totals(&self) -> Vec<(u32, Total)> {
        let exact = |(tree, entry): (&u32, &TreeEntry)| (*tree, Total::exact(entry.statistics));
        match self.runs.entries.is_empty() {
            true => self.trees.iter().map(exact).collect(),
            false => self.totals.clone(),
        }
    }

    /// What the base alone holds of a tree.
    pub(in crate::tree) fn in_base(&self, tree: u32) -> DatabaseStatistics {
        self.trees.get(&tree).map(|entry| entry.statistics).unwrap_or_default()
    }

    /// Sets the list of runs, and the totals of base and runs together.
    pub(in crate::tree) fn set_runs(
        &mut self,
        runs: RunList,
        totals: &Totals,
    ) -> Result<(), BaseError> {
        let directory = self.base.directory;
        let totals: Vec<_> = match runs.entries.is_empty() {
            true => Vec::new(),
            false => totals.iter().collect(),
        };
        let put =
            |txn: &mut WriteTxn, key: &[u8], bytes: &[u8]| handle::put(txn, directory, key, bytes);
        put(&mut self.txn, format::FORMAT_KEY, &format::FORMAT_VERSION.to_le_bytes())?;
        put(&mut self.txn, format::RUNS_KEY, &runs.encode())?;
        let kept: HashSet<u32> = totals.iter().map(|(tree, _)| *tree).collect();
        for (tree, _) in &self.totals {
            if !kept.contains(tree)
                && let Some(entry) = self.txn.entry(directory, &format::total_key(*tree))?
            {
                entry.remove()?;
            }
        }
        for (tree, total) in &totals {
            put(&mut self.txn, &format::total_key(*tree), &total.encode())?;
        }
        (self.runs, self.totals) = (runs, totals);
        Ok(())
    }

    /// Commits, durably, a piece of a checkpoint that others follow.
    pub(in crate::tree) fn commit_piece(mut self) -> Result<(), BaseError> {
        self.put_trees()?;
        self.commit_transaction()
    }

    /// Commits, durably, the last piece of a checkpoint. `sequence` is the last transaction that
    /// the base now holds; later ones are in segment `log_from` of the log and those after it.
    pub(in crate::tree) fn commit(
        mut self,
        sequence: u64,
        log_from: u64,
    ) -> Result<BaseContents, BaseError> {
        let directory = self.base.directory;
        self.put_trees()?;
        for (key, number) in [(format::SEQUENCE_KEY, sequence), (format::LOG_KEY, log_from)] {
            handle::put(&mut self.txn, directory, key, &number.to_le_bytes())?;
        }
        let (trees, runs) = (self.all_totals(), self.runs.clone());
        self.commit_transaction()?;
        Ok(BaseContents { sequence, log_from, trees, runs })
    }

    fn put_trees(&mut self) -> Result<(), BaseError> {
        for (tree, entry) in &self.trees {
            let key = format::tree_key(*tree);
            handle::put(&mut self.txn, self.base.directory, &key, &entry.encode())?;
        }
        Ok(())
    }

    fn commit_transaction(self) -> Result<(), BaseError> {
        let Self { txn, base, slots, slots_known, .. } = self;
        txn.commit()?;
        let mut shared = base.slots.write().unwrap_or_else(PoisonError::into_inner);
        shared.extend_from_slice(&slots[slots_known..]);
        Ok(())
    }
}

/// Length of a page on most machines. On others, pieces of a checkpoint have other sizes.
const PAGE_LEN: usize = 4096;

fn value_len(stored: &[u8]) -> Result<usize, ReadError> {
    Ok(record::decode(stored)?.value.len())
}
