//! The expiry index: a tree of its own, ordered by time.
//!
//! ```text
//! key      time in ms u64 big-endian, number of a keyspace u16 big-endian, a record's key
//! value    nothing
//! ```
//! If the number of a collection stands alone, in place of an element's key, the entry is for all
//! of its elements: its record is gone, and they are to be removed.
//!
//! An entry may be stale: its record was cleared, or overwritten by a put that did not look up
//! what it replaced. So whoever follows an entry checks the record's own expiry.

use crate::{CollectionId, DatabaseId};

/// Bytes before the record's key.
pub(super) const ENTRY_HEAD_LEN: usize = 8 + 2;

/// The entry of a record.
pub(super) fn key(at_ms: u64, database: DatabaseId, key: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(ENTRY_HEAD_LEN + key.len());
    out.extend_from_slice(&at_ms.to_be_bytes());
    out.extend_from_slice(&database.to_stored().to_be_bytes());
    out.extend_from_slice(key);
    out
}

/// Time, database and key of an entry.
pub(super) fn parse(entry: &[u8]) -> Option<(u64, DatabaseId, &[u8])> {
    let (at_ms, rest) = entry.split_first_chunk::<8>()?;
    let (number, key) = rest.split_first_chunk::<2>()?;
    let database = DatabaseId::from_stored(u16::from_be_bytes(*number))?;
    (!key.is_empty()).then_some((u64::from_be_bytes(*at_ms), database, key))
}

/// The collection that an entry with this key stands for; `None` if it stands for a record.
pub(super) fn collection(database: DatabaseId, key: &[u8]) -> Option<CollectionId> {
    let number = key.try_into().ok().filter(|_| database.is_elements())?;
    CollectionId::from_number(u64::from_be_bytes(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_sort_by_time_and_read_back() {
        let database = DatabaseId::from_index(3);
        let entry = key(1 << 40, database, b"k");
        assert_eq!(parse(&entry), Some((1 << 40, database, &b"k"[..])));
        assert!(key(255, DatabaseId::from_index(9), b"z") < key(256, database, b"a"));
        assert_eq!(parse(b"short"), None);
    }
}
