//! One part of the cache, behind one lock: its records, their index, and their memory budget.

use foldhash::quality::RandomState;

use crate::{Amendment, Clock, Marks, NewRecord, Record};

use super::{
    dictionary,
    ghost::Ghost,
    index::Index,
    options::Layout,
    record::{self, View},
    segment::{Location, Queue, Segments},
    statistics::Statistics,
};

/// The first version is derived from the time, so that a cache made after another has ended does
/// not reuse the other's versions: a client may still hold one. Enough for a million writes a
/// second, and the numbers stay below 2^53 until the year 2242.
const VERSIONS_A_SECOND_LOG2: u32 = 20;

/// A key with its hash.
#[derive(Clone, Copy)]
pub(super) struct Key<'k> {
    pub(super) bytes: &'k [u8],
    pub(super) hash: u64,
}

/// The time of one operation. The clock is only read if needed: most records never expire.
pub(super) struct Now<'c> {
    clock: &'c dyn Clock,
    read: Option<u64>,
}

impl<'c> Now<'c> {
    pub(super) fn new(clock: &'c dyn Clock) -> Self {
        Self { clock, read: None }
    }

    /// Milliseconds since the epoch, the same throughout the operation.
    pub(super) fn ms(&mut self) -> u64 {
        *self.read.get_or_insert_with(|| self.clock.now_ms())
    }

    #[inline]
    pub(super) fn has_passed(&mut self, at_ms: Option<u64>) -> bool {
        at_ms.is_some_and(|at| at <= self.ms())
    }
}

pub(super) struct Shard {
    pub(super) segments: Segments,
    pub(super) index: Index,
    pub(super) ghost: Ghost,
    pub(super) hasher: RandomState,
    /// What it has done; the rest is counted on demand.
    pub(super) counters: Statistics,
    pub(super) layout: Layout,
    /// When to remove everything that is here by then.
    flush_at_ms: Option<u64>,
    /// From the time plus the shard's number, it grows by the number of shards: none is used twice.
    version: u64,
    /// The bucket from which the next search for expired records continues.
    expiry_cursor: usize,
}

impl Shard {
    pub(super) fn new(number: usize, born_s: u64, layout: Layout, hasher: RandomState) -> Self {
        Self {
            segments: Segments::new(layout.segment_len),
            index: Index::default(),
            ghost: Ghost::default(),
            hasher,
            counters: Statistics::default(),
            layout,
            flush_at_ms: None,
            version: (born_s << VERSIONS_A_SECOND_LOG2) + number as u64,
            expiry_cursor: 0,
        }
    }

    /// Bytes that the shard has allocated.
    pub(super) fn bytes(&self) -> usize {
        self.segments.bytes() + self.index.bytes() + self.ghost.bytes()
    }

    /// Forgets everything and frees the memory. Counters and versions continue.
    pub(super) fn clear(&mut self) {
        self.counters.flushed += self.index.len() as u64;
        self.segments = Segments::new(self.layout.segment_len);
        self.index = Index::default();
        self.ghost = Ghost::default();
    }

    /// Schedules the removal of everything that is here at that time. It takes effect with the
    /// first operation on the shard from then on, before anyone could see the difference.
    pub(super) fn flush_at(&mut self, at_ms: u64) {
        self.flush_at_ms = Some(at_ms);
    }

    /// Must be called before every other operation.
    #[inline]
    pub(super) fn begin(&mut self, now: &mut Now<'_>) {
        if self.flush_at_ms.is_some() && now.has_passed(self.flush_at_ms) {
            self.flush_at_ms = None;
            self.clear();
        }
    }

