//! The cache itself: the choice of a key's shard, and the reads.

use std::sync::Arc;

use foldhash::quality::RandomState;

use crate::{Clock, Kind, Marks, NewRecord, ReadError, Record, WriteError, limits};

use super::{
    Options, OptionsError, Statistics, record,
    segment::Location,
    shard::{Key, Now, Shard, hash_of},
    sync::{Mutex, lock},
    turn::Turn,
};

/// A cache in memory, bounded in bytes, for any number of threads. See the [module](super).
///
/// Each call is atomic and locks one shard, for as long as copying a value takes; the caller's code
/// never runs under a lock.
pub struct Cache {
    shards: Box<[Padded]>,
    pub(super) hasher: RandomState,
    pub(super) clock: Arc<dyn Clock>,
    bytes_max: usize,
    pub(super) record_len_max: usize,
    key_len_max: usize,
    value_len_max: usize,
    pub(super) turn: Turn,
}

/// A shard with its lock on its own pair of cache lines, since processors fetch lines in pairs.
#[repr(align(128))]
struct Padded(Mutex<Shard>);

/// What a read returns about a record besides its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Length of the value, in bytes.
    pub value_len: usize,
    /// The flags as they were set.
    pub flags: u32,
    /// When the record expires, in ms since the epoch; `None`: never.
    pub expires_at_ms: Option<u64>,
    /// Changes with every write of the value, and is never reused within a cache: memcached's cas.
    pub version: u64,
    /// Marks on the value; [`Marks::FETCHED`] if it was read before.
    pub marks: Marks,
}

impl Metadata {
    /// The record whose value was read with this.
    #[must_use]
    pub fn with<'v>(&self, value: &'v [u8]) -> Record<'v> {
        let Self { flags, expires_at_ms, version, marks, .. } = *self;
        Record { flags, expires_at_ms, marks, ..Record::of(value, version) }
    }
}

impl From<Record<'_>> for Metadata {
    #[inline]
    fn from(record: Record<'_>) -> Self {
        let Record { value, flags, expires_at_ms, version, marks, .. } = record;
        Self { value_len: value.len(), flags, expires_at_ms, version, marks }
    }
}

impl Cache {
    /// An empty cache. Memory is allocated as records come.
    ///
    /// # Errors
    /// If the options contradict each other.
    pub fn new(options: Options) -> Result<Self, OptionsError> {
        let layout = options.layout()?;
        let hasher = RandomState::default();
        let born_s = options.clock.now_ms() / 1000;
        let shard = |number| Padded(Mutex::new(Shard::new(number, born_s, layout, hasher.clone())));
        Ok(Self {
            shards: (0..layout.shards).map(shard).collect(),
            hasher,
            clock: options.clock,
            bytes_max: options.bytes_max,
            record_len_max: layout.record_len_max,
            key_len_max: options.key_len_max.min(limits::KEY_LEN_MAX),
            value_len_max: options.value_len_max.min(limits::VALUE_LEN_MAX),
            turn: Turn::default(),
        })
    }

    /// Copies the value of a key into `value`, replacing its contents.
    ///
    /// # Errors
    /// [`ReadError::KeyLength`].
    #[inline]
    pub fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<Option<Metadata>, ReadError> {
        self.read(key, |record| copy(record, value))
    }

