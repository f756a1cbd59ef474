//! The index from keys to records: a hash table of locations, a cache line to a bucket.
//!
//! A bucket has twelve places. For each it keeps eight bits of the hash, so that a look-up reads
//! one line here and then, almost always, only the record it wants. A record whose bucket is full
//! goes to the next one. Every bucket that it passed counts it in `overflow`, which tells a look-up
//! when to stop, so deletions need no tombstones.
//!
//! When the table doubles, each insertion moves a few buckets, so that none pays for all of them.

use super::segment::Location;

const PLACES: usize = 12;
/// The number of places filled before the table doubles: 7/8 of all.
const fn capacity(buckets: usize) -> usize {
    buckets * PLACES * 7 / 8
}

/// Buckets of the smallest table.
const BUCKETS_MIN: usize = 16;
/// Buckets moved with each insertion. One would be enough, since a doubled table has room for ten
/// more records per bucket moved.
const MOVED_PER_INSERTION: usize = 2;

#[repr(C, align(64))]
#[derive(Clone)]
struct Bucket {
    /// Zero where the place is free.
    tags: [u8; PLACES],
    /// How many records that belong to this bucket or an earlier one lie in later ones.
    overflow: u32,
    locations: [Location; PLACES],
}

const EMPTY: Bucket =
    Bucket { tags: [0; PLACES], overflow: 0, locations: [Location::NONE; PLACES] };

impl Bucket {
    /// The places with that tag.
    #[inline]
    fn matches(&self, tag: u8) -> Matches {
        let [t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11] = self.tags;
        let low = u64::from_le_bytes([t0, t1, t2, t3, t4, t5, t6, t7]);
        let high = u64::from_le_bytes([t8, t9, t10, t11, 0, 0, 0, 0]);
        Matches((same_bytes(low, tag) | same_bytes(high, tag) << 1) & Matches::ALL.0)
    }

    /// The occupied places.
    fn taken(&self) -> Matches {
        Matches(!self.matches(0).0 & Matches::ALL.0)
    }
}

/// A one in the lowest bit of each byte of the word that equals `byte`.
#[inline]
fn same_bytes(word: u64, byte: u8) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const LOW_BITS: u64 = ONES * 0x7f;
    let difference = word ^ (ONES * u64::from(byte));
    // The highest bit of each byte becomes one if any bit of it is: carries stay within a byte.
    let differs = ((difference & LOW_BITS) + LOW_BITS) | difference;
    !differs >> 7 & ONES
}

/// Some places of a bucket, all compared at once. Byte `i` of the word has place `i` in bit 0 and
/// place `i + 8` in bit 1.
#[derive(Clone, Copy)]
struct Matches(u64);

impl Matches {
    const ALL: Self = Self(0x0101_0101_0303_0303);
}

impl Iterator for Matches {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(bit / 8 + bit % 8 * 8)
    }
}

/// The bits of a hash that a bucket stores: not those that select the bucket (the lowest) or the
/// shard (the highest).
#[inline]
fn tag_of(hash: u64) -> u8 {
    ((hash >> 48) as u8).max(1)
}

/// A table of a fixed size.
#[derive(Default)]
struct Table {
    /// Their number is a power of two, or zero.
    buckets: Vec<Bucket>,
}

impl Table {
    fn with_buckets(buckets: usize) -> Self {
        Self { buckets: vec![EMPTY; buckets] }
    }

    #[inline]
    fn home(&self, hash: u64) -> usize {
        hash as usize & (self.buckets.len() - 1)
    }

    #[inline]
    fn after(&self, bucket: usize) -> usize {
        (bucket + 1) & (self.buckets.len() - 1)
    }

    /// The bucket and the place of the record that `is_it` picks among those with this hash.
    #[inline]
    fn position(
        &self,
        hash: u64,
        mut is_it: impl FnMut(Location) -> bool,
    ) -> Option<(usize, usize)> {
        if self.buckets.is_empty() {
            return None;
        }
        let mut at = self.home(hash);
        for _ in 0..self.buckets.len() {
            let bucket = &self.buckets[at];
            for place in bucket.matches(tag_of(hash)) {
                if is_it(bucket.locations[place]) {
                    return Some((at, place));
                }
            }
            if bucket.overflow == 0 {
                return None;
            }
            at = self.after(at);
        }
        None
    }

    fn insert(&mut self, hash: u64, location: Location) {
        let mut at = self.home(hash);
        loop {
            let next = self.after(at);
            let bucket = &mut self.buckets[at];
            if let Some(place) = bucket.matches(0).next() {
                bucket.tags[place] = tag_of(hash);
                bucket.locations[place] = location;
                return;
            }
            bucket.overflow += 1;
            at = next;
        }
    }

    fn remove(&mut self, hash: u64, location: Location) -> bool {
        let Some((found, place)) = self.position(hash, |other| other == location) else {
            return false;
        };
        self.buckets[found].tags[place] = 0;
        let mut at = self.home(hash);
        while at != found {
            self.buckets[at].overflow -= 1;
            at = self.after(at);
        }
        true
    }

