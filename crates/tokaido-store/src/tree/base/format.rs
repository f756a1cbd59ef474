//! What stands where in the base. docs/file-format.md has the whole.
//!
//! | LMDB database | key | value |
//! |---|---|---|
//! | `base` | `format` | [`FORMAT_VERSION`], u32 |
//! | | `store` | a random number, the same in all files of a store, u64 |
//! | | `sequence` | the last transaction that the base holds, u64 |
//! | | `log` | the first segment of the log that may hold later transactions, u64 |
//! | | `tree` + number, u32 big-endian | slot u32, records, key bytes, value bytes, u64 each |
//! | `s0`, `s1`, … | a key, or the head of long keys | a record, or a bucket of them (`long_key`) |
//!
//! A *slot* `sN` holds the tree whose entry names it, or nothing. Numbers are little-endian, except
//! where they are part of a key and must sort.

use crate::DatabaseStatistics;

/// The version of all files of a store. One with another version is not opened.
pub(crate) const FORMAT_VERSION: u32 = 1;

/// The number that no tree has, since it would leave none for the next.
pub(in crate::tree) const NO_TREE: u32 = u32::MAX;

pub(in crate::tree) const BASE: &str = "base";
pub(in crate::tree) const FORMAT_KEY: &[u8] = b"format";
pub(in crate::tree) const STORE_KEY: &[u8] = b"store";
pub(in crate::tree) const SEQUENCE_KEY: &[u8] = b"sequence";
pub(in crate::tree) const LOG_KEY: &[u8] = b"log";
pub(in crate::tree) const TREE_PREFIX: &[u8] = b"tree";

pub(in crate::tree) fn slot_name(number: usize) -> String {
    format!("s{number}")
}

/// Where a tree is, and what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tree) struct TreeEntry {
    pub(in crate::tree) slot: u32,
    pub(in crate::tree) statistics: DatabaseStatistics,
}

const ENTRY_LEN: usize = 4 + 3 * 8;

impl TreeEntry {
    pub(in crate::tree) fn encode(&self) -> [u8; ENTRY_LEN] {
        let s = &self.statistics;
        let mut out = [0; ENTRY_LEN];
        out[..4].copy_from_slice(&self.slot.to_le_bytes());
        for (i, number) in [s.records, s.key_bytes, s.value_bytes].into_iter().enumerate() {
            out[4 + 8 * i..12 + 8 * i].copy_from_slice(&number.to_le_bytes());
        }
        out
    }

    pub(in crate::tree) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; ENTRY_LEN] = bytes.try_into().ok()?;
        let (slot, numbers) = bytes.split_first_chunk::<4>()?;
        let mut numbers = numbers.as_chunks::<8>().0.iter().map(|n| u64::from_le_bytes(*n));
        let statistics = DatabaseStatistics {
            records: numbers.next()?,
            key_bytes: numbers.next()?,
            value_bytes: numbers.next()?,
        };
        Some(Self { slot: u32::from_le_bytes(*slot), statistics })
    }
}

pub(in crate::tree) fn tree_key(tree: u32) -> [u8; TREE_PREFIX.len() + 4] {
    let mut key = [0; TREE_PREFIX.len() + 4];
    key[..TREE_PREFIX.len()].copy_from_slice(TREE_PREFIX);
    key[TREE_PREFIX.len()..].copy_from_slice(&tree.to_be_bytes());
    key
}

pub(in crate::tree) fn parse_tree_key(key: &[u8]) -> Option<u32> {
    let number = key.strip_prefix(TREE_PREFIX)?;
    Some(u32::from_be_bytes(number.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_read_back() {
        let statistics = DatabaseStatistics { records: 1, key_bytes: 2, value_bytes: 3 };
        let entry = TreeEntry { slot: 7, statistics };
        assert_eq!(TreeEntry::decode(&entry.encode()), Some(entry));
        assert_eq!(TreeEntry::decode(b"short"), None);
        assert_eq!(parse_tree_key(&tree_key(300)), Some(300));
        assert_eq!(parse_tree_key(SEQUENCE_KEY), None);
    }
}
