//! Which records left the window recently: sixteen bits of each one's hash, and the time.
//!
//! A new record that is remembered here was wanted again soon after its eviction, and goes straight
//! into the main queue. Eight entries to a set, a set to each bucket of the index. A false
//! positive, about one in ten thousand, only puts a new record into the other queue.

use super::memory::allocated;

const ENTRIES: usize = 8;
/// A full table's worth of evictions is divided into this many ticks.
const TICKS: usize = 1024;

/// How many evictions a record is remembered for, relative to the records in the shard. Measured: a
/// shorter memory loses on loops, a longer one on flat distributions.
const LIFE: (usize, usize) = (6, 5);

/// The high half of an entry comes from the hash and is never zero; the low half is the tick.
#[derive(Default)]
pub(super) struct Ghost {
    sets: Vec<[u32; ENTRIES]>,
    evictions: u64,
}

impl Ghost {
    /// Bytes allocated.
    pub(super) fn bytes(&self) -> usize {
        Self::bytes_for(self.sets.capacity())
    }

    /// Bytes allocated for `sets` sets.
    pub(super) fn bytes_for(sets: usize) -> usize {
        if sets == 0 { 0 } else { allocated(sets * ENTRIES * size_of::<u32>()) }
    }

    /// Sets allocated.
    pub(super) fn sets(&self) -> usize {
        self.sets.len()
    }

    /// Grows to `sets` sets, a power of two or none. Entries are copied into each of the sets that
    /// their own set was split into.
    pub(super) fn grow(&mut self, sets: usize) {
        if sets <= self.sets.len() {
            return;
        }
        let (old, old_now, old_per_tick) = (self.sets.len(), self.now(), self.evictions_per_tick());
        self.sets.reserve_exact(sets - old);
        if old == 0 {
            self.sets.resize(sets, [0; ENTRIES]);
        }
        while self.sets.len() < sets {
            self.sets.extend_from_within(..old.min(sets - self.sets.len()));
        }
        let (now, per_tick) = (self.now(), self.evictions_per_tick());
        for entry in self.sets.iter_mut().flatten().filter(|entry| **entry != 0) {
            let age = old_now.wrapping_sub(*entry as u16);
            let age = (usize::from(age) * old_per_tick / per_tick) as u16;
            *entry = *entry & !0xffff | u32::from(now.wrapping_sub(age));
        }
    }

    /// Remembers a record that was evicted from the window.
    pub(super) fn remember(&mut self, hash: u64) {
        if self.sets.is_empty() {
            return;
        }
        self.evictions += 1;
        let now = self.now();
        let at = self.set_of(hash);
        let set = &mut self.sets[at];
        let age = |entry: u32| if entry == 0 { u16::MAX } else { now.wrapping_sub(entry as u16) };
        let same = set.iter().position(|entry| entry >> 16 == mark_of(hash));
        let oldest = || (0..ENTRIES).max_by_key(|&i| age(set[i])).unwrap_or(0);
        let place = same.unwrap_or_else(oldest);
        set[place] = mark_of(hash) << 16 | u32::from(now);
    }

    /// Whether a record is remembered; asking forgets it. `records` is the number in the shard.
    pub(super) fn recall(&mut self, hash: u64, records: usize) -> bool {
        if self.sets.is_empty() {
            return false;
        }
        let now = self.now();
        let life = records * LIFE.0 / LIFE.1 / self.evictions_per_tick();
        let at = self.set_of(hash);
        let Some(entry) = self.sets[at].iter_mut().find(|entry| **entry >> 16 == mark_of(hash))
        else {
            return false;
        };
        let age = now.wrapping_sub(std::mem::take(entry) as u16);
        usize::from(age) <= life
    }

    fn set_of(&self, hash: u64) -> usize {
        hash as usize & (self.sets.len() - 1)
    }

    fn now(&self) -> u16 {
        (self.evictions / self.evictions_per_tick() as u64) as u16
    }

    fn evictions_per_tick(&self) -> usize {
        (self.sets.len() * ENTRIES / TICKS).max(1)
    }
}

/// Bits of the hash that determine neither the set nor the index's tag nor the shard.
fn mark_of(hash: u64) -> u32 {
    ((hash >> 32) as u32 & 0xffff).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(n: u64) -> u64 {
        n.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[test]
    fn the_evicted_are_remembered_once_and_for_a_while() {
        let mut ghost = Ghost::default();
        ghost.remember(hash(1));
        assert!(!ghost.recall(hash(1), 100), "without memory it remembers nothing");
        ghost.grow(16);
        ghost.remember(hash(1));
        assert!(!ghost.recall(hash(2), 100));
        assert!(ghost.recall(hash(1), 100));
        assert!(!ghost.recall(hash(1), 100));
        ghost.remember(hash(1));
        (0..13).for_each(|n| ghost.remember(hash(2 + n)));
        assert!(!ghost.recall(hash(1), 10), "a memory lasts as long as the shard is large");
    }

    #[test]
    fn growth_forgets_nothing() {
        let mut ghost = Ghost::default();
        ghost.grow(64);
        (0..40).for_each(|n| ghost.remember(hash(n)));
        ghost.grow(1024);
        assert!((0..40).all(|n| ghost.recall(hash(n), 1000)));
    }
}