    fn in_bucket(&self, at: usize) -> impl Iterator<Item = Location> {
        let bucket = &self.buckets[at];
        bucket.taken().map(|place| bucket.locations[place])
    }

    /// Calls `visit` for all that belongs to the bucket `home`, wherever it lies.
    fn belonging(&self, home: usize, mut visit: impl FnMut(Location)) {
        let mut at = home;
        for _ in 0..self.buckets.len() {
            self.in_bucket(at).for_each(&mut visit);
            if self.buckets[at].overflow == 0 {
                return;
            }
            at = self.after(at);
        }
    }

    fn bytes(&self) -> usize {
        table_bytes(self.buckets.len())
    }
}

const fn table_bytes(buckets: usize) -> usize {
    if buckets == 0 { 0 } else { super::memory::allocated(buckets * size_of::<Bucket>()) }
}

/// A table that was too small, being moved into the new one.
struct Old {
    table: Table,
    /// The first bucket that may still hold records.
    next: usize,
}

/// The index of a shard.
#[derive(Default)]
pub(super) struct Index {
    table: Table,
    old: Option<Old>,
    len: usize,
}

impl Index {
    /// Records in the index.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Buckets of the table that new records go to.
    pub(super) fn buckets(&self) -> usize {
        self.table.buckets.len()
    }

    /// Bytes allocated.
    pub(super) fn bytes(&self) -> usize {
        self.table.bytes() + self.old.as_ref().map_or(0, |old| old.table.bytes())
    }

    /// Whether [`grow`](Self::grow) must come before the next insertion.
    pub(super) fn is_full(&self) -> bool {
        self.len >= capacity(self.buckets())
    }

    /// Buckets of the table that `grow` makes, and the bytes it allocates.
    pub(super) fn growth(&self) -> (usize, usize) {
        let buckets = (self.buckets() * 2).max(BUCKETS_MIN);
        (buckets, table_bytes(buckets))
    }

    /// Makes room for more records; `hash_of` returns the hash of an existing one.
    pub(super) fn grow(&mut self, hash_of: impl Fn(Location) -> u64) {
        self.advance(usize::MAX, &hash_of);
        let (buckets, _) = self.growth();
        let table = std::mem::replace(&mut self.table, Table::with_buckets(buckets));
        if self.len > 0 {
            self.old = Some(Old { table, next: 0 });
        }
    }

    /// Moves the records of up to `buckets` buckets from the old table to the new one.
    fn advance(&mut self, buckets: usize, hash_of: impl Fn(Location) -> u64) {
        let Some(old) = &mut self.old else { return };
        let end = old.next.saturating_add(buckets).min(old.table.buckets.len());
        for at in old.next..end {
            for location in old.table.in_bucket(at).collect::<Places>() {
                let hash = hash_of(location);
                assert!(old.table.remove(hash, location), "a record is found by its hash");
                self.table.insert(hash, location);
            }
        }
        old.next = end;
        if end == old.table.buckets.len() {
            self.old = None;
        }
    }

    /// The record that `is_it` picks among those with this hash.
    #[inline]
    pub(super) fn find(
        &self,
        hash: u64,
        mut is_it: impl FnMut(Location) -> bool,
    ) -> Option<Location> {
        let table = &self.table;
        if let Some((at, place)) = table.position(hash, &mut is_it) {
            return Some(table.buckets[at].locations[place]);
        }
        let old = &self.old.as_ref()?.table;
        old.position(hash, is_it).map(|(at, place)| old.buckets[at].locations[place])
    }

    /// Adds a record. There must be room for it.
    pub(super) fn insert(
        &mut self,
        hash: u64,
        location: Location,
        hash_of: impl Fn(Location) -> u64,
    ) {
        assert!(!self.is_full(), "the index grows before it is full");
        if self.old.is_some() {
            self.advance(MOVED_PER_INSERTION, hash_of);
        }
        self.table.insert(hash, location);
        self.len += 1;
    }

    /// Removes a record, which must be there.
    pub(super) fn remove(&mut self, hash: u64, location: Location) {
        let is_removed = self.table.remove(hash, location)
            || self.old.as_mut().is_some_and(|old| old.table.remove(hash, location));
        assert!(is_removed, "a record of the shard is in its index");
        self.len -= 1;
    }

    /// Updates the location of a record that has moved.
    pub(super) fn relocate(&mut self, hash: u64, from: Location, to: Location) {
        let table = match self.table.position(hash, |other| other == from) {
            Some(position) => Some((&mut self.table, position)),
            None => self.old.as_mut().and_then(|old| {
                let position = old.table.position(hash, |other| other == from)?;
                Some((&mut old.table, position))
            }),
        };
        let (table, (at, place)) = table.expect("a record of the shard is in its index");
        table.buckets[at].locations[place] = to;
    }

    /// The records in one bucket of the new table, wherever they belong.
    pub(super) fn in_bucket(&self, at: usize) -> Places {
        self.table.in_bucket(at).collect()
    }

