//! All entries of several runs, in order; for each key, the newest.

use std::{
    cmp::Ordering,
    collections::{BinaryHeap, binary_heap::PeekMut},
};

use crate::{Direction, ReadError};

use super::{
    cursor::{Change, Cursor, Entry},
    set::Runs,
};

/// The newest entry of a key.
#[derive(Clone, Copy)]
pub(in crate::tree) struct MergedEntry<'v> {
    pub(in crate::tree) tree: u32,
    pub(in crate::tree) key: &'v [u8],
    pub(in crate::tree) change: Change<'v>,
}

/// Reads runs from the first entry to the last. The checksums of all blocks are verified.
pub(in crate::tree) struct Merged<'v> {
    /// The newest first.
    cursors: Vec<Cursor<'v>>,
    /// The entry of each cursor that has one; the next in order is at the top.
    next: BinaryHeap<Next<'v>>,
    /// Whether it skips damage and continues.
    is_rescue: bool,
    damage: Vec<ReadError>,
}

/// The entry that a cursor is on.
struct Next<'v> {
    entry: Entry<'v>,
    /// The place of the cursor.
    cursor: usize,
}

impl Next<'_> {
    /// In the order of keys; of a key's entries, the newest comes first.
    fn order(&self) -> (u32, &[u8], usize) {
        (self.entry.tree, self.entry.key, self.cursor)
    }
}

impl Ord for Next<'_> {
    /// The greatest is at the top of a heap.
    fn cmp(&self, other: &Self) -> Ordering {
        other.order().cmp(&self.order())
    }
}

impl PartialOrd for Next<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Next<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Next<'_> {}

impl<'v> Merged<'v> {
    pub(in crate::tree) fn of(runs: &'v Runs) -> Result<Self, ReadError> {
        let cursors = runs.iter().map(|run| Cursor::first(run)).collect::<Result<_, _>>()?;
        Ok(Self::new(cursors, false, Vec::new()))
    }

    /// Reads one tree, skipping damage.
    pub(in crate::tree) fn rescue(runs: &'v Runs, tree: u32) -> Self {
        let mut damage = Vec::new();
        let cursors = runs
            .iter()
            .filter_map(|run| Cursor::first_of(run, tree).map_err(|error| damage.push(error)).ok());
        let cursors = cursors.collect();
        Self::new(cursors, true, damage)
    }

    fn new(cursors: Vec<Cursor<'v>>, is_rescue: bool, damage: Vec<ReadError>) -> Self {
        let next = |(cursor, at): (usize, &Cursor<'v>)| Some(Next { entry: at.entry()?, cursor });
        let next = cursors.iter().enumerate().filter_map(next).collect();
        Self { cursors, next, is_rescue, damage }
    }

    /// The damage that was skipped.
    pub(in crate::tree) fn into_damage(self) -> Vec<ReadError> {
        self.damage
    }

    /// The next entry; `None` after the last one.
    pub(in crate::tree) fn next(&mut self) -> Result<Option<MergedEntry<'v>>, ReadError> {
        let Some(best) = self.next.peek().map(|next| next.entry) else { return Ok(None) };
        while let Some(mut next) = self.next.peek_mut()
            && (next.entry.tree, next.entry.key) == (best.tree, best.key)
        {
            let cursor = &mut self.cursors[next.cursor];
            match cursor.step(Direction::Forward) {
                Err(error) if self.is_rescue => {
                    self.damage.push(error);
                    cursor.skip_damage();
                }
                stepped => stepped?,
            }
            match cursor.entry() {
                Some(entry) => next.entry = entry,
                None => drop(PeekMut::pop(next)),
            }
        }
        Ok(Some(MergedEntry { tree: best.tree, key: best.key, change: best.change }))
    }
}
