//! Atomic commands that read a record of a cache and then write it: they run again if another
//! thread wrote in between.

use std::{cell::OnceCell, collections::HashMap, ops::Bound};

use foldhash::quality::RandomState;

use crate::{
    Amendment, CommitNumber, DatabaseId, DatabaseStatistics, Direction, Entry, NewRecord,
    ReadError, ReadTransaction, Record, WriteError, WriteTransaction,
};

use super::{Cache, CasOutcome, write::Stamp};

/// How often a command may lose the race before it asks other commands to wait.
const PATIENCE: u32 = 4;

/// How often a command runs, losing the race each time, before it gives up. While the other
/// commands wait, only plain writes to the same key can still win it.
const ATTEMPTS_MAX: u32 = 1000;

/// Maximum number of keys that one command reads: each of them is tracked.
const READS_MAX: usize = 10_000;

/// One command on a cache, behind the traits of a transaction. See [`Cache::transact`].
///
/// A write takes effect at once, but only if the record is still what the command has read under
/// its key. Otherwise it fails, and so does every later one.
pub struct CacheTransaction<'c> {
    cache: &'c Cache,
    database: DatabaseId,
    /// Read on first use, since reading the clock costs as much as a get.
    now_ms: OnceCell<u64>,
    /// The keys that were read and not written since, and what was under them.
    seen: HashMap<Box<[u8]>, Option<Stamp>, RandomState>,
    /// The version of the last record that was put; 0 before the first.
    written: u64,
    has_lost: bool,
    value: Vec<u8>,
}

impl Cache {
    /// Runs `body` until none of its writes loses a race: for code that reads a record and then
    /// writes it. `body` sees the cache as `database`, and has access to nothing else. With several
    /// keys, each write is atomic by itself, and what an earlier run has written stays. `body` must
    /// not call this for the same cache.
    ///
    /// # Errors
    /// The body's; [`WriteError::Raced`] if others were faster every time.
    pub fn transact<T, E: From<WriteError>>(
        &self,
        database: DatabaseId,
        mut body: impl FnMut(&mut CacheTransaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.turn.wait();
        if let Some(result) = self.attempt(PATIENCE, database, &mut body) {
            return result;
        }
        let _turn = self.turn.take();
        self.attempt(ATTEMPTS_MAX, database, &mut body)
            .unwrap_or_else(|| Err(WriteError::Raced.into()))
    }

    /// Runs `body` up to `attempts` times; returns the result of the first run that lost no race.
    fn attempt<T, E: From<WriteError>>(
        &self,
        attempts: u32,
        database: DatabaseId,
        body: &mut impl FnMut(&mut CacheTransaction<'_>) -> Result<T, E>,
    ) -> Option<Result<T, E>> {
        (0..attempts).find_map(|_| {
            let mut transaction = CacheTransaction::new(self, database);
            let result = body(&mut transaction);
            (!transaction.has_lost).then_some(result)
        })
    }
}

impl<'c> CacheTransaction<'c> {
    fn new(cache: &'c Cache, database: DatabaseId) -> Self {
        let (now_ms, value) = (OnceCell::new(), Vec::new());
        let seen = HashMap::with_hasher(cache.hasher.clone());
        Self { cache, database, now_ms, seen, written: 0, has_lost: false, value }
    }

    fn check(&self, database: DatabaseId) -> Result<(), ReadError> {
        if database == self.database {
            return Ok(());
        }
        let message = "a command on a cache reaches that cache alone".to_owned();
        Err(ReadError::Engine { message })
    }

    /// As [`check`](Self::check), for a write.
    fn check_write(&self, database: DatabaseId) -> Result<(), WriteError> {
        self.check(database)?;
        if self.has_lost { Err(WriteError::Raced) } else { Ok(()) }
    }

    fn lost(&mut self) -> WriteError {
        self.has_lost = true;
        WriteError::Raced
    }

    /// Records what is under a key. Two reads that differ mean that the race is already lost.
    fn see(&mut self, key: &[u8], stamp: Option<Stamp>) -> Result<(), ReadError> {
        if let Some(seen) = self.seen.get(key) {
            self.has_lost |= *seen != stamp;
        } else if self.seen.len() == READS_MAX {
            return Err(ReadError::TooManyReads { max: READS_MAX });
        } else {
            self.seen.insert(key.into(), stamp);
        }
        Ok(())
    }

    /// What was under a key that is about to be written, if it was read. Most commands that write
    /// have read nothing, so this avoids hashing the key for them.
    fn forget(&mut self, key: &[u8]) -> Option<Option<Stamp>> {
        if self.seen.is_empty() { None } else { self.seen.remove(key) }
    }
}

impl ReadTransaction for CacheTransaction<'_> {
    fn now_ms(&self) -> u64 {
        *self.now_ms.get_or_init(|| self.cache.clock.now_ms())
    }

    fn get<'t>(
        &'t mut self,
        database: DatabaseId,
        key: &[u8],
    ) -> Result<Option<Record<'t>>, ReadError> {
        self.check(database)?;
        let found = self.cache.look_up(key, &mut self.value)?;
        let stamp = found.map(|metadata| Stamp::of(&metadata.with(&self.value)));
        self.see(key, stamp)?;
        Ok(found.map(|metadata| metadata.with(&self.value)))
    }

    fn seek<'t>(
        &'t mut self,
        _: DatabaseId,
        _: Bound<&[u8]>,
        _: Direction,
    ) -> Result<Option<Entry<'t>>, ReadError> {
        Err(ReadError::Unordered)
    }

    fn statistics(&mut self, database: DatabaseId) -> Result<DatabaseStatistics, ReadError> {
        self.check(database)?;
        Ok(self.cache.statistics().into())
    }
}

