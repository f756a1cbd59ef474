//! The layout of a run's file, and what the base records about it. docs/file-format.md has it in full.
//!
//! ```text
//! run    = block*, index, zeros, filter, footer
//! block  = CRC32C of the rest u32, tree u32, number of entries u32, where each entry begins u32 each, entry*
//! entry  = length of the key u16, length of the record u32 or DELETED, key, record
//! index  = { offset of the block u64, its length u32, its tree u32, length of its first key u16, that key }*,
//!          where each of these begins u32 each
//! ```
//! Numbers are little-endian.

use crate::ReadError;

/// In place of a record's length: the key was deleted.
pub(super) const DELETED: u32 = u32::MAX;

/// Bytes of a block before the offsets of its entries.
pub(super) const BLOCK_HEAD_LEN: usize = 12;

/// Bytes of an entry before its key.
pub(super) const ENTRY_HEAD_LEN: usize = 6;

/// Bytes of an entry of the index before its key.
pub(super) const INDEX_HEAD_LEN: usize = 18;

/// A block is finished once it has this many bytes. One with a longer record is as long as that.
pub(super) const BLOCK_BYTES: usize = 4096;

const MAGIC: &[u8; 8] = b"TOKAIDOR";

/// The version of the file of a run.
const VERSION: u32 = 1;

/// Bytes of a footer.
pub(super) const FOOTER_LEN: usize = 104;

/// What the base records about a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tree) struct RunEntry {
    /// Its number, which the store has given to no other run.
    pub(in crate::tree) number: u64,
    /// Bytes of its file.
    pub(in crate::tree) bytes: u64,
    /// The number of keys for which it has a record or a tombstone.
    pub(in crate::tree) entries: u64,
    /// The checksum in its footer.
    pub(in crate::tree) sum: u32,
}

impl RunEntry {
    pub(in crate::tree) const LEN: usize = 28;

    pub(in crate::tree) fn encode(&self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        out[..8].copy_from_slice(&self.number.to_le_bytes());
        out[8..16].copy_from_slice(&self.bytes.to_le_bytes());
        out[16..24].copy_from_slice(&self.entries.to_le_bytes());
        out[24..].copy_from_slice(&self.sum.to_le_bytes());
        out
    }

    pub(in crate::tree) fn decode(bytes: &[u8; Self::LEN]) -> Self {
        Self {
            number: u64_at(bytes, 0),
            bytes: u64_at(bytes, 8),
            entries: u64_at(bytes, 16),
            sum: u32_at(bytes, 24),
        }
    }
}

/// The list of runs, as stored in the base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tree) struct RunList {
    /// The number of the next run.
    pub(in crate::tree) next: u64,
    /// The newest first.
    pub(in crate::tree) entries: Vec<RunEntry>,
}

impl Default for RunList {
    fn default() -> Self {
        Self { next: 1, entries: Vec::new() }
    }
}

impl RunList {
    pub(in crate::tree) fn encode(&self) -> Vec<u8> {
        let mut out = self.next.to_le_bytes().to_vec();
        for entry in &self.entries {
            out.extend_from_slice(&entry.encode());
        }
        out
    }

    pub(in crate::tree) fn decode(bytes: &[u8]) -> Option<Self> {
        let (next, rest) = bytes.split_first_chunk::<8>()?;
        let (entries, rest) = rest.as_chunks();
        let entries = entries.iter().map(RunEntry::decode).collect();
        rest.is_empty().then_some(Self { next: u64::from_le_bytes(*next), entries })
    }
}

/// Where the parts of a run are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Footer {
    /// The number of the store, which is in all its files.
    pub(super) store: u64,
    pub(super) number: u64,
    pub(super) entries: u64,
    pub(super) blocks: u64,
    pub(super) index_at: u64,
    /// Where the offsets of the index's entries are.
    pub(super) places_at: u64,
    pub(super) filter_at: u64,
    pub(super) filter_len: u64,
    pub(super) index_sum: u32,
    pub(super) filter_sum: u32,
}

impl Footer {
    pub(super) fn encode(&self) -> [u8; FOOTER_LEN] {
        let mut out = [0; FOOTER_LEN];
        out[..8].copy_from_slice(MAGIC);
        out[8..12].copy_from_slice(&VERSION.to_le_bytes());
        let numbers = [
            self.store,
            self.number,
            self.entries,
            self.blocks,
            self.index_at,
            self.places_at,
            self.filter_at,
            self.filter_len,
        ];
        for (i, number) in numbers.into_iter().enumerate() {
            out[16 + 8 * i..24 + 8 * i].copy_from_slice(&number.to_le_bytes());
        }
        out[80..84].copy_from_slice(&self.index_sum.to_le_bytes());
        out[84..88].copy_from_slice(&self.filter_sum.to_le_bytes());
        let sum = crc32c::crc32c(&out[..FOOTER_LEN - 4]);
        out[FOOTER_LEN - 4..].copy_from_slice(&sum.to_le_bytes());
        out
    }

