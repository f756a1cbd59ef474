//! The runs and the base, read as one: everything on disk except the log.

use std::ops::Bound;

use crate::{Direction, ReadError};

use super::{
    base::{BaseScan, BaseView, Stored},
    runs::{Change, Cursor, Runs},
};

/// The runs, and the base beneath them, at one moment.
#[derive(Clone, Copy)]
pub(super) struct Disk<'v> {
    pub(super) runs: &'v Runs,
    pub(super) base: &'v BaseView,
}

impl<'v> Disk<'v> {
    /// The stored record under `key`.
    #[inline]
    pub(super) fn find(self, tree: u32, key: &[u8]) -> Result<Option<&'v [u8]>, ReadError> {
        match self.runs.find(tree, key)? {
            Some(change) => Ok(change),
            None => self.base.find(tree, key),
        }
    }

    /// Like [`find`](Self::find), given the [hash](super::runs::key_hash) of the key.
    pub(super) fn find_hashed(
        self,
        hash: u64,
        tree: u32,
        key: &[u8],
    ) -> Result<Option<&'v [u8]>, ReadError> {
        match self.runs.find_hashed(hash, tree, key)? {
            Some(change) => Ok(change),
            None => self.base.find(tree, key),
        }
    }

    /// Whether a tree has no entries at all, not even tombstones.
    pub(super) fn lacks(self, tree: u32) -> bool {
        // What cannot be read may be there.
        self.base.is_empty(tree) && self.runs.has_tree(tree).is_ok_and(|has_tree| !has_tree)
    }

    /// The entries of a tree from `from` to `to`, and perhaps some after that.
    pub(super) fn scan<'s>(
        self,
        tree: u32,
        from: Bound<&[u8]>,
        to: Bound<&'s [u8]>,
        direction: Direction,
    ) -> Result<DiskScan<'v, 's>, ReadError> {
        let cursors = self.runs.seek(tree, from, direction)?;
        let in_base = self.base.seek(tree, from, direction)?;
        let (base, base_scan, entry) = (self.base, None, in_base);
        let mut scan = DiskScan { tree, to, direction, cursors, base, base_scan, in_base, entry };
        scan.settle()?;
        Ok(scan)
    }
}

/// A scan of one tree. While it lasts, nothing else may seek in its view of the base.
pub(super) struct DiskScan<'v, 's> {
    tree: u32,
    to: Bound<&'s [u8]>,
    direction: Direction,
    /// The newest first; each is on an entry.
    cursors: Vec<Cursor<'v>>,
    base: &'v BaseView,
    /// Only needed by a scan that goes beyond the first entry.
    base_scan: Option<BaseScan<'v>>,
    in_base: Option<Stored<'v>>,
    entry: Option<Stored<'v>>,
}

impl<'v> DiskScan<'v, '_> {
    /// The entry that the scan is on.
    #[inline]
    pub(super) fn entry(&self) -> Option<Stored<'v>> {
        self.entry
    }

    /// Moves past the current entry, whose key is `key`.
    #[inline]
    pub(super) fn next(&mut self, key: &[u8]) -> Result<Option<Stored<'v>>, ReadError> {
        if self.cursors.is_empty() {
            self.step_base(key)?;
            self.entry = self.in_base;
        } else {
            self.pass(key)?;
            self.settle()?;
        }
        Ok(self.entry)
    }

    #[inline]
    fn step_base(&mut self, key: &[u8]) -> Result<(), ReadError> {
        if self.base_scan.is_none() {
            self.base_scan = self.base.scan(self.tree, self.direction)?;
        }
        if let Some(scan) = &mut self.base_scan {
            self.in_base = scan.next(key)?;
        }
        Ok(())
    }

    /// Moves every cursor that is at this key.
    fn pass(&mut self, key: &[u8]) -> Result<(), ReadError> {
        let (tree, direction) = (self.tree, self.direction);
        for cursor in &mut self.cursors {
            if cursor.key() == Some(key) {
                cursor.step_in(tree, direction)?;
            }
        }
        self.cursors.retain(|cursor| cursor.key().is_some());
        if self.in_base.is_some_and(|(found, _)| found == key) {
            self.step_base(key)?;
        }
        Ok(())
    }

    /// Finds the nearest key that has a record; of layers that have it, the newest decides.
    fn settle(&mut self) -> Result<(), ReadError> {
        loop {
            let mut best: Option<(&'v [u8], Change<'v>)> = None;
            for (key, change) in self.cursors.iter().filter_map(Cursor::found) {
                if best.is_none_or(|(nearest, _)| self.direction.is_before(key, nearest)) {
                    best = Some((key, change));
                }
            }
            let Some((key, change)) = best else {
                self.entry = self.in_base;
                return Ok(());
            };
            if let Some((in_base, _)) = self.in_base
                && self.direction.is_before(in_base, key)
            {
                self.entry = self.in_base;
                return Ok(());
            }
            if let Some(stored) = change {
                self.entry = Some((key, stored));
                return Ok(());
            }
            if self.direction.is_past(key, self.to) {
                self.entry = None;
                return Ok(());
            }
            self.pass(key)?;
        }
    }
}
