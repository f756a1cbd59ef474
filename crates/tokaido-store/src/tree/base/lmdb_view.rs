//! A view of the base at one checkpoint: a read transaction of LMDB.

use std::{ops::Bound, sync::Arc};

use crate::{Direction, ReadError};

use super::{
    format::{self, TreeEntry},
    lmdb::{Dbi, LmdbError, ReadTxn, Step, Walk},
    lmdb_base::LmdbBase,
    long_key,
};

/// A key and its stored record.
pub(in crate::tree) type Stored<'v> = (&'v [u8], &'v [u8]);

pub(super) struct LmdbView {
    /// Before `base`, which closes the environment if it is the last to go.
    txn: ReadTxn,
    base: Arc<LmdbBase>,
    is_held: bool,
    /// The commit of LMDB that `trees` and `sequence` were read at.
    read_at: Option<usize>,
    /// The trees that have a slot in this view.
    trees: Vec<(u32, Dbi)>,
    /// The last transaction that this view holds.
    sequence: u64,
}

/// A scan of one tree. While it goes on, nothing else may seek in its view.
pub(in crate::tree) struct LmdbScan<'v> {
    view: &'v LmdbView,
    walk: Walk<'v>,
    tree: u32,
    direction: Direction,
}

impl From<LmdbError> for ReadError {
    fn from(error: LmdbError) -> Self {
        let hint = if error.is_readers_full() { "; raise the limit of snapshots" } else { "" };
        Self::Engine { message: format!("{error}{hint}") }
    }
}

impl LmdbView {
    /// A view that is not held yet.
    pub(super) fn new(base: Arc<LmdbBase>) -> Result<Self, ReadError> {
        let mut txn = base.read()?;
        txn.reset();
        Ok(Self { txn, base, is_held: false, read_at: None, trees: Vec::new(), sequence: 0 })
    }

    /// The view that `txn` has, which is held.
    pub(super) fn of(base: Arc<LmdbBase>, txn: ReadTxn) -> Result<Self, ReadError> {
        let read_at = Some(txn.id());
        let mut view = Self { txn, base, is_held: true, read_at, trees: Vec::new(), sequence: 0 };
        match view.read_trees()? {
            true => Ok(view),
            false => {
                Err(ReadError::Damaged { what: "the base has other trees than before".to_owned() })
            }
        }
    }

    /// Takes the newest view.
    ///
    /// Between LMDB's commit of a new slot and our knowing its handle lie a few instructions of
    /// the checkpoint. A view taken there is given up for the next.
    pub(super) fn renew(&mut self) -> Result<(), ReadError> {
        loop {
            self.release();
            match self.txn.renew() {
                Err(error) if error.is_given_up() => self.txn = self.base.read()?,
                renewed => renewed?,
            }
            self.is_held = true;
            let id = self.txn.id();
            if self.read_at == Some(id) {
                return Ok(());
            }
            self.read_at = None;
            if self.read_trees()? {
                self.read_at = Some(id);
                return Ok(());
            }
            std::thread::yield_now();
        }
    }

    /// Lets go of the view.
    pub(super) fn release(&mut self) {
        if std::mem::take(&mut self.is_held) {
            self.txn.reset();
        }
    }

    /// Reads where the trees are. Tells whether all of their slots can be used.
    fn read_trees(&mut self) -> Result<bool, ReadError> {
        let damaged = || ReadError::Damaged { what: "the directory of the base".to_owned() };
        let slots = self.base.slots();
        let directory = self.base.directory;
        let sequence = self.txn.find(directory, format::SEQUENCE_KEY)?;
        let sequence = sequence.map(|bytes| bytes.try_into().map_err(|_| damaged())).transpose()?;
        self.sequence = sequence.map_or(0, u64::from_le_bytes);
        self.trees.clear();
        let mut found = self.txn.step(directory, Step::AtOrAfter(format::TREE_PREFIX))?;
        while let Some((key, value)) = found {
            let Some(tree) = format::parse_tree_key(key) else { break };
            let entry = TreeEntry::decode(value).ok_or_else(damaged)?;
            match slots.get(entry.slot as usize) {
                Some(dbi) if self.txn.knows(*dbi) => self.trees.push((tree, *dbi)),
                _ => return Ok(false),
            }
            found = self.txn.step(directory, Step::Next)?;
        }
        Ok(true)
    }

    /// The last transaction that the view holds.
    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Whether the view has nothing of a tree.
    pub(super) fn is_empty(&self, tree: u32) -> bool {
        self.slot(tree).is_none()
    }