    /// Decodes a footer, and returns it with its checksum.
    pub(super) fn decode(bytes: &[u8; FOOTER_LEN]) -> Option<(Self, u32)> {
        let sum = u32_at(bytes, FOOTER_LEN - 4);
        let is_whole = bytes.starts_with(MAGIC)
            && u32_at(bytes, 8) == VERSION
            && crc32c::crc32c(&bytes[..FOOTER_LEN - 4]) == sum;
        let footer = Self {
            store: u64_at(bytes, 16),
            number: u64_at(bytes, 24),
            entries: u64_at(bytes, 32),
            blocks: u64_at(bytes, 40),
            index_at: u64_at(bytes, 48),
            places_at: u64_at(bytes, 56),
            filter_at: u64_at(bytes, 64),
            filter_len: u64_at(bytes, 72),
            index_sum: u32_at(bytes, 80),
            filter_sum: u32_at(bytes, 84),
        };
        is_whole.then_some((footer, sum))
    }
}

/// The number at `at`.
///
/// # Panics
/// If the bytes end before the number does.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// As [`u64_at`].
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// As [`u64_at`].
pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

/// The error for a damaged part of a run.
pub(super) fn damaged(number: u64, what: &str) -> ReadError {
    ReadError::Damaged { what: format!("{what} of run {number}") }
}

/// The hash of a key for filters: its words, multiplied into one another. It is in files, so it must not change.
#[inline]
pub(in crate::tree) fn key_hash(tree: u32, key: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| {
        let product = u128::from(hash ^ word) * u128::from(FACTOR);
        (product as u64) ^ ((product >> 64) as u64)
    };
    let (words, rest) = key.as_chunks::<8>();
    let mut hash = mix(u64::from(tree) + 1, key.len() as u64 ^ FACTOR.rotate_left(32));
    for word in words {
        hash = mix(hash, u64::from_le_bytes(*word)).wrapping_add(FACTOR);
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    hash = mix(hash, u64::from_le_bytes(last)).wrapping_add(FACTOR);
    mix(hash, hash >> 32)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let entry = RunEntry { number: 1, bytes: 2, entries: 3, sum: 4 };
        assert_eq!(RunEntry::decode(&entry.encode()), entry);
        let list = RunList { next: 7, entries: vec![entry, RunEntry { number: 5, ..entry }] };
        assert_eq!(RunList::decode(&list.encode()), Some(list.clone()));
        assert_eq!(RunList::decode(&list.encode()[1..]), None);
        let footer = Footer {
            store: 1,
            number: 2,
            entries: 3,
            blocks: 4,
            index_at: 5,
            places_at: 6,
            filter_at: 7,
            filter_len: 8,
            index_sum: 9,
            filter_sum: 10,
        };
        let mut bytes = footer.encode();
        assert_eq!(Footer::decode(&bytes).map(|(footer, _)| footer), Some(footer));
        for at in 0..FOOTER_LEN {
            bytes[at] ^= 1;
            assert_eq!(Footer::decode(&bytes), None, "byte {at}");
            bytes[at] ^= 1;
        }
    }

    #[test]
    fn hashes_differ_in_all_their_bits_and_stay_as_they_are() {
        let keys = (0..100_000_u32).map(|n| format!("key:{n}"));
        let hashes: Vec<u64> = keys.map(|key| key_hash(2, key.as_bytes())).collect();
        for shift in [0, 16, 32, 48] {
            let part: HashSet<u16> = hashes.iter().map(|hash| (hash >> shift) as u16).collect();
            // Out of 65,536 values, 100,000 draws miss one in 4.6.
            assert!((48_000..53_500).contains(&part.len()), "{shift}: {}", part.len());
        }
        assert_ne!(key_hash(2, b"a"), key_hash(3, b"a"));
        assert_ne!(key_hash(2, b"a"), key_hash(2, b"a\0"));
        assert_eq!(key_hash(2, b"tokaido"), KNOWN);
    }

    const KNOWN: u64 = 2_115_555_184_590_524_305;
}
