//! Estimating how many records the writes to a tree *shadow*: those that layers below have under the same keys.
//!
//! Finding out takes a look-up for each key, which may read a page from disk. So after the first keys, only a sample is
//! looked up, and the rest is taken to shadow as many. Puts and deletions have samples of their own: where every put adds a
//! record, or every put replaces one, there is nothing to guess.

use crate::DatabaseStatistics;

/// So many keys are all looked up.
const FIRST_KEYS: u64 = 1024;

/// Of the keys after those, one of so many is looked up.
const SAMPLED_PART: u64 = 256;

/// The group that a key belongs to. What keys of one group shadow is alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    First,
    Puts,
    Deletions,
}

impl Group {
    /// The group of the key that is written after `before` others.
    pub(super) fn of(before: u64, is_put: bool) -> Self {
        match is_put {
            _ if before < FIRST_KEYS => Self::First,
            true => Self::Puts,
            false => Self::Deletions,
        }
    }
}

/// Whether the key that is written after `before` others is looked up.
pub(super) fn is_sampled(before: u64) -> bool {
    /// 2^64 divided by the golden ratio: its multiples are spread evenly, and follow no pattern that writes may have
    /// (Knuth, The Art of Computer Programming, 6.4).
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    before < FIRST_KEYS || before.wrapping_mul(GOLDEN) < u64::MAX / SAMPLED_PART
}

/// What the writes to a tree shadow, as far as keys have been looked up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shadows {
    first: Sample,
    puts: Sample,
    deletions: Sample,
}

/// Keys of which some were looked up.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    keys: u64,
    looked_up: u64,
    found: DatabaseStatistics,
}

impl Shadows {
    fn sample(&mut self, group: Group) -> &mut Sample {
        match group {
            Group::First => &mut self.first,
            Group::Puts => &mut self.puts,
            Group::Deletions => &mut self.deletions,
        }
    }

    /// Counts a key.
    pub(super) fn count(&mut self, group: Group) {
        self.sample(group).keys += 1;
    }

    /// Notes what was found under a key that was counted.
    pub(super) fn found(&mut self, group: Group, found: Option<DatabaseStatistics>) {
        let sample = self.sample(group);
        sample.looked_up += 1;
        sample.found.add(found.unwrap_or_default());
    }

    /// What all writes shadow.
    pub(super) fn total(&self) -> DatabaseStatistics {
        let mut total = self.first.estimate();
        total.add(self.puts.estimate());
        total.add(self.deletions.estimate());
        total
    }

    /// Whether not all keys were looked up.
    pub(super) fn is_estimate(&self) -> bool {
        [self.first, self.puts, self.deletions].iter().any(|sample| sample.looked_up < sample.keys)
    }

    /// Adds what other writes to the tree shadow.
    pub(super) fn add(&mut self, other: &Self) {
        self.first.add(&other.first);
        self.puts.add(&other.puts);
        self.deletions.add(&other.deletions);
    }
}

impl Sample {
    fn add(&mut self, other: &Self) {
        self.keys += other.keys;
        self.looked_up += other.looked_up;
        self.found.add(other.found);
    }

    /// What all its keys shadow, if they are like those that were looked up.
    fn estimate(&self) -> DatabaseStatistics {
        let scaled = |found: u64| {
            let all = u128::from(found) * u128::from(self.keys) / u128::from(self.looked_up.max(1));
            all as u64
        };
        DatabaseStatistics {
            records: scaled(self.found.records),
            key_bytes: scaled(self.found.key_bytes),
            value_bytes: scaled(self.found.value_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What puts of these keys shadow if those for which `exists` is true were there.
    fn shadowed(keys: u64, exists: fn(u64) -> bool) -> Shadows {
        let mut shadows = Shadows::default();
        for number in 0..keys {
            let group = Group::of(number, true);
            shadows.count(group);
            if is_sampled(number) {
                let found = exists(number).then(|| DatabaseStatistics::of_record(8, 100));
                shadows.found(group, found);
            }
        }
        shadows
    }

    #[test]
    fn few_keys_are_all_looked_up() {
        let few = shadowed(FIRST_KEYS, |number| number % 3 == 0);
        assert!(!few.is_estimate());
        assert_eq!(few.total().records, FIRST_KEYS.div_ceil(3));
    }

    #[test]
    fn an_estimate_is_exact_where_all_keys_are_alike() {
        let all = shadowed(100_000, |_| true);
        assert!(all.is_estimate());
        let expected =
            DatabaseStatistics { records: 100_000, key_bytes: 800_000, value_bytes: 10_000_000 };
        assert_eq!(all.total(), expected);
        assert_eq!(shadowed(100_000, |_| false).total().records, 0);
    }

    #[test]
    fn an_estimate_is_close_whatever_pattern_keys_have() {
        for every in [2, 3, 64, 100, 256, 1000] {
            let mut shadows = Shadows::default();
            for number in 0..1_000_000 {
                let group = Group::of(number, true);
                shadows.count(group);
                if is_sampled(number) {
                    let found = number.is_multiple_of(every);
                    shadows.found(group, found.then(|| DatabaseStatistics::of_record(8, 100)));
                }
            }
            let (records, exact) = (shadows.total().records, 1_000_000 / every);
            assert!(records.abs_diff(exact) < 5_000 + exact / 20, "{records} of every {every}th");
        }
        let mut some = shadowed(200_000, |number| number % 4 == 0);
        some.add(&shadowed(200_000, |_| true));
        assert!((237_500..262_500).contains(&some.total().records), "{some:?}");
    }
}