    fn slot(&self, tree: u32) -> Option<Dbi> {
        debug_assert!(self.is_held, "reading from a view that was let go");
        self.trees.iter().find(|(number, _)| *number == tree).map(|(_, dbi)| *dbi)
    }

    /// The stored record under `key`.
    pub(super) fn find(&self, tree: u32, key: &[u8]) -> Result<Option<&[u8]>, ReadError> {
        let Some(dbi) = self.slot(tree) else { return Ok(None) };
        let Some(stored) = self.txn.find(dbi, long_key::tree_key(key))? else { return Ok(None) };
        if long_key::is_long(key) { long_key::find(stored, key) } else { Ok(Some(stored)) }
    }

    /// The nearest entry from `from` on.
    pub(super) fn seek(
        &self,
        tree: u32,
        from: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<Option<Stored<'_>>, ReadError> {
        let Some(dbi) = self.slot(tree) else { return Ok(None) };
        let mut found = self.first(dbi, from, direction)?;
        while let Some((tree_key, stored)) = found {
            let picked = pick(tree_key, stored, from, direction)?;
            if picked.is_some() {
                return Ok(picked);
            }
            found = self.txn.step(dbi, next(direction))?;
        }
        Ok(None)
    }

    /// A scan that goes on from the entry that [`seek`](Self::seek) has just given.
    pub(super) fn scan(
        &self,
        tree: u32,
        direction: Direction,
    ) -> Result<Option<LmdbScan<'_>>, ReadError> {
        let Some(dbi) = self.slot(tree) else { return Ok(None) };
        let walk = self.txn.walk(dbi, direction)?;
        Ok(Some(LmdbScan { view: self, walk, tree, direction }))
    }

    /// The first entry of the slot that can hold the answer, or one just before it.
    fn first(
        &self,
        dbi: Dbi,
        from: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<Option<Stored<'_>>, ReadError> {
        let (Bound::Included(key) | Bound::Excluded(key)) = from else {
            return Ok(match direction {
                Direction::Forward => self.txn.step(dbi, Step::First)?,
                Direction::Backward => self.txn.step(dbi, Step::Last)?,
            });
        };
        let tree_key = long_key::tree_key(key);
        // The common case: the scan goes on from the entry that the cursor stands on.
        if self.txn.is_settled(dbi)
            && let Some(current) = self.txn.step(dbi, Step::Stay)?
            && current.0 == tree_key
        {
            let moves_on = matches!(from, Bound::Excluded(_)) && !long_key::is_long(key);
            return Ok(if moves_on { self.txn.step(dbi, next(direction))? } else { Some(current) });
        }
        let at_or_after = self.txn.step(dbi, Step::AtOrAfter(tree_key))?;
        Ok(match direction {
            // The answer is at this entry or before it, and when there is no entry, at the end.
            Direction::Backward if at_or_after.is_none() => self.txn.step(dbi, Step::Last)?,
            _ => at_or_after,
        })
    }
}

impl<'v> LmdbScan<'v> {
    /// The entry behind that of `key`, which is the last one that was given.
    #[inline]
    pub(in crate::tree) fn next(&mut self, key: &[u8]) -> Result<Option<Stored<'v>>, ReadError> {
        if !long_key::is_long(key) {
            match self.walk.next()? {
                Some((tree_key, _)) if long_key::is_bucket(tree_key) => {}
                beside => return Ok(beside),
            }
        }
        // Seeking leaves the cursor at the entry that it gives, as a step does.
        self.view.seek(self.tree, Bound::Excluded(key), self.direction)
    }
}

fn next(direction: Direction) -> Step<'static> {
    match direction {
        Direction::Forward => Step::Next,
        Direction::Backward => Step::Previous,
    }
}

/// The answer, if this entry of the slot holds it.
fn pick<'v>(
    tree_key: &'v [u8],
    stored: &'v [u8],
    from: Bound<&[u8]>,
    direction: Direction,
) -> Result<Option<Stored<'v>>, ReadError> {
    let is_in_range = |key: &[u8]| match (direction, from) {
        (_, Bound::Unbounded) => true,
        (Direction::Forward, Bound::Included(from)) => key >= from,
        (Direction::Forward, Bound::Excluded(from)) => key > from,
        (Direction::Backward, Bound::Included(from)) => key <= from,
        (Direction::Backward, Bound::Excluded(from)) => key < from,
    };
    if !long_key::is_bucket(tree_key) {
        return Ok(is_in_range(tree_key).then_some((tree_key, stored)));
    }
    let mut best = None;
    for pair in long_key::pairs(stored) {
        let pair = pair?;
        if is_in_range(pair.0) {
            best = Some(pair);
            if direction == Direction::Forward {
                break;
            }
        }
    }
    Ok(best)
}
