//! Changes to the environment that can be taken back one transaction at a time.
//!
//! A group of transactions shares one LMDB transaction, so that they share one sync. To roll back
//! one of them and keep the others, every change notes what was there before.

use std::ops::Range;

use super::lmdb::{Dbi, Insert, LmdbError, WriteTxn};

/// An LMDB write transaction with a log of what its changes replaced.
pub(super) struct Edit {
    pub(super) txn: WriteTxn,
    log: UndoLog,
}

#[derive(Default)]
struct UndoLog {
    changes: Vec<Change>,
    /// The bytes that the changes refer to.
    bytes: Vec<u8>,
}

struct Change {
    dbi: Dbi,
    key: Range<usize>,
    /// What stood under the key, if anything.
    old: Option<Range<usize>>,
}

/// Room in the log that is kept from one transaction to the next, in bytes.
const LOG_LEN_KEPT: usize = 1 << 20;

impl UndoLog {
    fn note(&mut self, dbi: Dbi, key: &[u8], old: Option<&[u8]>) {
        let mut push = |bytes: &[u8]| {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(bytes);
            start..self.bytes.len()
        };
        let change = Change { dbi, key: push(key), old: old.map(push) };
        self.changes.push(change);
    }

    fn old_value(&self) -> Option<&[u8]> {
        self.changes.last().and_then(|change| change.old.clone()).map(|range| &self.bytes[range])
    }
}

impl Edit {
    pub(super) fn new(txn: WriteTxn) -> Self {
        Self { txn, log: UndoLog::default() }
    }

    /// Puts `head` and `tail`, one after the other, under `key`. Gives what stood there.
    pub(super) fn put(
        &mut self,
        dbi: Dbi,
        key: &[u8],
        head: &[u8],
        tail: &[u8],
    ) -> Result<Option<&[u8]>, LmdbError> {
        let len = head.len() + tail.len();
        let room = match self.txn.insert(dbi, key, len)? {
            Insert::Vacant(room) => {
                self.log.note(dbi, key, None);
                room
            }
            Insert::Occupied(old) => {
                self.log.note(dbi, key, Some(old));
                self.txn.overwrite(dbi, key, len)?
            }
        };
        room[..head.len()].copy_from_slice(head);
        room[head.len()..].copy_from_slice(tail);
        Ok(self.log.old_value())
    }

    /// Removes what stands under `key`, and gives it.
    pub(super) fn remove(&mut self, dbi: Dbi, key: &[u8]) -> Result<Option<&[u8]>, LmdbError> {
        let Some(old) = self.txn.find(dbi, key)? else { return Ok(None) };
        self.log.note(dbi, key, Some(old));
        self.txn.remove(dbi)?;
        Ok(self.log.old_value())
    }

    /// Makes the changes since the last `keep` or `undo` permanent within the group.
    pub(super) fn keep(&mut self) {
        self.log.changes.clear();
        self.log.bytes.clear();
        self.log.bytes.shrink_to(LOG_LEN_KEPT);
        self.log.changes.shrink_to(LOG_LEN_KEPT / size_of::<Change>());
    }

    /// Takes the changes since the last `keep` or `undo` back.
    pub(super) fn undo(&mut self) -> Result<(), LmdbError> {
        while let Some(Change { dbi, key, old }) = self.log.changes.pop() {
            let key = &self.log.bytes[key];
            let Some(old) = old else {
                if self.txn.find(dbi, key)?.is_some() {
                    self.txn.remove(dbi)?;
                }
                continue;
            };
            let old = &self.log.bytes[old];
            let room = match self.txn.insert(dbi, key, old.len())? {
                Insert::Vacant(room) => room,
                Insert::Occupied(_) => self.txn.overwrite(dbi, key, old.len())?,
            };
            room.copy_from_slice(old);
        }
        self.keep();
        Ok(())
    }

    /// Whether anything was changed since the last `keep` or `undo`.
    pub(super) fn is_changed(&self) -> bool {
        !self.log.changes.is_empty()
    }
}
