//! A command that reads a record of a cache and then writes it, made atomic: it is run again if
//! anybody wrote in between.

use std::{cell::OnceCell, ops::Bound};

use crate::{
    CommitNumber, DatabaseId, DatabaseStatistics, Direction, Entry, NewRecord, ReadError,
    ReadTransaction, Record, WriteError, WriteTransaction,
};

use super::{Cache, CacheError, CasOutcome, write::Stamp};

/// How often a command may be too late before it asks other commands to wait.
const PATIENCE: usize = 4;

/// How often a command runs that others come in between of each time, before it gives up. Only
/// plain writes to the same key can still do that when the commands wait.
const ATTEMPTS_MAX: usize = 1000;

/// Reads that are remembered. No command reads more keys before it writes one of them.
const SEEN_MAX: usize = 4;

/// One command on a cache, under the traits of a transaction. See [`Cache::transact`].
///
/// A write takes effect at once, and only if the record is still what the command has read under
/// its key; else it fails, and so does every later one.
pub struct CacheTransaction<'c> {
    cache: &'c Cache,
    database: DatabaseId,
    /// Read when it is first asked for, since that costs as much as a get.
    now_ms: OnceCell<u64>,
    /// The keys that were read last, and what stood under them.
    seen: Vec<(Vec<u8>, Option<Stamp>)>,
    /// The version of the last record that was put; 0 before the first.
    written: u64,
    has_lost: bool,
    value: Vec<u8>,
}

impl Cache {
    /// Runs `body` until none of its writes comes too late: for what reads a record and then
    /// writes it. The cache is known to `body` as `database`, and is all that it reaches. With
    /// several keys, each write is atomic alone, and what an earlier run has written stays. `body`
    /// must not call this for the same cache.
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

    /// Runs `body` up to `attempts` times; gives the result of the first run that lost no race.
    fn attempt<T, E: From<WriteError>>(
        &self,
        attempts: usize,
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
        let (seen, value) = (Vec::new(), Vec::new());
        Self { cache, database, now_ms: OnceCell::new(), seen, written: 0, has_lost: false, value }
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

    fn place(&self, key: &[u8]) -> Option<usize> {
        self.seen.iter().position(|(seen, _)| seen == key)
    }

    /// Notes what is under a key. Two reads that differ are a race that is lost already.
    fn see(&mut self, key: &[u8], stamp: Option<Stamp>) {
        match self.place(key) {
            Some(place) => self.has_lost |= self.seen[place].1 != stamp,
            None => {
                if self.seen.len() == SEEN_MAX {
                    self.seen.remove(0);
                }
                self.seen.push((key.to_vec(), stamp));
            }
        }
    }
}

impl ReadTransaction for CacheTransaction<'_> {
    fn now_ms(&self) -> u64 {
        *self.now_ms.get_or_init(|| self.cache.clock().now_ms())
    }

    fn get<'t>(
        &'t mut self,
        database: DatabaseId,
        key: &[u8],
    ) -> Result<Option<Record<'t>>, ReadError> {
        self.check(database)?;
        let found = self.cache.get(key, &mut self.value)?;
        let stamp = found.map(|metadata| Stamp::of(&metadata.with(&self.value)));
        self.see(key, stamp);
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
    /// The version of the record that was put last: a cache numbers records, not transactions.
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
        let Some(place) = self.place(key) else {
            self.written = self.cache.set(key, record)?;
            return Ok(());
        };
        let (_, seen) = self.seen.swap_remove(place);
        match self.cache.set_if_unchanged(key, seen, record)? {
            Some(version) => self.written = version,
            None => return Err(self.lost()),
        }
        Ok(())
    }

    fn delete(&mut self, database: DatabaseId, key: &[u8]) -> Result<bool, WriteError> {
        self.check_write(database)?;
        let Some(place) = self.place(key) else { return Ok(self.cache.delete(key)?) };
        let (_, seen) = self.seen.swap_remove(place);
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

impl From<CacheError> for ReadError {
    fn from(error: CacheError) -> Self {
        match error {
            CacheError::KeyLength { len, max } => Self::KeyLength { len, max },
            // A read has nothing else that can be refused.
            _ => Self::Engine { message: error.to_string() },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, time::Duration};

    use super::*;
    use crate::{IncrementError, WriteOperations, cache::Options};

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
        let far = cache.clock().now_ms() + 1_000_000;
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
    fn whoever_is_overtaken_again_and_again_gets_a_turn() {
        /// Time enough for the rival, if nothing keeps it from writing.
        const RIVAL_MS: u64 = 100;
        let (cache, id) = cache();
        let increment = |tx: &mut CacheTransaction<'_>| tx.increment(id, b"k", 1);
        let (ask, asked) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        let value = std::thread::scope(|scope| {
            scope.spawn(|| {
                for () in asked {
                    cache.transact::<_, IncrementError>(id, increment).unwrap();
                    // Nobody listens after the last one.
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
        assert!(value.unwrap() > PATIENCE as i64);
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
    fn other_databases_are_out_of_reach() {
        let (cache, id) = cache();
        let other = DatabaseId::from_index(0);
        let result =
            cache.transact::<_, WriteError>(id, |tx| tx.put(other, b"k", NewRecord::of(b"v")));
        assert!(matches!(result, Err(WriteError::Read(ReadError::Engine { .. }))), "{result:?}");
    }
}
