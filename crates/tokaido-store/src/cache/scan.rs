//! Scanning all records, in no order, a page at a time.

use crate::Entry;

use super::{Cache, Metadata, shard::hash_of};

/// A page ends after this many bytes, if not before, but never within a bucket.
const PAGE_BYTES_MAX: usize = 1 << 20;

/// Records copied out of the cache by [`Cache::scan`]. To be reused for the next page.
#[derive(Debug, Default)]
pub struct ScanPage {
    /// Keys and values, back to back.
    bytes: Vec<u8>,
    entries: Vec<(usize, Metadata)>,
}

impl ScanPage {
    /// The records on the page.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let mut rest = &self.bytes[..];
        self.entries.iter().map(move |(key_len, metadata)| {
            let (key, tail) = rest.split_at(*key_len);
            let (value, tail) = tail.split_at(metadata.value_len);
            rest = tail;
            Entry { key, record: metadata.with(value) }
        })
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    fn is_full(&self, records_max: usize) -> bool {
        self.entries.len() >= records_max || self.bytes.len() >= PAGE_BYTES_MAX
    }
}

/// Where a scan continues. Valid for as long as the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor(u64);

impl Cursor {
    /// With the 8 bits of the shard, below 2^52: a number that every client can represent exactly.
    const STEP_BITS: u32 = 44;

    fn new(shard: usize, step: usize) -> Self {
        Self((shard as u64) << Self::STEP_BITS | step as u64)
    }

    fn shard(self) -> usize {
        (self.0 >> Self::STEP_BITS) as usize
    }

    fn step(self) -> usize {
        (self.0 & ((1 << Self::STEP_BITS) - 1)) as usize
    }

    /// The cursor as a number, for a client to send back.
    #[must_use]
    pub fn to_number(self) -> u64 {
        self.0
    }

    /// The cursor with this number. Any other number is a valid place too, though not a useful one.
    #[must_use]
    pub fn from_number(number: u64) -> Self {
        Self(number)
    }
}

impl Cache {
    /// Copies about `records_max` records into `page`, replacing its contents; returns the cursor
    /// of the next page, `None` at the end. Begin with `Cursor::default()`.
    ///
    /// A record that is there from the first page to the last is returned at least once; one that
    /// comes, goes or changes meanwhile may or may not be returned. A page may be empty before the
    /// end. A scan does not count as a use of the records. It locks one shard at a time, only for
    /// as long as it takes to copy a bucket's records.
    pub fn scan(&self, cursor: Cursor, records_max: usize, page: &mut ScanPage) -> Option<Cursor> {
        page.clear();
        let (mut shard, mut step) = (cursor.shard(), cursor.step());
        let mut steps = records_max.max(1);
        while shard < self.shard_count() {
            step = self.scan_step(shard, step, page);
            if step == 0 {
                shard += 1;
            }
            steps -= 1;
            if steps == 0 || page.is_full(records_max) {
                break;
            }
        }
        (shard < self.shard_count()).then(|| Cursor::new(shard, step))
    }

    fn scan_step(&self, number: usize, step: usize, page: &mut ScanPage) -> usize {
        self.in_shard(number, |shard, now| {
            shard.index.scan(step, |mask, location| {
                let view = shard.segments.view(location);
                let belongs = hash_of(&shard.hasher, view.key()) as usize & mask == step & mask;
                if belongs && !now.has_passed(view.expires_at_ms()) {
                    let record = view.record();
                    page.bytes.extend_from_slice(view.key());
                    page.bytes.extend_from_slice(record.value);
                    page.entries.push((view.key().len(), record.into()));
                }
            })
        })
    }
}
