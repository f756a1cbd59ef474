//! The writes: set and its conditional forms, append, delete, touch, flush.

use crate::{Amendment, Condition, Marks, NewRecord, Record, WriteError};

use super::{
    Cache,
    segment::Location,
    shard::{Key, Now, Shard},
};

/// The outcome of a write that names the version to replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CasOutcome {
    /// The value was put, and has this version.
    Stored(u64),
    /// The record has another version, and stays.
    Exists,
    /// There is no such record.
    NotFound,
}

/// What is compared to find out whether a record has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) version: u64,
    expires_at_ms: Option<u64>,
    /// All but the one that every read sets.
    marks: Marks,
}

impl Stamp {
    pub(super) fn of(record: &Record<'_>) -> Self {
        let marks = record.marks.without(Marks::FETCHED);
        Self { version: record.version, expires_at_ms: record.expires_at_ms, marks }
    }
}

/// Where `append` and `prepend` put their bytes.
#[derive(Clone, Copy)]
enum Side {
    Front,
    Back,
}

impl Cache {
    /// Puts a record, replacing any that was there; returns its version.
    ///
    /// # Errors
    /// [`WriteError`], for a key or a value whose length the cache does not accept. What was there
    /// stays.
    pub fn set(&self, key: &[u8], record: NewRecord<'_>) -> Result<u64, WriteError> {
        self.check_record(key, &record)?;
        Ok(self.at(key, |shard, key, now| {
            let old = shard.find(key, now);
            shard.put(key, &record, old, now)
        })?)
    }

