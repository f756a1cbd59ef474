//! A filter that rules out most keys that a run does not have.
//!
//! It is a blocked Bloom filter (Putze, Sanders, Singler, "Cache-, Hash- and Space-Efficient Bloom Filters", 2007): all
//! bits of a key are in one cache line of the processor, which is all that a lookup needs.

use crate::tree::prefetch::{LINE_LEN, prefetch};

/// Bits of a filter per key. With this many, it is wrong about one key in a hundred.
const BITS_PER_KEY: usize = 10;

/// Bits that are set for each key.
const PROBES: u32 = 6;

/// Bits of a line, and how many bits of a hash select one of them.
const LINE_BITS: usize = LINE_LEN * 8;
const PLACE_BITS: u32 = LINE_BITS.trailing_zeros();

/// Length of the filter for this many keys, in bytes.
fn len_for(keys: usize) -> usize {
    (keys * BITS_PER_KEY).div_ceil(LINE_BITS).max(1) * LINE_LEN
}

/// Where the line of a hash begins in a filter of `len` bytes, which is one or more whole lines.
#[inline]
fn line_at(len: usize, hash: u64) -> usize {
    let lines = (len / LINE_LEN) as u64;
    ((u128::from(hash) * u128::from(lines)) >> 64) as usize * LINE_LEN
}

/// The bits of a hash in its line. The upper bits of the hash select the line.
#[inline]
fn places(hash: u64) -> impl Iterator<Item = (usize, u8)> {
    let bits = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
    (0..PROBES).map(move |probe| {
        let place = (bits >> (64 - PLACE_BITS * (probe + 1))) as usize % LINE_BITS;
        (place / 8, 1 << (place % 8))
    })
}

/// Whether keys with this hash may be there. If the filter is damaged, this is always true.
#[inline]
pub(super) fn may_have(filter: &[u8], hash: u64) -> bool {
    let at = line_at(filter.len(), hash);
    let Some(line) = filter.get(at..at + LINE_LEN) else { return true };
    places(hash).all(|(byte, bit)| line[byte] & bit != 0)
}

/// Begins to load what [`may_have`] needs.
#[inline]
pub(super) fn prefetch_for(filter: &[u8], hash: u64) {
    prefetch(filter.as_ptr().wrapping_add(line_at(filter.len(), hash)));
}

/// A filter that is being built.
pub(super) struct FilterBuilder {
    bytes: Vec<u8>,
}

impl FilterBuilder {
    /// For at most this many keys.
    pub(super) fn new(keys: usize) -> Self {
        Self { bytes: vec![0; len_for(keys)] }
    }

    pub(super) fn add(&mut self, hash: u64) {
        let at = line_at(self.bytes.len(), hash);
        for (byte, bit) in places(hash) {
            self.bytes[at + byte] |= bit;
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::key_hash;
    use super::*;

    #[test]
    fn it_is_never_wrong_about_what_is_there_and_seldom_about_what_is_not() {
        const KEYS: u32 = 50_000;
        let hash = |n: u32| key_hash(2, format!("key:{n:010}").as_bytes());
        let mut builder = FilterBuilder::new(KEYS as usize);
        (0..KEYS).for_each(|n| builder.add(hash(n)));
        let filter = builder.bytes();
        assert!((0..KEYS).all(|n| may_have(filter, hash(n))));
        let wrong = (KEYS..3 * KEYS).filter(|n| may_have(filter, hash(*n))).count();
        assert!(wrong < 2 * KEYS as usize / 50, "{wrong} of {}", 2 * KEYS);
    }

    #[test]
    fn of_what_is_no_filter_all_keys_may_be_there() {
        assert!(may_have(&[], 7));
        assert!(may_have(&[0; LINE_LEN - 1], u64::MAX));
    }
}
