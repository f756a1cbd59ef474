//! What the cache has done, and what it holds.

/// What a cache has done since it was made, and what it holds. Each shard is asked in turn, so the
/// sums are exact only while nobody writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Reads that found a record.
    pub hits: u64,
    /// Reads that found none.
    pub misses: u64,
    /// Values written: by set, add, replace, cas, append, prepend and counters.
    pub sets: u64,
    /// Records that were deleted.
    pub deleted: u64,
    /// Records that were evicted to make room.
    pub evicted: u64,
    /// Records that were found expired, and removed.
    pub expired: u64,
    /// Records that `flush_all` removed.
    pub flushed: u64,
    /// Records held, including expired ones that have not been removed yet.
    pub records: u64,
    /// Bytes of these records, with their headers, rounded up to eight.
    pub record_bytes: u64,
    /// Bytes allocated in total: records, room for more, index. Never above `bytes_max`.
    pub bytes_used: u64,
    /// Of these, the bytes of the index and of the ghost, which remembers evicted keys.
    pub index_bytes: u64,
    /// The bound that was set.
    pub bytes_max: u64,
}

impl Statistics {
    pub(super) fn add(&mut self, shard: &super::shard::Shard) {
        let counters = &shard.counters;
        self.hits += counters.hits;
        self.misses += counters.misses;
        self.sets += counters.sets;
        self.deleted += counters.deleted;
        self.evicted += counters.evicted;
        self.expired += counters.expired;
        self.flushed += counters.flushed;
        self.records += shard.index.len() as u64;
        self.record_bytes += shard.segments.live() as u64;
        self.bytes_used += shard.bytes() as u64;
        self.index_bytes += (shard.index.bytes() + shard.ghost.bytes()) as u64;
    }
}