    /// Puts a record if there is none; returns its version if it did.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn add(&self, key: &[u8], record: NewRecord<'_>) -> Result<Option<u64>, WriteError> {
        self.set_if(key, Condition::Absent, record)
    }

    /// Puts a record if there is one; returns its version if it did.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn replace(&self, key: &[u8], record: NewRecord<'_>) -> Result<Option<u64>, WriteError> {
        self.set_if(key, Condition::Present, record)
    }

    /// Puts a record if `condition` holds; returns its version if it did.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn set_if(
        &self,
        key: &[u8],
        condition: Condition<'_>,
        record: NewRecord<'_>,
    ) -> Result<Option<u64>, WriteError> {
        self.set_where(key, record, |found| condition.holds(found))
    }

    /// Puts a record if `may` allows it, given what is there; returns its version if it did.
    pub(super) fn set_where(
        &self,
        key: &[u8],
        record: NewRecord<'_>,
        may: impl FnOnce(Option<&Record<'_>>) -> bool,
    ) -> Result<Option<u64>, WriteError> {
        self.check_record(key, &record)?;
        Ok(self.at(key, |shard, key, now| {
            let old = shard.find(key, now);
            let found = old.map(|old| shard.view(old).record());
            may(found.as_ref()).then(|| shard.put(key, &record, old, now))
        })?)
    }

    /// Puts a record if the existing one has `version`.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn cas(
        &self,
        key: &[u8],
        version: u64,
        record: NewRecord<'_>,
    ) -> Result<CasOutcome, WriteError> {
        self.check_record(key, &record)?;
        Ok(self.at(key, |shard, key, now| match shard.find(key, now) {
            None => CasOutcome::NotFound,
            Some(old) if shard.view(old).record().version != version => CasOutcome::Exists,
            old => CasOutcome::Stored(shard.put(key, &record, old, now)),
        })?)
    }

    /// Appends `suffix` to a value, if there is one; returns the new version. Keeps flags and
    /// expiry.
    ///
    /// # Errors
    /// As [`set`](Self::set), for the value as it would become.
    pub fn append(&self, key: &[u8], suffix: &[u8]) -> Result<Option<u64>, WriteError> {
        self.extend(key, suffix, Side::Back)
    }

    /// Prepends `prefix` to a value, if there is one; returns the new version. Keeps flags and
    /// expiry.
    ///
    /// # Errors
    /// As [`set`](Self::set), for the value as it would become.
    pub fn prepend(&self, key: &[u8], prefix: &[u8]) -> Result<Option<u64>, WriteError> {
        self.extend(key, prefix, Side::Front)
    }

    fn extend(&self, key: &[u8], bytes: &[u8], side: Side) -> Result<Option<u64>, WriteError> {
        self.at(key, |shard, key, now| {
            let Some(old) = shard.find(key, now) else { return Ok(None) };
            let record = shard.view(old).record();
            self.check(key.bytes, record.value.len() + bytes.len())?;
            let value = match side {
                Side::Front => [bytes, record.value].concat(),
                Side::Back => [record.value, bytes].concat(),
            };
            Ok(Some(put_value(shard, key, &value, old, now)))
        })?
    }

    /// Deletes a record; returns whether there was one.
    ///
    /// # Errors
    /// [`ReadError::KeyLength`](crate::ReadError::KeyLength).
    pub fn delete(&self, key: &[u8]) -> Result<bool, WriteError> {
        self.delete_if(key, |_| true).map(|outcome| outcome != CasOutcome::NotFound)
    }

    /// Deletes a record if it has `version`. For a deleted record, the result is `Stored(version)`.
    ///
    /// # Errors
    /// [`ReadError::KeyLength`](crate::ReadError::KeyLength).
    pub fn delete_version(&self, key: &[u8], version: u64) -> Result<CasOutcome, WriteError> {
        self.delete_if(key, |found| found == version)
    }

    fn delete_if(
        &self,
        key: &[u8],
        is_meant: impl FnOnce(u64) -> bool,
    ) -> Result<CasOutcome, WriteError> {
        Ok(self.at(key, |shard, key, now| {
            let Some(found) = shard.find(key, now) else { return CasOutcome::NotFound };
            let version = shard.view(found).record().version;
            if !is_meant(version) {
                return CasOutcome::Exists;
            }
            shard.remove(key.hash, found);
            shard.counters.deleted += 1;
            CasOutcome::Stored(version)
        })?)
    }

    /// Sets a record's expiry; returns whether there was a record. The version stays.
    ///
    /// # Errors
    /// [`ReadError::KeyLength`](crate::ReadError::KeyLength).
    pub fn touch(&self, key: &[u8], expires_at_ms: Option<u64>) -> Result<bool, WriteError> {
        Ok(self.at(key, |shard, key, now| {
            let Some(found) = shard.find(key, now) else { return false };
            shard.set_expiry(found, expires_at_ms);
            shard.visit(found);
            true
        })?)
    }

    /// Sets a record's expiry and marks; returns its version, which stays.
    ///
    /// # Errors
    /// [`ReadError::KeyLength`](crate::ReadError::KeyLength).
    pub fn amend(&self, key: &[u8], amendment: Amendment) -> Result<Option<u64>, WriteError> {
        Ok(self.at(key, |shard, key, now| {
            let found = shard.find(key, now)?;
            Some(shard.amend(found, amendment))
        })?)
    }

    /// As [`amend`](Self::amend), if the record is still what was seen; `Err(())` if not.
    pub(super) fn amend_if_unchanged(
        &self,
        key: &[u8],
        seen: Option<Stamp>,
        amendment: Amendment,
    ) -> Result<Result<Option<u64>, ()>, WriteError> {
        Ok(self.at(key, |shard, key, now| {
            let found = shard.find(key, now);
            if found.map(|found| Stamp::of(&shard.view(found).record())) != seen {
                return Err(());
            }
            Ok(found.map(|found| shard.amend(found, amendment)))
        })?)
    }

    /// Removes every record that is there after `delay_ms` milliseconds; at once if it is 0. A
    /// second call before that time replaces the first. Shards are emptied one after another: a
    /// record set during the call may stay.
    pub fn flush_all(&self, delay_ms: u64) {
        let at_ms = match delay_ms {
            0 => 0,
            delay => self.clock.now_ms().saturating_add(delay),
        };
        for number in 0..self.shard_count() {
            self.in_shard(number, |shard, now| {
                shard.flush_at(at_ms);
                shard.begin(now);
            });
        }
    }

    /// Looks at about `records_max` records and removes those that have expired; returns how many
    /// it has removed. Each call continues where the last one ended. Eviction removes expired
    /// records without this; a call now and then frees their memory sooner.
    pub fn remove_expired(&self, records_max: usize) -> usize {
        /// A bucket holds about this many records.
        const RECORDS_PER_BUCKET: usize = 8;
        self.remove_some_expired(records_max.div_ceil(RECORDS_PER_BUCKET), usize::MAX)
    }

    /// As [`remove_expired`](Self::remove_expired), but takes the number of buckets to look at;
    /// removes at most `removed_max`.
    pub fn remove_some_expired(&self, buckets: usize, removed_max: usize) -> usize {
        let buckets = buckets.div_ceil(self.shard_count());
        (0..self.shard_count()).fold(0, |removed, number| {
            let left = removed_max - removed;
            removed + self.in_shard(number, |shard, now| shard.remove_expired(buckets, left, now))
        })
    }
}

/// Puts another value under a key, and keeps flags and expiry.
pub(super) fn put_value(
    shard: &mut Shard,
    key: Key<'_>,
    value: &[u8],
    old: Location,
    now: &mut Now<'_>,
) -> u64 {
    let new = shard.view(old).record().with_value(value);
    shard.put(key, &new, Some(old), now)
}