impl WriteTransaction for CacheTransaction<'_> {
    /// The version of the last record put: a cache numbers records, not transactions.
    fn number(&self) -> CommitNumber {
        self.written
    }

    fn put(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        record: NewRecord<'_>,
    ) -> Result<(), WriteError> {
        self.check_write(database)?;
        let Some(seen) = self.forget(key) else {
            self.written = self.cache.set(key, record)?;
            return Ok(());
        };
        match self.cache.set_where(key, record, |found| found.map(Stamp::of) == seen)? {
            Some(version) => self.written = version,
            None => return Err(self.lost()),
        }
        Ok(())
    }

    fn amend(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        amendment: Amendment,
    ) -> Result<Option<CommitNumber>, WriteError> {
        self.check_write(database)?;
        let Some(seen) = self.forget(key) else { return self.cache.amend(key, amendment) };
        match self.cache.amend_if_unchanged(key, seen, amendment)? {
            Ok(version) => Ok(version),
            Err(()) => Err(self.lost()),
        }
    }

    fn delete(&mut self, database: DatabaseId, key: &[u8]) -> Result<bool, WriteError> {
        self.check_write(database)?;
        let Some(seen) = self.forget(key) else { return self.cache.delete(key) };
        let Some(stamp) = seen else { return Ok(false) };
        match self.cache.delete_version(key, stamp.version)? {
            CasOutcome::Stored(_) => Ok(true),
            CasOutcome::Exists | CasOutcome::NotFound => Err(self.lost()),
        }
    }

    fn clear(&mut self, database: DatabaseId) -> Result<(), WriteError> {
        self.check_write(database)?;
        self.cache.flush_all(0);
        Ok(())
    }
}

impl From<super::Statistics> for DatabaseStatistics {
    fn from(statistics: super::Statistics) -> Self {
        Self { records: statistics.records, key_bytes: 0, value_bytes: statistics.record_bytes }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, time::Duration};

    use super::*;
    use crate::{IncrementError, Marks, WriteOperations, cache::Options};

    fn cache() -> (Cache, DatabaseId) {
        let options = Options { bytes_max: 1 << 20, ..Options::default() };
        (Cache::new(options).unwrap(), DatabaseId::from_mount(0))
    }

