//! The record of a large sorted set.

use tokaido_store::{CollectionId, ReadError};

use super::{
    super::place::{COUNT_LEN, Place, damaged, head, stored_count},
    ranks::{LEVELS_MAX, Ranks, TAG_RANKS},
};

/// Maximum length in bytes of the first member's position in the record of a large sorted set.
/// Longer ones are truncated.
const LOW_LEN_MAX: usize = 64;

/// The record of a large sorted set.
#[derive(Clone, Debug)]
pub(super) struct Large {
    pub(super) collection: CollectionId,
    pub(super) len: u64,
    pub(super) levels: u8,
    pub(super) low: Vec<u8>,
}

impl Large {
    /// The record of a collection without members.
    pub(super) fn new(collection: CollectionId) -> Self {
        Self { collection, len: 0, levels: 0, low: Vec::new() }
    }

    pub(super) fn read(collection: CollectionId, value: &[u8]) -> Result<Self, ReadError> {
        let len = stored_count(value)?;
        let rest = value[COUNT_LEN..].split_first();
        let (&levels, low) =
            rest.ok_or_else(|| damaged("the record of a large sorted set is too short"))?;
        if levels > LEVELS_MAX {
            return Err(damaged("the record of a large sorted set has too many levels"));
        }
        Ok(Self { collection, len, levels, low: low.to_vec() })
    }

    pub(super) fn value(&self) -> Vec<u8> {
        [&self.len.to_le_bytes()[..], &[self.levels], &self.low].concat()
    }

    pub(super) fn ranks<'r>(&'r self, place: Place<'r>) -> Ranks<'r> {
        let Self { collection, len, levels, ref low } = *self;
        Ranks { place, collection, len, levels, low }
    }

    pub(super) fn key(&self, rank_key: &[u8]) -> Vec<u8> {
        [&head(self.collection, TAG_RANKS)[..], rank_key].concat()
    }

    /// Notes that no members are before a position. A prefix of it is a valid, weaker bound.
    pub(super) fn set_low(&mut self, rank_key: &[u8]) {
        self.low = rank_key[..rank_key.len().min(LOW_LEN_MAX)].to_vec();
    }
}
