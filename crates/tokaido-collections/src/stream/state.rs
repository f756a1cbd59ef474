//! The record of a stream, and what can be derived from it.

use tokaido_store::{CollectionId, ReadError};

use super::{
    super::place::{damaged, head},
    StreamId, tag,
};

/// The record of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    pub(super) collection: CollectionId,
    /// The number of entries.
    pub len: u64,
    /// How many entries were ever added, or the number that was set instead.
    pub added: u64,
    /// The largest id an entry ever had, or one that was set instead. No entry has a larger one.
    pub last_id: StreamId,
    /// The largest id of an entry that was deleted, not counting trimmed ones.
    pub max_deleted_id: StreamId,
    /// The id of the first entry; the smallest id if there are no entries.
    pub first_id: StreamId,
    /// The number of groups.
    pub groups: u64,
    /// The number that the next group gets.
    pub(super) next_group: u64,
}

/// How many numbers the state has, of eight bytes each, the lowest byte first.
const NUMBERS: usize = 10;

impl State {
    pub(super) fn new(collection: CollectionId) -> Self {
        let (id, len) = (StreamId::MIN, 0);
        Self {
            collection,
            len,
            added: 0,
            last_id: id,
            max_deleted_id: id,
            first_id: id,
            groups: 0,
            next_group: 0,
        }
    }

    pub(super) fn read(collection: Option<CollectionId>, value: &[u8]) -> Result<Self, ReadError> {
        let collection =
            collection.ok_or_else(|| damaged("the record of a stream has no collection"))?;
        let [len, added, ms, seq, deleted_ms, deleted_seq, first_ms, first_seq, groups, next_group] =
            read_numbers::<NUMBERS>(value)?;
        Ok(Self {
            collection,
            len,
            added,
            last_id: StreamId { ms, seq },
            max_deleted_id: StreamId { ms: deleted_ms, seq: deleted_seq },
            first_id: StreamId { ms: first_ms, seq: first_seq },
            groups,
            next_group,
        })
    }

    pub(super) fn value(&self) -> Vec<u8> {
        let Self { len, added, last_id, max_deleted_id, first_id, groups, next_group, .. } = *self;
        write_numbers(&[
            len,
            added,
            last_id.ms,
            last_id.seq,
            max_deleted_id.ms,
            max_deleted_id.seq,
            first_id.ms,
            first_id.seq,
            groups,
            next_group,
        ])
    }

    /// How many entries had been added when the one with this id was, if known.
    #[must_use]
    pub fn added_up_to(&self, id: StreamId) -> Option<u64> {
        if self.added == 0 {
            return Some(0);
        }
        if self.len == 0 && id <= self.last_id {
            return Some(self.added);
        }
        if id == self.last_id {
            return Some(self.added);
        }
        let is_whole = self.max_deleted_id == StreamId::MIN || self.max_deleted_id < self.first_id;
        if id > self.last_id || id > self.first_id || !is_whole {
            return None;
        }
        let before = self.added.saturating_sub(self.len);
        Some(if id == self.first_id { before + 1 } else { before })
    }

    /// Whether an entry may have been deleted that is neither before this id nor before the first.
    pub(super) fn has_gaps_from(&self, id: StreamId) -> bool {
        let has_gaps = self.len > 0 && self.first_id <= self.max_deleted_id;
        has_gaps && self.max_deleted_id != StreamId::MIN && id <= self.max_deleted_id
    }

    /// The common prefix of the keys of one range of elements.
    pub(super) fn head(&self, tag: u8) -> Vec<u8> {
        head(self.collection, tag).to_vec()
    }

    pub(super) fn entry_key(&self, id: StreamId) -> Vec<u8> {
        [&head(self.collection, tag::ENTRIES)[..], &id.encode()].concat()
    }
}

/// Numbers as they are stored in elements and records.
pub(super) fn write_numbers(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// The numbers at the start of a value.
pub(super) fn read_numbers<const N: usize>(value: &[u8]) -> Result<[u64; N], ReadError> {
    let mut numbers = [0; N];
    let (chunks, _) = value.as_chunks::<8>();
    if chunks.len() < N {
        return Err(damaged("a part of a stream is too short"));
    }
    for (number, chunk) in numbers.iter_mut().zip(chunks) {
        *number = u64::from_le_bytes(*chunk);
    }
    Ok(numbers)
}
