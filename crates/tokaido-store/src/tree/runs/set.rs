//! The runs of a store at one moment.

use std::{ops::Bound, sync::Arc};

use crate::{Direction, ReadError};

use super::{
    cursor::{Change, Cursor},
    format::{RunEntry, key_hash},
    run::Run,
};

/// Runs, the newest first. If several have a key, the first one decides.
#[derive(Clone, Default)]
pub(in crate::tree) struct Runs {
    runs: Vec<Arc<Run>>,
}

impl Runs {
    /// Runs in this order, the newest first.
    pub(in crate::tree) fn new(runs: Vec<Arc<Run>>) -> Self {
        Self { runs }
    }

    #[inline]
    pub(in crate::tree) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(in crate::tree) fn len(&self) -> usize {
        self.runs.len()
    }

    pub(in crate::tree) fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Run>> {
        self.runs.iter()
    }

    /// The runs at these places.
    pub(in crate::tree) fn part(&self, places: std::ops::Range<usize>) -> Self {
        Self { runs: self.runs[places].to_vec() }
    }

    /// These runs, with those at `places` replaced by one.
    pub(in crate::tree) fn replaced(
        &self,
        places: std::ops::Range<usize>,
        by: Option<Arc<Run>>,
    ) -> Self {
        let mut runs = self.runs.clone();
        runs.splice(places, by);
        Self { runs }
    }

    /// Their entries in the base, the newest first.
    pub(in crate::tree) fn entries(&self) -> Vec<RunEntry> {
        self.runs.iter().map(|run| run.entry()).collect()
    }

    /// Bytes of their files.
    pub(in crate::tree) fn bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.entry().bytes).sum()
    }

    /// How many records and tombstones they have; a key in several runs counts several times.
    pub(in crate::tree) fn count(&self) -> u64 {
        self.runs.iter().map(|run| run.entry().entries).sum()
    }

    /// The newest change of a key, if they have one.
    #[inline]
    pub(in crate::tree) fn find(
        &self,
        tree: u32,
        key: &[u8],
    ) -> Result<Option<Change<'_>>, ReadError> {
        if self.runs.is_empty() {
            Ok(None)
        } else {
            self.find_hashed(key_hash(tree, key), tree, key)
        }
    }

    /// Like [`find`](Self::find), for a caller that has the hash of the key.
    pub(in crate::tree) fn find_hashed(
        &self,
        hash: u64,
        tree: u32,
        key: &[u8],
    ) -> Result<Option<Change<'_>>, ReadError> {
        // A lookup waits for memory. Requesting all of it first means waiting only once.
        for run in &self.runs {
            run.prefetch(hash);
        }
        for run in &self.runs {
            let found = run.find(hash, tree, key)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// A cursor in each run that has an entry of a tree from `from` on, the newest first.
    pub(in crate::tree) fn seek(
        &self,
        tree: u32,
        from: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<Vec<Cursor<'_>>, ReadError> {
        let mut cursors = Vec::with_capacity(self.runs.len());
        for run in &self.runs {
            let cursor = Cursor::seek(run, tree, from, direction)?;
            if cursor.entry().is_some() {
                cursors.push(cursor);
            }
        }
        Ok(cursors)
    }

    /// Whether any of them has entries of a tree.
    pub(in crate::tree) fn has_tree(&self, tree: u32) -> Result<bool, ReadError> {
        for run in &self.runs {
            if run.has_tree(tree)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The last tree that any of them has entries of.
    pub(in crate::tree) fn last_tree(&self) -> Result<Option<u32>, ReadError> {
        let mut last = None;
        for run in &self.runs {
            last = last.max(run.last_tree()?);
        }
        Ok(last)
    }
}