    /// Reads many keys: calls `visit(i, record)` for every `keys[i]`, in order. Each key is read
    /// on its own, through `buffer`, and no lock is held while `visit` runs.
    ///
    /// # Errors
    /// [`ReadError::KeyLength`]; keys before the failing one have been visited.
    pub fn get_many(
        &self,
        keys: &[&[u8]],
        buffer: &mut Vec<u8>,
        mut visit: impl FnMut(usize, Option<Record<'_>>),
    ) -> Result<(), ReadError> {
        for (i, key) in keys.iter().enumerate() {
            let found = self.get(key, buffer)?;
            visit(i, found.map(|metadata| metadata.with(buffer)));
        }
        Ok(())
    }

    /// As [`get`](Self::get), but also sets a new expiry. The version stays.
    ///
    /// # Errors
    /// [`ReadError::KeyLength`].
    pub fn get_and_touch(
        &self,
        key: &[u8],
        expires_at_ms: Option<u64>,
        value: &mut Vec<u8>,
    ) -> Result<Option<Metadata>, ReadError> {
        self.at(key, |shard, key, now| {
            let found = shard.find(key, now);
            if let Some(location) = found {
                shard.set_expiry(location, expires_at_ms);
            }
            hit(shard, found, Shard::fetch, |record| copy(record, value))
        })
    }

    /// A record's metadata, without its value and without counting as a use of it.
    ///
    /// # Errors
    /// [`ReadError::KeyLength`].
    pub fn metadata(&self, key: &[u8]) -> Result<Option<Metadata>, ReadError> {
        self.at(key, |shard, key, now| {
            shard.find(key, now).map(|found| shard.view(found).record().into())
        })
    }

    /// As [`get`](Self::get), for a command that reads a value in order to change it. It does not
    /// set [`Marks::FETCHED`].
    pub(super) fn look_up(
        &self,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<Option<Metadata>, ReadError> {
        self.at(key, |shard, key, now| {
            let found = shard.find(key, now);
            hit(shard, found, Shard::visit, |record| copy(record, value))
        })
    }

    /// What the cache has done, and what it holds.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let mut sum = Statistics { bytes_max: self.bytes_max as u64, ..Statistics::default() };
        for shard in 0..self.shards.len() {
            self.in_shard(shard, |shard, _| sum.add(shard));
        }
        sum
    }

    /// Runs `read` on a record, under the shard's lock: it must only copy.
    #[inline]
    pub(super) fn read<R>(
        &self,
        key: &[u8],
        read: impl FnOnce(Record<'_>) -> R,
    ) -> Result<Option<R>, ReadError> {
        self.at(key, |shard, key, now| {
            let found = shard.find(key, now);
            hit(shard, found, Shard::fetch, read)
        })
    }

    /// Runs one operation on the shard of a key.
    #[inline]
    pub(super) fn at<R>(
        &self,
        key: &[u8],
        operation: impl FnOnce(&mut Shard, Key<'_>, &mut Now<'_>) -> R,
    ) -> Result<R, ReadError> {
        if key.is_empty() || key.len() > limits::KEY_LEN_MAX {
            return Err(ReadError::KeyLength { len: key.len(), max: limits::KEY_LEN_MAX });
        }
        let key = Key { bytes: key, hash: hash_of(&self.hasher, key) };
        // The topmost byte of the hash, which determines nothing else.
        let shard = (key.hash >> 56) as usize & (self.shards.len() - 1);
        Ok(self.in_shard(shard, |shard, now| operation(shard, key, now)))
    }

    /// Runs one operation on a shard.
    #[inline]
    pub(super) fn in_shard<R>(
        &self,
        number: usize,
        operation: impl FnOnce(&mut Shard, &mut Now<'_>) -> R,
    ) -> R {
        let mut now = Now::new(&*self.clock);
        let mut shard = lock(&self.shards[number].0);
        shard.begin(&mut now);
        operation(&mut shard, &mut now)
    }

    pub(super) fn shard_count(&self) -> usize {
        self.shards.len()
    }

    /// Refuses a record that this cache cannot hold.
    pub(super) fn check_record(&self, key: &[u8], new: &NewRecord<'_>) -> Result<(), WriteError> {
        if new.kind != Kind::Bytes {
            return Err(WriteError::BytesOnly);
        }
        self.check(key, new.value.len())
    }

    /// Refuses keys and values that are too long, for any record or for this cache.
    pub(super) fn check(&self, key: &[u8], value_len: usize) -> Result<(), WriteError> {
        if key.len() > self.key_len_max {
            return Err(ReadError::KeyLength { len: key.len(), max: self.key_len_max }.into());
        }
        if value_len > self.value_len_max {
            return Err(WriteError::ValueLength { len: value_len, max: self.value_len_max });
        }
        let len = record::footprint(key.len(), value_len);
        if len > self.record_len_max {
            return Err(WriteError::RecordTooLarge { len, max: self.record_len_max });
        }
        Ok(())
    }
}

/// Counts a hit or a miss, and runs `read` on a record that was found.
#[inline]
fn hit<R>(
    shard: &mut Shard,
    found: Option<Location>,
    mark: impl FnOnce(&mut Shard, Location),
    read: impl FnOnce(Record<'_>) -> R,
) -> Option<R> {
    let Some(found) = found else {
        shard.counters.misses += 1;
        return None;
    };
    shard.counters.hits += 1;
    let result = read(shard.view(found).record());
    mark(shard, found);
    Some(result)
}

#[inline]
fn copy(record: Record<'_>, value: &mut Vec<u8>) -> Metadata {
    value.clear();
    value.extend_from_slice(record.value);
    record.into()
}
