//! A view of the base at one checkpoint: a read transaction of LMDB.

use std::{ops::Bound, sync::Arc};

use tokaido_lmdb::{Dbi, LmdbError, ReadTxn, Step, Walk, pages::PageDamage};

use crate::{Direction, ReadError, tree::prefetch::prefetch_block};

use super::{
    format::{self, TreeEntry},
    handle::Base,
    long_key,
};

/// A key and its stored record.
pub(in crate::tree) type Stored<'v> = (&'v [u8], &'v [u8]);

pub(in crate::tree) struct BaseView {
    /// Declared before `base`, which closes the environment if it is the last to be dropped.
    txn: ReadTxn,
    base: Arc<Base>,
    is_held: bool,
    /// The LMDB commit at which `trees` and `sequence` were read.
    read_at: Option<usize>,
    /// The trees that have a slot in this view, in order, as in the directory.
    trees: Vec<(u32, Dbi)>,
    /// The last transaction that this view includes.
    sequence: u64,
}

/// A scan of one tree. While it is under way, nothing else may seek in its view.
pub(in crate::tree) struct BaseScan<'v> {
    view: &'v BaseView,
    walk: Walk<'v>,
    /// The page that the last step reached.
    page: usize,
    tree: u32,
    direction: Direction,
}

/// Bytes of a page on most machines. With another page size, prefetching is only less effective.
const PAGE_LEN: usize = 4096;

impl From<LmdbError> for ReadError {
    fn from(error: LmdbError) -> Self {
        let hint = if error.is_readers_full() { "; raise the limit of snapshots" } else { "" };
        Self::Engine { message: format!("{error}{hint}") }
    }
}

impl From<PageDamage> for ReadError {
    fn from(PageDamage { page, what, is_unread }: PageDamage) -> Self {
        let what = format!("page {page} of data.mdb: {what}");
        match is_unread {
            true => Self::Engine { message: what },
            false => Self::Damaged { what },
        }
    }
}

impl BaseView {
    /// A view that is not held yet.
    pub(in crate::tree) fn new(base: Arc<Base>) -> Result<Self, ReadError> {
        let mut txn = base.read()?;
        txn.reset();
        Ok(Self { txn, base, is_held: false, read_at: None, trees: Vec::new(), sequence: 0 })
    }

    /// Takes the newest view.
    ///
    /// After LMDB commits a new slot, the checkpoint needs a few more instructions until its
    /// handle is known here. A view taken in between is given up for the next.
    pub(in crate::tree) fn renew(&mut self) -> Result<(), ReadError> {
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

    /// Releases the view.
    pub(in crate::tree) fn release(&mut self) {
        if std::mem::take(&mut self.is_held) {
            self.txn.reset();
        }
    }

    /// Reads where the trees are. Returns whether all of their slots can be used.
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

    /// The last transaction that the view includes.
    pub(in crate::tree) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Whether the view has nothing of a tree.
    pub(in crate::tree) fn is_empty(&self, tree: u32) -> bool {
        self.slot(tree).is_none()
    }

    fn slot(&self, tree: u32) -> Option<Dbi> {
        debug_assert!(self.is_held, "reading from a view that was let go");
        let place = self.trees.binary_search_by_key(&tree, |(number, _)| *number).ok()?;
        Some(self.trees[place].1)
    }

    /// The stored record under `key`.
    #[inline]
    pub(in crate::tree) fn find(&self, tree: u32, key: &[u8]) -> Result<Option<&[u8]>, ReadError> {
        let Some(dbi) = self.slot(tree) else { return Ok(None) };
        let Some(stored) = self.txn.find(dbi, long_key::tree_key(key))? else { return Ok(None) };
        if long_key::is_long(key) { long_key::find(stored, key) } else { Ok(Some(stored)) }
    }

    /// The nearest entry from `from` on.
    pub(in crate::tree) fn seek(
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

    /// A scan that continues from the entry that [`seek`](Self::seek) has just returned.
    pub(in crate::tree) fn scan(
        &self,
        tree: u32,
        direction: Direction,
    ) -> Result<Option<BaseScan<'_>>, ReadError> {
        let Some(dbi) = self.slot(tree) else { return Ok(None) };
        let walk = self.txn.walk(dbi, direction == Direction::Forward)?;
        Ok(Some(BaseScan { view: self, walk, page: 0, tree, direction }))
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
        // The common case: the scan continues from the entry at the cursor.
        if self.txn.is_positioned(dbi)
            && let Some(current) = self.txn.step(dbi, Step::Stay)?
            && current.0 == tree_key
        {
            let moves_on = matches!(from, Bound::Excluded(_)) && !long_key::is_long(key);
            return Ok(if moves_on { self.txn.step(dbi, next(direction))? } else { Some(current) });
        }
        let at_or_after = self.txn.step(dbi, Step::AtOrAfter(tree_key))?;
        Ok(match direction {
            // The answer is at this entry or before it, or at the end if there is no entry.
            Direction::Backward if at_or_after.is_none() => self.txn.step(dbi, Step::Last)?,
            _ => at_or_after,
        })
    }
}

impl<'v> BaseScan<'v> {
    /// The entry after that of `key`, which is the last one that was returned.
    #[inline]
    pub(in crate::tree) fn next(&mut self, key: &[u8]) -> Result<Option<Stored<'v>>, ReadError> {
        if !long_key::is_long(key) {
            match self.walk.step()? {
                Some((tree_key, _)) if long_key::is_bucket(tree_key) => {}
                beside => {
                    self.prefetch_page(beside);
                    return Ok(beside);
                }
            }
        }
        // Seeking leaves the cursor at the entry that it returns, as a step does.
        self.view.seek(self.tree, Bound::Excluded(key), self.direction)
    }

    /// Prefetches a page when the scan reaches it. The entries lie in it in no order, so the
    /// processor cannot guess which cache line is next.
    #[inline]
    fn prefetch_page(&mut self, entry: Option<Stored<'_>>) {
        let Some((key, _)) = entry else { return };
        let page = key.as_ptr().addr() / PAGE_LEN;
        if page != self.page {
            self.page = page;
            prefetch_block(key.as_ptr(), PAGE_LEN);
        }
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
    let is_in_range = |key: &[u8]| match from {
        Bound::Unbounded => true,
        Bound::Included(from) => !direction.is_before(key, from),
        Bound::Excluded(from) => direction.is_before(from, key),
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