    fn value(cache: &Cache, key: &[u8]) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        cache.get(key, &mut value).unwrap().map(|_| value)
    }

    #[test]
    fn a_write_that_comes_too_late_runs_again() {
        let (cache, id) = cache();
        cache.set(b"k", NewRecord::of(b"1")).unwrap();
        let mut runs = 0;
        let new = cache.transact::<_, IncrementError>(id, |tx| {
            runs += 1;
            tx.get(id, b"k")?;
            if runs == 1 {
                cache.set(b"k", NewRecord::of(b"10")).unwrap();
            }
            tx.increment(id, b"k", 1)
        });
        assert_eq!((new.unwrap(), runs), (11, 2));
        assert_eq!(value(&cache, b"k").unwrap(), b"11");
    }

    #[test]
    fn an_expiry_that_changed_is_a_change() {
        let (cache, id) = cache();
        cache.set(b"k", NewRecord::of(b"1")).unwrap();
        let far = cache.clock.now_ms() + 1_000_000;
        let mut runs = 0;
        cache
            .transact::<_, WriteError>(id, |tx| {
                runs += 1;
                let old = tx.get(id, b"k")?.unwrap().expires_at_ms;
                if runs == 1 {
                    cache.touch(b"k", Some(far)).unwrap();
                }
                tx.put(id, b"k", NewRecord::of(b"2").expiring(old))
            })
            .unwrap();
        assert_eq!(runs, 2);
        assert_eq!(cache.metadata(b"k").unwrap().unwrap().expires_at_ms, Some(far));
    }

    #[test]
    fn what_was_seen_absent_is_put_only_while_it_is() {
        let (cache, id) = cache();
        let put = |tx: &mut CacheTransaction<'_>| {
            if tx.get(id, b"k")?.is_some() {
                return Ok(false);
            }
            cache.add(b"k", NewRecord::of(b"theirs")).unwrap();
            tx.put(id, b"k", NewRecord::of(b"ours")).map(|()| true)
        };
        assert!(!cache.transact::<_, WriteError>(id, put).unwrap());
        assert_eq!(value(&cache, b"k").unwrap(), b"theirs");
    }

    #[test]
    fn the_first_of_many_keys_that_were_read_is_put_only_while_it_is_unchanged() {
        let (cache, id) = cache();
        let keys: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        for key in &keys {
            cache.set(key.as_bytes(), NewRecord::of(b"1")).unwrap();
        }
        let mut runs = 0;
        let sum = cache.transact::<_, IncrementError>(id, |tx| {
            runs += 1;
            for key in &keys {
                tx.get(id, key.as_bytes())?;
            }
            if runs == 1 {
                cache.set(b"0", NewRecord::of(b"10")).unwrap();
            }
            tx.increment(id, b"0", 1)
        });
        assert_eq!((sum.unwrap(), runs), (11, 2));
    }

    #[test]
    fn whoever_reads_more_keys_than_can_be_remembered_is_told() {
        let (cache, id) = cache();
        let result = cache.transact::<_, WriteError>(id, |tx| {
            (0..=READS_MAX).try_for_each(|n| tx.get(id, &n.to_be_bytes()).map(drop))?;
            tx.put(id, b"k", NewRecord::of(b"v"))
        });
        let max = READS_MAX;
        assert!(
            matches!(result, Err(WriteError::Read(ReadError::TooManyReads { max: m })) if m == max)
        );
        assert_eq!(value(&cache, b"k"), None);
    }

    #[test]
    fn whoever_is_overtaken_again_and_again_gets_a_turn() {
        /// Enough time for the rival, if nothing keeps it from writing.
        const RIVAL_MS: u64 = 100;
        let (cache, id) = cache();
        let increment = |tx: &mut CacheTransaction<'_>| tx.increment(id, b"k", 1);
        let (ask, asked) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        let value = std::thread::scope(|scope| {
            scope.spawn(|| {
                for () in asked {
                    cache.transact::<_, IncrementError>(id, increment).unwrap();
                    // Nothing receives after the last one.
                    let _ = tell.send(());
                }
            });
            let ask = ask;
            cache.transact::<_, IncrementError>(id, |tx| {
                tx.get(id, b"k")?;
                ask.send(()).unwrap();
                let _ = told.recv_timeout(Duration::from_millis(RIVAL_MS));
                tx.increment(id, b"k", 1)
            })
        });
        assert!(value.unwrap() > i64::from(PATIENCE));
    }

    #[test]
    fn whoever_always_comes_too_late_is_told() {
        let (cache, id) = cache();
        let result = cache.transact::<_, WriteError>(id, |tx| {
            tx.get(id, b"k")?;
            cache.set(b"k", NewRecord::of(b"theirs")).unwrap();
            tx.put(id, b"k", NewRecord::of(b"ours"))
        });
        assert!(matches!(result, Err(WriteError::Raced)), "{result:?}");
        assert_eq!(value(&cache, b"k").unwrap(), b"theirs");
    }

    #[test]
    fn of_two_that_claim_a_record_one_comes_first() {
        let (cache, id) = cache();
        let version = cache.set(b"k", NewRecord::of(b"1")).unwrap();
        let claim = |tx: &mut CacheTransaction<'_>| {
            let record = tx.get(id, b"k")?.unwrap();
            let expires_at_ms = record.expires_at_ms;
            if record.marks.has(Marks::CLAIMED) {
                return Ok(None);
            }
            let theirs = Amendment { expires_at_ms, marks: Marks::CLAIMED };
            cache.amend(b"k", theirs).unwrap();
            tx.amend(id, b"k", Amendment { expires_at_ms, marks: Marks::CLAIMED })
        };
        assert_eq!(cache.transact::<_, WriteError>(id, claim).unwrap(), None);
        let found = cache.metadata(b"k").unwrap().unwrap();
        assert_eq!((found.version, found.marks), (version, Marks::CLAIMED));
    }

    #[test]
    fn other_databases_are_out_of_reach() {
        let (cache, id) = cache();
        let other = DatabaseId::from_index(0);
        let result =
            cache.transact::<_, WriteError>(id, |tx| tx.put(other, b"k", NewRecord::of(b"v")));
        assert!(matches!(result, Err(WriteError::Read(ReadError::Engine { .. }))), "{result:?}");
    }
}
