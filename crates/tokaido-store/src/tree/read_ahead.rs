//! Reading pages of the base before a merge comes to them.
//!
//! Where the base does not fit into memory, a merge finds most of its pages on disk only. It would wait for each of
//! them, one after the other, and a disk reads many at a time much faster. So they are requested from the operating
//! system in advance.

use std::{
    collections::{HashMap, VecDeque},
    path::PathBuf,
};

use tokaido_lmdb::pages::{Finder, Leaf, PageFile, Root};

use crate::ReadError;

use super::{
    base::{format, long_key, roots},
    runs::{Merged, MergedEntry, Runs},
};

/// Maximum number of pages that were requested and that the merge has not come to. With more, what others read waits longer.
const PAGES_MAX: usize = 256;

/// When fewer are left, more are requested.
const PAGES_MIN: usize = PAGES_MAX / 2;

/// Maximum number of entries of the runs that are read in advance.
const ENTRIES_MAX: u64 = 64 << 10;

/// Requests the pages that a merge of some runs will change.
pub(super) struct ReadAhead<'r> {
    /// The file of the base.
    file: PathBuf,
    entries: Merged<'r>,
    /// The next of them.
    next: Option<MergedEntry<'r>>,
    /// How many come before that one.
    passed: u64,
    /// For each page that was requested, how many entries come before the first one that belongs to it.
    requested: VecDeque<u64>,
    /// Where the last page of them ends.
    last: Option<(u32, Option<Vec<u8>>)>,
}

impl<'r> ReadAhead<'r> {
    pub(super) fn new(file: PathBuf, runs: &'r Runs) -> Result<Self, ReadError> {
        let mut entries = Merged::of(runs)?;
        let next = entries.next()?;
        let (requested, last) = (VecDeque::new(), None);
        Ok(Self { file, entries, next, passed: 0, requested, last })
    }

    /// Requests further pages, if it is time, for a merge that has passed so many entries. The merge has committed
    /// everything, or will: that pages change meanwhile only makes some requests useless.
    pub(super) fn advance(&mut self, merged: u64) -> Result<(), ReadError> {
        while self.requested.front().is_some_and(|before| *before < merged) {
            self.requested.pop_front();
        }
        let ahead = self.passed.saturating_sub(merged);
        if self.requested.len() >= PAGES_MIN || ahead >= ENTRIES_MAX / 2 || self.next.is_none() {
            return Ok(());
        }
        let file =
            PageFile::open(&self.file).map_err(|error| ReadError::damaged(error.to_string()))?;
        let finder = Finder::new(file);
        let Some(directory) = roots::named(&finder, format::BASE)? else { return Ok(()) };
        let mut trees = HashMap::new();
        while let Some(entry) = self.next
            && self.requested.len() < PAGES_MAX
            && self.passed < merged + ENTRIES_MAX
        {
            if !self.is_on_last(entry) {
                let root = match trees.get(&entry.tree) {
                    Some(root) => *root,
                    None => {
                        let root = roots::of_tree(&finder, directory, entry.tree)?;
                        *trees.entry(entry.tree).or_insert(root)
                    }
                };
                self.request(&finder, root, entry)?;
            }
            self.next = self.entries.next()?;
            self.passed += 1;
        }
        Ok(())
    }

    /// Whether an entry belongs to the page that was requested last.
    fn is_on_last(&self, entry: MergedEntry<'_>) -> bool {
        self.last.as_ref().is_some_and(|(tree, end)| {
            *tree == entry.tree
                && end.as_ref().is_none_or(|end| long_key::tree_key(entry.key) < &end[..])
        })
    }

    /// Requests the page that an entry belongs to.
    fn request(
        &mut self,
        finder: &Finder<PageFile>,
        root: Option<Root>,
        entry: MergedEntry<'_>,
    ) -> Result<(), ReadError> {
        let key = long_key::tree_key(entry.key);
        let leaf = root.map_or(Ok(None), |root| finder.leaf(root, key))?;
        let Some(Leaf { page, end }) = leaf else {
            self.last = Some((entry.tree, None));
            return Ok(());
        };
        finder.file().will_need(page);
        self.requested.push_back(self.passed);
        self.last = Some((entry.tree, end));
        Ok(())
    }
}
