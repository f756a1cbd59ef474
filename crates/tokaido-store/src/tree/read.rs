//! Reading a tree: what snapshots and write transactions share.

use std::ops::Bound;

use crate::{Direction, Entry, ReadError, Record, limits, record};

use super::{
    lmdb::{Dbi, LmdbError, Step, Txn},
    long_key,
};

impl From<LmdbError> for ReadError {
    fn from(error: LmdbError) -> Self {
        Self::Engine { message: error.to_string() }
    }
}

/// Refuses a key that no record can have.
pub(super) fn check_key(key: &[u8]) -> Result<(), ReadError> {
    if key.is_empty() || key.len() > limits::KEY_LEN_MAX {
        return Err(ReadError::KeyLength { len: key.len() });
    }
    Ok(())
}

/// The record under `key`, expired or not.
pub(super) fn find<'t>(
    txn: &'t mut Txn,
    dbi: Dbi,
    key: &[u8],
) -> Result<Option<Record<'t>>, ReadError> {
    let Some(stored) = txn.find(dbi, long_key::tree_key(key))? else { return Ok(None) };
    let stored = if long_key::is_long(key) {
        match long_key::find(stored, key)? {
            Some(stored) => stored,
            None => return Ok(None),
        }
    } else {
        stored
    };
    record::decode(stored).map(Some)
}

/// The nearest live entry from `from` on.
pub(super) fn seek<'t>(
    txn: &'t mut Txn,
    dbi: Dbi,
    from: Bound<&[u8]>,
    direction: Direction,
    now_ms: u64,
) -> Result<Option<Entry<'t>>, ReadError> {
    if let Bound::Included(key) | Bound::Excluded(key) = from
        && key.len() > limits::KEY_LEN_MAX
    {
        return Err(ReadError::KeyLength { len: key.len() });
    }
    let search = Search { from, direction, now_ms };
    let first = search.first_step(txn, dbi)?;
    let then = match direction {
        Direction::Forward => Step::Next,
        Direction::Backward => Step::Previous,
    };
    let found = txn.walk(dbi, first, then, |tree_key, stored| {
        Ok::<_, ReadError>(search.pick(tree_key, stored)?.is_none())
    })?;
    match found {
        None => Ok(None),
        Some((tree_key, stored)) => search.pick(tree_key, stored),
    }
}

struct Search<'a> {
    from: Bound<&'a [u8]>,
    direction: Direction,
    now_ms: u64,
}

impl<'a> Search<'a> {
    /// The step that brings the cursor to the first entry that can hold the answer, or just before
    /// it.
    fn first_step(&self, txn: &mut Txn, dbi: Dbi) -> Result<Step<'a>, ReadError> {
        let end = match self.direction {
            Direction::Forward => Step::First,
            Direction::Backward => Step::Last,
        };
        let (Bound::Included(key) | Bound::Excluded(key)) = self.from else { return Ok(end) };
        let tree_key = long_key::tree_key(key);
        // The common case: the scan goes on from the entry that the cursor stands on.
        if txn.is_settled(dbi)
            && let Some((current, _)) = txn.step(dbi, Step::Stay)?
            && current == tree_key
        {
            let moves_on = matches!(self.from, Bound::Excluded(_)) && !long_key::is_long(key);
            return Ok(match (moves_on, self.direction) {
                (false, _) => Step::Stay,
                (true, Direction::Forward) => Step::Next,
                (true, Direction::Backward) => Step::Previous,
            });
        }
        match self.direction {
            Direction::Forward => Ok(Step::AtOrAfter(tree_key)),
            // The answer is at this entry or before it, and when there is no entry, at the end.
            Direction::Backward => {
                let is_there = txn.step(dbi, Step::AtOrAfter(tree_key))?.is_some();
                Ok(if is_there { Step::Stay } else { Step::Last })
            }
        }
    }

    /// The answer, if this entry of the tree holds it.
    fn pick<'t>(
        &self,
        tree_key: &'t [u8],
        stored: &'t [u8],
    ) -> Result<Option<Entry<'t>>, ReadError> {
        if !long_key::is_bucket(tree_key) {
            return self.accept(tree_key, stored);
        }
        let mut best = None;
        for pair in long_key::pairs(stored) {
            let (key, record) = pair?;
            if let Some(entry) = self.accept(key, record)? {
                best = Some(entry);
                if self.direction == Direction::Forward {
                    break;
                }
            }
        }
        Ok(best)
    }

    fn accept<'t>(&self, key: &'t [u8], stored: &'t [u8]) -> Result<Option<Entry<'t>>, ReadError> {
        let is_in_range = match (self.direction, self.from) {
            (_, Bound::Unbounded) => true,
            (Direction::Forward, Bound::Included(from)) => key >= from,
            (Direction::Forward, Bound::Excluded(from)) => key > from,
            (Direction::Backward, Bound::Included(from)) => key <= from,
            (Direction::Backward, Bound::Excluded(from)) => key < from,
        };
        if !is_in_range {
            return Ok(None);
        }
        let record = record::decode(stored)?;
        Ok(record.is_live(self.now_ms).then_some(Entry { key, record }))
    }
}
