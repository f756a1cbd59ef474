//! What stands where in the file.
//!
//! LMDB's named databases:
//!
//! | name | key | value |
//! |---|---|---|
//! | `meta` | `format` | [`FORMAT_VERSION`], 4 bytes |
//! | | `commit` | number of the last committed transaction, 8 bytes |
//! | | `database` + index, 2 bytes big-endian | see [`DatabaseEntry`] |
//! | `expiry` | see [`expiry_key`] | nothing |
//! | `t0`, `t1`, … | a key, or the head of long keys | a record, or a bucket of them (`long_key`) |
//!
//! A *tree* `tN` belongs to the database whose entry names it, or is free. Clearing a database
//! gives it a free tree, so that it takes no time and can be taken back.
//!
//! All numbers are little-endian, except where they are part of a key and must sort.

use crate::{DatabaseStatistics, limits};

/// The version of all this. A store with another one is not opened.
pub(super) const FORMAT_VERSION: u32 = 1;

pub(super) const META: &str = "meta";
pub(super) const EXPIRY: &str = "expiry";
pub(super) const FORMAT_KEY: &[u8] = b"format";
pub(super) const COMMIT_KEY: &[u8] = b"commit";
pub(super) const DATABASE_PREFIX: &[u8] = b"database";

/// Most trees that one group of transactions takes from their databases by clearing them.
pub(super) const DROPPED_TREES_MAX: usize = limits::DATABASES_MAX;

/// Most trees: one for each database, and those that a group drops.
pub(super) const TREES_MAX: usize = limits::DATABASES_MAX + DROPPED_TREES_MAX;

/// The name of tree `number`.
pub(super) fn tree_name(number: u32) -> String {
    format!("t{number}")
}

/// What `meta` keeps of one database: tree number (4 bytes, all ones for none), records, key
/// bytes, value bytes (8 each), then the name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DatabaseEntry {
    /// Its tree; `None` before the first write.
    pub tree: Option<u32>,
    pub statistics: DatabaseStatistics,
}

const NO_TREE: u32 = u32::MAX;
const ENTRY_LEN: usize = 4 + 3 * 8;

impl DatabaseEntry {
    pub(super) fn encode(&self, name: &str) -> Vec<u8> {
        let s = &self.statistics;
        let mut out = Vec::with_capacity(ENTRY_LEN + name.len());
        out.extend_from_slice(&self.tree.unwrap_or(NO_TREE).to_le_bytes());
        for number in [s.records, s.key_bytes, s.value_bytes] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(name.as_bytes());
        out
    }

    /// The entry and the name; `None` if the bytes are no entry.
    pub(super) fn decode(bytes: &[u8]) -> Option<(Self, &str)> {
        let (head, name) = bytes.split_at_checked(ENTRY_LEN)?;
        let (tree, numbers) = head.split_first_chunk::<4>()?;
        let tree = u32::from_le_bytes(*tree);
        let mut numbers = numbers.as_chunks::<8>().0.iter().map(|n| u64::from_le_bytes(*n));
        let statistics = DatabaseStatistics {
            records: numbers.next()?,
            key_bytes: numbers.next()?,
            value_bytes: numbers.next()?,
        };
        let entry = Self { tree: (tree != NO_TREE).then_some(tree), statistics };
        Some((entry, std::str::from_utf8(name).ok()?))
    }
}

pub(super) fn database_key(index: usize) -> [u8; DATABASE_PREFIX.len() + 2] {
    let mut key = [0; DATABASE_PREFIX.len() + 2];
    key[..DATABASE_PREFIX.len()].copy_from_slice(DATABASE_PREFIX);
    key[DATABASE_PREFIX.len()..].copy_from_slice(&(index as u16).to_be_bytes());
    key
}

/// The index of the database whose entry stands under `key`; `None` for other keys of `meta`.
pub(super) fn database_index(key: &[u8]) -> Option<usize> {
    let index = key.strip_prefix(DATABASE_PREFIX)?;
    Some(u16::from_be_bytes(index.try_into().ok()?) as usize)
}

/// Bytes of a record's key that its entry in the expiry index holds.
pub(super) const EXPIRY_KEY_PART_LEN: usize = 480;

const EXPIRY_HEAD_LEN: usize = 8 + 2;

/// An entry of the expiry index: time (ms, 8 bytes big-endian), database index (2 bytes
/// big-endian), and the record's key, cut to [`EXPIRY_KEY_PART_LEN`].
///
/// An entry may be stale: the record was cleared, or it is one of several with the same key part.
/// Whoever follows an entry looks at the record's own expiry.
pub(super) fn expiry_key(at_ms: u64, index: usize, key: &[u8]) -> Vec<u8> {
    let part = &key[..key.len().min(EXPIRY_KEY_PART_LEN)];
    let mut out = Vec::with_capacity(EXPIRY_HEAD_LEN + part.len());
    out.extend_from_slice(&at_ms.to_be_bytes());
    out.extend_from_slice(&(index as u16).to_be_bytes());
    out.extend_from_slice(part);
    out
}

/// Time, database index and key part of an entry of the expiry index.
pub(super) fn parse_expiry_key(entry: &[u8]) -> Option<(u64, usize, &[u8])> {
    let (at_ms, rest) = entry.split_first_chunk::<8>()?;
    let (index, part) = rest.split_first_chunk::<2>()?;
    Some((u64::from_be_bytes(*at_ms), u16::from_be_bytes(*index) as usize, part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_read_back() {
        let statistics = DatabaseStatistics { records: 1, key_bytes: 2, value_bytes: 3 };
        for tree in [None, Some(0), Some(7)] {
            let entry = DatabaseEntry { tree, statistics };
            assert_eq!(DatabaseEntry::decode(&entry.encode("main")), Some((entry, "main")));
        }
        assert_eq!(DatabaseEntry::decode(b"short"), None);
        assert_eq!(database_index(&database_key(300)), Some(300));
        assert_eq!(database_index(COMMIT_KEY), None);
    }

    #[test]
    fn expiry_entries_sort_by_time_and_fit_lmdb() {
        let long = [b'k'; limits::KEY_LEN_MAX];
        let entry = expiry_key(1 << 40, 3, &long);
        assert!(entry.len() <= super::super::lmdb::LMDB_KEY_LEN_MAX);
        assert_eq!(parse_expiry_key(&entry), Some((1 << 40, 3, &long[..EXPIRY_KEY_PART_LEN])));
        assert!(expiry_key(255, 9, b"z") < expiry_key(256, 0, b"a"));
    }
}
