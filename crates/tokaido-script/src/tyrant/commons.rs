//! What the scripts of all virtual machines share: the stash, the locks and the iterator. None of it is part of a
//! transaction, and none of it outlives the process.

use std::{
    collections::{BTreeMap, HashSet},
    ops::Bound,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokaido_store::KeyIterator;

/// Maximum size of the stash, in bytes, if no other is set.
const STASH_BYTES_MAX: usize = 64 << 20;

/// What a record of the stash takes besides its key and value, in bytes: roughly the map's overhead.
const RECORD_BYTES: usize = 64;

/// Maximum number of locks held at a time.
const LOCKS_MAX: usize = 10_000;

/// Maximum length of the name of a lock, in bytes.
const LOCK_LEN_MAX: usize = 4096;

/// What the scripts of all virtual machines share.
#[derive(Debug)]
pub struct TyrantCommons {
    stash: Mutex<Stash>,
    stash_bytes_max: usize,
    locks: Mutex<HashSet<Box<[u8]>>>,
    iterator: Mutex<KeyIterator>,
}

#[derive(Debug, Default)]
struct Stash {
    records: BTreeMap<Box<[u8]>, Vec<u8>>,
    bytes: usize,
}

/// How a record is put into the stash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StashPut {
    /// Replaces the existing record.
    Replace,
    /// Only if there is none.
    Keep,
    /// Appends to the existing record.
    Append,
}

/// The stash is full.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the stash has {bytes_max} bytes at most; take something out of it, or raise limits.tyrant_stash_bytes_max"
)]
pub(crate) struct StashFull {
    bytes_max: usize,
}

impl Default for TyrantCommons {
    fn default() -> Self {
        Self::new(STASH_BYTES_MAX)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TyrantCommons {
    /// With a stash of that many bytes.
    #[must_use]
    pub fn new(stash_bytes_max: usize) -> Self {
        Self {
            stash: Mutex::default(),
            stash_bytes_max,
            locks: Mutex::default(),
            iterator: Mutex::default(),
        }
    }

    /// Puts a record into the stash.
    pub(crate) fn stash_put(
        &self,
        key: &[u8],
        value: &[u8],
        how: StashPut,
    ) -> Result<(), StashFull> {
        let mut stash = locked(&self.stash);
        let old_len = stash.records.get(key).map(Vec::len);
        let added = match (old_len, how) {
            (Some(_), StashPut::Keep) => return Ok(()),
            (Some(_), StashPut::Append) => value.len(),
            (Some(old_len), StashPut::Replace) => value.len().saturating_sub(old_len),
            (None, _) => key.len() + value.len() + RECORD_BYTES,
        };
        if added > self.stash_bytes_max - stash.bytes {
            return Err(StashFull { bytes_max: self.stash_bytes_max });
        }
        stash.bytes += added;
        if how == StashPut::Replace {
            stash.bytes -= old_len.unwrap_or(0).saturating_sub(value.len());
        }
        match stash.records.get_mut(key) {
            Some(old) if how == StashPut::Append => old.extend_from_slice(value),
            Some(old) => *old = value.to_vec(),
            None => drop(stash.records.insert(key.into(), value.to_vec())),
        }
        Ok(())
    }

    /// Removes a record from the stash; tells whether it existed.
    pub(crate) fn stash_out(&self, key: &[u8]) -> bool {
        let mut stash = locked(&self.stash);
        let Some(value) = stash.records.remove(key) else { return false };
        stash.bytes -= key.len() + value.len() + RECORD_BYTES;
        true
    }

    /// Appends the value of a record of the stash to `out`; tells whether there is one.
    pub(crate) fn stash_get(&self, key: &[u8], out: &mut Vec<u8>) -> bool {
        let stash = locked(&self.stash);
        let Some(value) = stash.records.get(key) else { return false };
        out.extend_from_slice(value);
        true
    }

    /// Empties the stash.
    pub(crate) fn stash_vanish(&self) {
        *locked(&self.stash) = Stash::default();
    }

    /// Appends key and value of the first record after a key, or of the first of all, to `out`; gives the key's length.
    pub(crate) fn stash_next(&self, behind: Option<&[u8]>, out: &mut Vec<u8>) -> Option<usize> {
        let stash = locked(&self.stash);
        let from = behind.map_or(Bound::Unbounded, Bound::Excluded);
        let (key, value) = stash.records.range::<[u8], _>((from, Bound::Unbounded)).next()?;
        out.extend_from_slice(key);
        out.extend_from_slice(value);
        Some(key.len())
    }

    /// Takes a lock; tells whether it was free. A lock that cannot be taken, since there are too many or its name is too
    /// long, counts as not free.
    pub(crate) fn lock(&self, key: &[u8]) -> bool {
        let mut locks = locked(&self.locks);
        key.len() <= LOCK_LEN_MAX && locks.len() < LOCKS_MAX && locks.insert(key.into())
    }

    /// Releases a lock; tells whether it was taken.
    pub(crate) fn unlock(&self, key: &[u8]) -> bool {
        locked(&self.locks).remove(key)
    }

    /// The iterator that all scripts share.
    pub fn iterator(&self) -> MutexGuard<'_, KeyIterator> {
        locked(&self.iterator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stash_is_bounded_and_gives_back_what_goes() {
        let commons = TyrantCommons::new(2 * (RECORD_BYTES + 10));
        let put = |key: &str, len, how| commons.stash_put(key.as_bytes(), &vec![b'x'; len], how);
        let full = Err(StashFull { bytes_max: commons.stash_bytes_max });
        for _ in 0..3 {
            assert_eq!(put("a", 9, StashPut::Replace), Ok(()));
            assert_eq!(put("b", 4, StashPut::Replace), Ok(()));
            assert_eq!(put("b", 5, StashPut::Append), Ok(()));
            assert_eq!(put("b", 1, StashPut::Append), full);
            assert_eq!(put("c", 0, StashPut::Keep), full);
            assert_eq!(put("b", 99, StashPut::Keep), Ok(()));
            assert_eq!(put("b", 10, StashPut::Replace), full);
            assert_eq!(
                (put("b", 0, StashPut::Replace), put("b", 9, StashPut::Append)),
                (Ok(()), Ok(()))
            );
            assert!(commons.stash_out(b"a") && !commons.stash_out(b"a"));
            let mut found = Vec::new();
            assert!(commons.stash_get(b"b", &mut found) && found == [b'x'; 9]);
            assert_eq!(commons.stash_next(None, &mut found), Some(1));
            assert_eq!(commons.stash_next(Some(b"b"), &mut found), None);
            assert_eq!(put("c", 9, StashPut::Keep), Ok(()));
            commons.stash_vanish();
            assert_eq!(locked(&commons.stash).bytes, 0);
        }
    }

    #[test]
    fn a_lock_is_held_once() {
        let commons = TyrantCommons::default();
        assert!(commons.lock(b"a") && !commons.lock(b"a") && commons.lock(b"b"));
        assert!(commons.unlock(b"a") && !commons.unlock(b"a") && commons.lock(b"a"));
        assert!(!commons.lock(&[0; LOCK_LEN_MAX + 1]));
        assert!((2..LOCKS_MAX).all(|i| commons.lock(&i.to_be_bytes())) && !commons.lock(b"z"));
    }
}
