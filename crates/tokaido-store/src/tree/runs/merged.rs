//! All entries of several runs, in order; for each key, the newest.

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
    /// Whether it skips damage and continues.
    is_rescue: bool,
    damage: Vec<ReadError>,
}

impl<'v> Merged<'v> {
    pub(in crate::tree) fn of(runs: &'v Runs) -> Result<Self, ReadError> {
        let cursors = runs.iter().map(|run| Cursor::first(run)).collect::<Result<_, _>>()?;
        Ok(Self { cursors, is_rescue: false, damage: Vec::new() })
    }

    /// Reads one tree, skipping damage.
    pub(in crate::tree) fn rescue(runs: &'v Runs, tree: u32) -> Self {
        let mut damage = Vec::new();
        let cursors = runs
            .iter()
            .filter_map(|run| Cursor::first_of(run, tree).map_err(|error| damage.push(error)).ok());
        Self { cursors: cursors.collect(), is_rescue: true, damage }
    }

    /// The damage that was skipped.
    pub(in crate::tree) fn into_damage(self) -> Vec<ReadError> {
        self.damage
    }

    /// The next entry; `None` after the last one.
    pub(in crate::tree) fn next(&mut self) -> Result<Option<MergedEntry<'v>>, ReadError> {
        let place = |entry: &Entry<'v>| (entry.tree, entry.key);
        let mut best: Option<Entry<'v>> = None;
        for entry in self.cursors.iter().filter_map(Cursor::entry) {
            if best.is_none_or(|best| place(&entry) < place(&best)) {
                best = Some(entry);
            }
        }
        let Some(best) = best else { return Ok(None) };
        for cursor in &mut self.cursors {
            if cursor.entry().is_some_and(|entry| place(&entry) == place(&best)) {
                match cursor.step(Direction::Forward) {
                    Err(error) if self.is_rescue => {
                        self.damage.push(error);
                        cursor.skip_damage();
                    }
                    stepped => stepped?,
                }
            }
        }
        Ok(Some(MergedEntry { tree: best.tree, key: best.key, change: best.change }))
    }
}
