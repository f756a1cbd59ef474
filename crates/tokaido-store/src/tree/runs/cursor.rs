//! A position in a run, which can move in either direction.

use std::ops::Bound;

use crate::{Direction, ReadError};

use super::{block::Block, run::Run};

pub(in crate::tree) use super::block::Change;

/// An entry of a run.
#[derive(Clone, Copy)]
pub(super) struct Entry<'v> {
    pub(super) tree: u32,
    pub(super) key: &'v [u8],
    pub(super) change: Change<'v>,
}

/// A position in a run.
pub(in crate::tree) struct Cursor<'v> {
    run: &'v Run,
    /// Whether the checksum of each block that it enters is verified.
    is_careful: bool,
    number: usize,
    /// `None` before the first block and after the last one.
    block: Option<Block<'v>>,
    place: usize,
    entry: Option<Entry<'v>>,
}

impl<'v> Cursor<'v> {
    /// At the first entry. For reading a whole run: the checksum of each block must be correct.
    pub(in crate::tree) fn first(run: &'v Run) -> Result<Self, ReadError> {
        let mut cursor =
            Self { run, is_careful: true, number: 0, block: None, place: 0, entry: None };
        cursor.enter(0, Direction::Forward)?;
        Ok(cursor)
    }

    /// Like [`first`](Self::first), starting at the first block that may have entries of a tree.
    pub(super) fn first_of(run: &'v Run, tree: u32) -> Result<Self, ReadError> {
        let mut cursor =
            Self { run, is_careful: true, number: 0, block: None, place: 0, entry: None };
        cursor.number = run.blocks_to(tree, &[])?;
        if cursor.enter(cursor.number, Direction::Forward).is_err() {
            cursor.skip_damage();
        }
        Ok(cursor)
    }

    /// At the nearest entry of a tree, starting at `from`; without an entry if there is none.
    pub(in crate::tree) fn seek(
        run: &'v Run,
        tree: u32,
        from: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<Self, ReadError> {
        let mut cursor =
            Self { run, is_careful: false, number: 0, block: None, place: 0, entry: None };
        match (from, direction) {
            (Bound::Unbounded, Direction::Forward) => cursor.go_to(tree, &[])?,
            (Bound::Unbounded, Direction::Backward) => {
                cursor.go_to(tree.saturating_add(1), &[])?;
                cursor.step(direction)?;
            }
            (Bound::Included(key) | Bound::Excluded(key), _) => {
                cursor.go_to(tree, key)?;
                let is_there = cursor.entry.is_some_and(|at| at.tree == tree && at.key == key);
                let stays = match direction {
                    Direction::Forward => !is_there || matches!(from, Bound::Included(_)),
                    Direction::Backward => is_there && matches!(from, Bound::Included(_)),
                };
                if !stays {
                    cursor.step(direction)?;
                }
            }
        }
        cursor.stay_in(tree);
        Ok(cursor)
    }

    /// Clears the entry if it is of another tree.
    fn stay_in(&mut self, tree: u32) {
        self.entry = self.entry.filter(|entry| entry.tree == tree);
    }

    /// Goes to the first entry at or after a key, or after the last entry.
    fn go_to(&mut self, tree: u32, key: &[u8]) -> Result<(), ReadError> {
        let Some(number) = self.run.blocks_to(tree, key)?.checked_sub(1) else {
            return self.enter(0, Direction::Forward);
        };
        let block = self.run.block(number)?;
        if block.tree == tree {
            let (place, _) = block.search(key).ok_or_else(|| self.run.block_damaged())?;
            if place < block.count {
                (self.number, self.block) = (number, Some(block));
                return self.stand_at(place);
            }
        }
        self.enter(number + 1, Direction::Forward)
    }

    /// Goes to the first entry of a block, or to the last one if it is entered backwards.
    fn enter(&mut self, number: usize, direction: Direction) -> Result<(), ReadError> {
        self.number = number;
        if number >= self.run.blocks() {
            (self.block, self.entry) = (None, None);
            return Ok(());
        }
        if self.is_careful {
            self.run.read_ahead(number);
        }
        let block = self.run.block(number)?;
        if self.is_careful && !block.is_whole() {
            return Err(self.run.block_damaged());
        }
        self.block = Some(block);
        self.stand_at(match direction {
            Direction::Forward => 0,
            Direction::Backward => block.count - 1,
        })
    }

    /// Skips what cannot be read, for a caller that salvages the rest.
    pub(super) fn skip_damage(&mut self) {
        loop {
            let number = self.number + 1;
            if self.enter(number, Direction::Forward).is_ok() {
                return;
            }
        }
    }

    fn stand_at(&mut self, place: usize) -> Result<(), ReadError> {
        let Some(block) = &self.block else { return Ok(()) };
        let (key, change) = block.entry(place).ok_or_else(|| self.run.block_damaged())?;
        self.place = place;
        self.entry = Some(Entry { tree: block.tree, key, change });
        Ok(())
    }

    /// The entry that the cursor is on.
    #[inline]
    pub(super) fn entry(&self) -> Option<Entry<'v>> {
        self.entry
    }

    /// Key and change of that entry.
    #[inline]
    pub(in crate::tree) fn found(&self) -> Option<(&'v [u8], Change<'v>)> {
        self.entry.map(|entry| (entry.key, entry.change))
    }

    #[inline]
    pub(in crate::tree) fn key(&self) -> Option<&'v [u8]> {
        self.entry.map(|entry| entry.key)
    }

    /// Moves to the next entry. A backward step from the end moves to the last entry.
    pub(super) fn step(&mut self, direction: Direction) -> Result<(), ReadError> {
        let next = match (direction, &self.block) {
            (Direction::Forward, Some(block)) => {
                Some(self.place + 1).filter(|place| *place < block.count)
            }
            (Direction::Backward, Some(_)) => self.place.checked_sub(1),
            (_, None) => None,
        };
        match (next, direction) {
            (Some(place), _) => self.stand_at(place),
            (None, Direction::Forward) => self.enter(self.number + 1, direction),
            (None, Direction::Backward) => match self.number.checked_sub(1) {
                Some(number) => self.enter(number, direction),
                None => {
                    (self.block, self.entry) = (None, None);
                    Ok(())
                }
            },
        }
    }

    /// Like [`step`](Self::step), as long as there are entries of the tree.
    pub(in crate::tree) fn step_in(
        &mut self,
        tree: u32,
        direction: Direction,
    ) -> Result<(), ReadError> {
        self.step(direction)?;
        self.stay_in(tree);
        Ok(())
    }
}
