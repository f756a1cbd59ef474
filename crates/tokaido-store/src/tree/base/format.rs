//! The layout of the base. docs/file-format.md describes it in full.
//!
//! | LMDB database | key | value |
//! |---|---|---|
//! | `base` | `format` | [`FORMAT_VERSION`], u32 |
//! | | `store` | a random number, the same in all files of a store, u64 |
//! | | `sequence` | the last transaction that the base and its runs hold, u64 |
//! | | `log` | the first segment of the log that may hold later transactions, u64 |
//! | | `runs` | number of the next run, u64, and the runs that there are, the newest first (`runs::format`) |
//! | | `total` + number of a tree, u32 big-endian | if there are runs: records, key bytes, value bytes of base and runs together, u64 each; whether they are an estimate, u8 |
//! | | `tree` + number, u32 big-endian | slot u32, records, key bytes, value bytes, u64 each |
//! | `s0`, `s1`, … | a key, or the head of long keys | a record, or a bucket of them (`long_key`) |
//!
//! A *slot* `sN` holds the tree whose entry names it, or nothing. Numbers are little-endian, except
//! in keys, where they must sort.

use crate::DatabaseStatistics;

/// The version of a store that has, or had, runs. Before version 3, totals were never estimates. Stores with a later
/// version are not opened.
pub(crate) const FORMAT_VERSION: u32 = 3;

/// The version of a store that never had runs; programs that do not know runs can open it, too.
pub(in crate::tree) const VERSION_WITHOUT_RUNS: u32 = 1;

/// Whether a store of this version can be read.
pub(in crate::tree) fn is_known(version: u32) -> bool {
    (VERSION_WITHOUT_RUNS..=FORMAT_VERSION).contains(&version)
}

/// The number that no tree has, since it would leave none for the next.
pub(in crate::tree) const NO_TREE: u32 = u32::MAX;

pub(in crate::tree) const BASE: &str = "base";
pub(in crate::tree) const FORMAT_KEY: &[u8] = b"format";
pub(in crate::tree) const STORE_KEY: &[u8] = b"store";
pub(in crate::tree) const SEQUENCE_KEY: &[u8] = b"sequence";
pub(in crate::tree) const LOG_KEY: &[u8] = b"log";
pub(in crate::tree) const RUNS_KEY: &[u8] = b"runs";
pub(in crate::tree) const TOTAL_PREFIX: &[u8] = b"total";
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

/// What base and runs together have of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tree) struct Total {
    pub(in crate::tree) sum: DatabaseStatistics,
    /// Whether some of what the runs shadow was estimated.
    pub(in crate::tree) is_estimate: bool,
}

const STATISTICS_LEN: usize = 3 * 8;
const ENTRY_LEN: usize = 4 + STATISTICS_LEN;

fn encode_statistics(sum: &DatabaseStatistics) -> [u8; STATISTICS_LEN] {
    let mut out = [0; STATISTICS_LEN];
    for (i, number) in [sum.records, sum.key_bytes, sum.value_bytes].into_iter().enumerate() {
        out[8 * i..8 + 8 * i].copy_from_slice(&number.to_le_bytes());
    }
    out
}

fn decode_statistics(bytes: &[u8]) -> Option<DatabaseStatistics> {
    let bytes: &[u8; STATISTICS_LEN] = bytes.try_into().ok()?;
    let mut numbers = bytes.as_chunks::<8>().0.iter().map(|n| u64::from_le_bytes(*n));
    Some(DatabaseStatistics {
        records: numbers.next()?,
        key_bytes: numbers.next()?,
        value_bytes: numbers.next()?,
    })
}

impl Total {
    /// What is known for certain.
    pub(in crate::tree) fn exact(sum: DatabaseStatistics) -> Self {
        Self { sum, is_estimate: false }
    }

    pub(in crate::tree) fn encode(&self) -> [u8; STATISTICS_LEN + 1] {
        let mut out = [u8::from(self.is_estimate); STATISTICS_LEN + 1];
        out[..STATISTICS_LEN].copy_from_slice(&encode_statistics(&self.sum));
        out
    }

    /// Reads a total, also one without the last byte, as before version 3.
    pub(in crate::tree) fn decode(bytes: &[u8]) -> Option<Self> {
        let (sum, rest) = bytes.split_at_checked(STATISTICS_LEN)?;
        let is_estimate = match rest {
            [] | [0] => false,
            [1] => true,
            _ => return None,
        };
        Some(Self { sum: decode_statistics(sum)?, is_estimate })
    }
}

impl TreeEntry {
    pub(in crate::tree) fn encode(&self) -> [u8; ENTRY_LEN] {
        let mut out = [0; ENTRY_LEN];
        out[..4].copy_from_slice(&self.slot.to_le_bytes());
        out[4..].copy_from_slice(&encode_statistics(&self.statistics));
        out
    }

    pub(in crate::tree) fn decode(bytes: &[u8]) -> Option<Self> {
        let (slot, statistics) = bytes.split_first_chunk::<4>()?;
        let statistics = decode_statistics(statistics)?;
        Some(Self { slot: u32::from_le_bytes(*slot), statistics })
    }
}

pub(in crate::tree) fn tree_key(tree: u32) -> Vec<u8> {
    [TREE_PREFIX, &tree.to_be_bytes()].concat()
}

pub(in crate::tree) fn parse_tree_key(key: &[u8]) -> Option<u32> {
    parse_number_behind(TREE_PREFIX, key)
}

pub(in crate::tree) fn total_key(tree: u32) -> Vec<u8> {
    [TOTAL_PREFIX, &tree.to_be_bytes()].concat()
}

pub(in crate::tree) fn parse_total_key(key: &[u8]) -> Option<u32> {
    parse_number_behind(TOTAL_PREFIX, key)
}

fn parse_number_behind(prefix: &[u8], key: &[u8]) -> Option<u32> {
    let number = key.strip_prefix(prefix)?;
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
        for is_estimate in [false, true] {
            let total = Total { sum: statistics, is_estimate };
            assert_eq!(Total::decode(&total.encode()), Some(total));
        }
        let before_version_3 = encode_statistics(&statistics);
        assert_eq!(Total::decode(&before_version_3), Some(Total::exact(statistics)));
        assert_eq!(Total::decode(b"short"), None);
        assert_eq!(parse_tree_key(&tree_key(300)), Some(300));
        assert_eq!(parse_tree_key(SEQUENCE_KEY), None);
    }
}