    /// One step of a scan that meets every record which stays in the index throughout. Calls
    /// `visit` with the step's mask for a superset of the records of the step, and returns the next
    /// step, 0 at the end. A record belongs to the step if its hash has the bits of `step` under
    /// the mask.
    ///
    /// Steps count from the highest bit of the mask down, as Redis's SCAN does: when the table
    /// doubles, the steps already made cover both halves of the buckets they visited.
    pub(super) fn scan(&self, step: usize, mut visit: impl FnMut(usize, Location)) -> usize {
        let Some(mask) = self.scan_mask() else { return 0 };
        let home = step & mask;
        for table in
            [Some(&self.table), self.old.as_ref().map(|old| &old.table)].into_iter().flatten()
        {
            for at in (home..table.buckets.len()).step_by(mask + 1) {
                table.belonging(at, |location| visit(mask, location));
            }
        }
        let reversed = (step | !mask).reverse_bits().wrapping_add(1);
        reversed.reverse_bits()
    }

    /// The mask that selects buckets of the smaller table in use.
    fn scan_mask(&self) -> Option<usize> {
        let old = self.old.as_ref().map_or(usize::MAX, |old| old.table.buckets.len());
        self.buckets().min(old).checked_sub(1)
    }
}

/// The locations of a bucket, copied out so that the table may change meanwhile.
pub(super) struct Places {
    locations: [Location; PLACES],
    len: usize,
    next: usize,
}

impl FromIterator<Location> for Places {
    fn from_iter<I: IntoIterator<Item = Location>>(from: I) -> Self {
        let mut places = Self { locations: [Location::NONE; PLACES], len: 0, next: 0 };
        for (place, location) in places.locations.iter_mut().zip(from) {
            *place = location;
            places.len += 1;
        }
        places
    }
}

impl Iterator for Places {
    type Item = Location;

    fn next(&mut self) -> Option<Location> {
        let location = self.locations[..self.len].get(self.next).copied();
        self.next += 1;
        location
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Hashes that crowd into a few buckets, so that records overflow.
    fn crowded(n: u32) -> u64 {
        u64::from(n / 50) | u64::from(n % 5) << 48 | u64::from(n) << 20
    }

    fn location(n: u32) -> Location {
        Location::new(n, 0)
    }

    fn hash_of(location: Location) -> u64 {
        crowded(location.segment())
    }

    fn contains(index: &Index, n: u32) -> bool {
        index.find(crowded(n), |found| found == location(n)).is_some()
    }

    fn insert(index: &mut Index, n: u32) {
        if index.is_full() {
            index.grow(hash_of);
        }
        index.insert(crowded(n), location(n), hash_of);
    }

    #[test]
    fn places_are_matched_one_for_one() {
        let mut bucket = EMPTY;
        bucket.tags = [1, 0, 0x80, 255, 1, 2, 129, 1, 0, 1, 255, 1];
        bucket.overflow = u32::MAX;
        for tag in 0..=255 {
            let expected = (0..PLACES).filter(|&place| bucket.tags[place] == tag);
            let mut found: Vec<_> = bucket.matches(tag).collect();
            found.sort_unstable();
            assert_eq!(found, expected.collect::<Vec<_>>(), "{tag}");
        }
        assert_eq!(bucket.taken().count(), PLACES - 2);
    }

    #[test]
    fn records_are_found_through_crowding_growth_and_deletion() {
        let mut index = Index::default();
        for n in 0..5000 {
            insert(&mut index, n);
            assert!(contains(&index, n) && contains(&index, n / 2 / 3 * 3));
            if n % 3 == 2 {
                index.remove(crowded(n - 1), location(n - 1));
            }
        }
        assert_eq!(index.len(), 5000 - 5000 / 3);
        for n in 0..5001 {
            assert_eq!(contains(&index, n), n % 3 != 1 && n != 5000 || n == 4999, "{n}");
        }
        for n in (0..5000).filter(|n| n % 3 != 1 || *n == 4999) {
            index.remove(crowded(n), location(n));
        }
        assert_eq!(index.len(), 0);
        let all = [&index.table].into_iter().chain(index.old.as_ref().map(|old| &old.table));
        for bucket in all.flat_map(|table| &table.buckets) {
            assert_eq!((bucket.tags, bucket.overflow), ([0; PLACES], 0), "nothing stays behind");
        }
    }

    #[test]
    fn a_scan_meets_what_stays_while_the_table_grows() {
        let mut index = Index::default();
        (0..300).for_each(|n| insert(&mut index, n));
        let (mut seen, mut step, mut added) = (BTreeSet::new(), 0, 300);
        loop {
            step = index.scan(step, |_, found| {
                seen.insert(found.segment());
            });
            if step == 0 {
                break;
            }
            for _ in 0..if added < 3000 { 300 } else { 0 } {
                insert(&mut index, added);
                added += 1;
            }
        }
        assert!(added >= 3000, "it has grown meanwhile");
        assert!((0..300).all(|n| seen.contains(&n)));
    }
}