    #[inline]
    pub(super) fn view(&self, location: Location) -> View<'_> {
        self.segments.view(location)
    }

    /// The record of a key, if it is there and has not expired.
    #[inline]
    pub(super) fn find(&mut self, key: Key<'_>, now: &mut Now<'_>) -> Option<Location> {
        let segments = &self.segments;
        let found = self.index.find(key.hash, |at| segments.view(at).key() == key.bytes)?;
        if now.has_passed(segments.view(found).expires_at_ms()) {
            self.remove(key.hash, found);
            self.counters.expired += 1;
            return None;
        }
        Some(found)
    }

    /// Counts a use of a record, so that it is kept longer.
    #[inline]
    pub(super) fn visit(&mut self, location: Location) {
        record::visit(self.segments.at_mut(location));
    }

    /// Counts a use of a record whose value was read.
    #[inline]
    pub(super) fn fetch(&mut self, location: Location) {
        let bytes = self.segments.at_mut(location);
        record::visit(bytes);
        record::fetch(bytes);
    }

    /// Removes a record.
    pub(super) fn remove(&mut self, hash: u64, location: Location) {
        self.index.remove(hash, location);
        self.segments.kill(location);
    }

    /// Puts a record in place of `old`, which [`find`](Self::find) has found under the key; returns
    /// its version. The caller has checked the lengths.
    pub(super) fn put(
        &mut self,
        key: Key<'_>,
        new: &NewRecord<'_>,
        old: Option<Location>,
        now: &mut Now<'_>,
    ) -> u64 {
        let version = self.next_version();
        self.counters.sets += 1;
        let footprint = record::footprint(key.bytes.len(), new.value.len());
        let (queue, visits) = match old {
            None => (self.queue_for(key.hash), 0),
            Some(old) => {
                let view = self.view(old);
                let visits = (view.visits() + 1).min(record::VISITS_MAX);
                if view.footprint() == footprint {
                    record::write(self.segments.at_mut(old), key.bytes, new, version, visits);
                    return version;
                }
                let queue = self.segments.queue_of(old);
                self.remove(key.hash, old);
                (queue, visits)
            }
        };
        self.make_room(queue, footprint, now);
        let location = self.segments.append(queue, footprint);
        record::write(self.segments.at_mut(location), key.bytes, new, version, visits);
        let (segments, hasher) = (&self.segments, &self.hasher);
        self.index.insert(key.hash, location, |at| hash_of(hasher, segments.view(at).key()));
        version
    }

    /// Adds to a number in place and returns the sum, if both are unsigned integers and the sum has
    /// as many digits as the number: only the digits that change are written.
    #[inline]
    pub(super) fn add_in_place(&mut self, location: Location, by: f64) -> Option<f64> {
        let view = self.view(location);
        let Record { value, marks, .. } = view.record();
        let (visits, added) = (view.visits(), u64::from(by as u32));
        if marks.form() != Marks::NUMBER || added as f64 != by {
            return None;
        }
        let is_padded = value.first() == Some(&b'0') && value.len() > 1;
        let sum = dictionary::parse_digits(value).filter(|_| !is_padded)? + added;
        if sum >= 10u64.pow(value.len() as u32) {
            return None;
        }
        let version = self.next_version();
        self.counters.sets += 1;
        let visits = (visits + 1).min(record::VISITS_MAX);
        record::add(self.segments.at_mut(location), added, version, visits);
        Some(sum as f64)
    }

    fn queue_for(&mut self, hash: u64) -> Queue {
        if self.ghost.recall(hash, self.index.len()) { Queue::Main } else { Queue::Window }
    }

    /// A new expiry does not change the value, so the version stays, as in memcached.
    pub(super) fn set_expiry(&mut self, location: Location, expires_at_ms: Option<u64>) {
        record::set_expiry(self.segments.at_mut(location), expires_at_ms);
    }

    /// Returns the version, which stays, too.
    pub(super) fn amend(&mut self, location: Location, amendment: Amendment) -> u64 {
        let bytes = self.segments.at_mut(location);
        record::set_expiry(bytes, amendment.expires_at_ms);
        record::set_marks(bytes, amendment.marks);
        self.view(location).record().version
    }

    fn next_version(&mut self) -> u64 {
        self.version = record::version_of(self.version + self.layout.shards as u64);
        self.version
    }

    /// Looks at the records of up to `buckets` buckets and removes those that have expired. Returns
    /// how many it has removed.
    pub(super) fn remove_expired(
        &mut self,
        buckets: usize,
        removed_max: usize,
        now: &mut Now<'_>,
    ) -> usize {
        let mut removed = 0;
        for _ in 0..buckets.min(self.index.buckets()) {
            self.expiry_cursor = (self.expiry_cursor + 1) % self.index.buckets();
            for location in self.index.in_bucket(self.expiry_cursor) {
                let view = self.view(location);
                if removed < removed_max && now.has_passed(view.expires_at_ms()) {
                    let hash = hash_of(&self.hasher, view.key());
                    self.remove(hash, location);
                    removed += 1;
                }
            }
        }
        self.counters.expired += removed as u64;
        removed
    }
}

/// The hash of a key, with the seed that the cache drew when it was made.
#[inline]
pub(super) fn hash_of(hasher: &RandomState, key: &[u8]) -> u64 {
    use std::hash::{BuildHasher, Hasher};
    let mut hasher = hasher.build_hasher();
    hasher.write(key);
    hasher.finish()
}
