//! The record of a large sorted set.

use tokaido_store::{CollectionId, ReadError};

use super::{
    super::place::{COUNT_LEN, Place, damaged, head, stored_count},
    ranks::{LEVELS_MAX, Ranks, TAG_RANKS},
};

/// Maximum length in bytes of a position in the record of a large sorted set. Lower bounds are truncated, and
/// longer upper bounds left out.
const BOUND_LEN_MAX: usize = 64;

/// In the byte with the number of levels, the bit that says that only some members are counted.
const PARTLY_COUNTED: u8 = 0x80;

/// The bit that says that there is an upper bound.
const HAS_HIGH: u8 = 0x40;

/// The record of a large sorted set.
#[derive(Clone, Debug)]
pub(super) struct Large {
    pub(super) collection: CollectionId,
    pub(super) len: u64,
    pub(super) counts: Counts,
    /// No members are before this position, so that scans can skip deleted ones.
    pub(super) low: Vec<u8>,
    /// All members are before this position, if it is known.
    pub(super) high: Option<Vec<u8>>,
}

/// Which members are counted, so that ranks among them are found without walking over all members.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    /// The highest level that has had a boundary.
    pub(super) levels: u8,
    /// The number of members that are counted.
    pub(super) members: u64,
    /// Members from this position on are not counted. `None`: all are.
    pub(super) end: Option<Vec<u8>>,
}

impl Counts {
    /// Whether a member at this position is counted.
    pub(super) fn cover(&self, rank_key: &[u8]) -> bool {
        self.end.as_ref().is_none_or(|end| rank_key < end.as_slice())
    }
}

impl Large {
    /// The record of a collection without members.
    pub(super) fn new(collection: CollectionId) -> Self {
        let counts = Counts { levels: 0, members: 0, end: Some(Vec::new()) };
        Self { collection, len: 0, counts, low: Vec::new(), high: None }
    }

    pub(super) fn read(collection: CollectionId, value: &[u8]) -> Result<Self, ReadError> {
        let len = stored_count(value)?;
        let mut rest = Rest(&value[COUNT_LEN..]);
        let [first] = rest.take()?;
        let levels = first & !(PARTLY_COUNTED | HAS_HIGH);
        if levels > LEVELS_MAX {
            return Err(damaged("the record of a large sorted set has too many levels"));
        }
        let mut counts = Counts { levels, members: len, end: None };
        if first & PARTLY_COUNTED != 0 {
            counts.members = u64::from_le_bytes(rest.take()?);
            counts.end = Some(rest.text()?);
        }
        let high = if first & HAS_HIGH != 0 { Some(rest.text()?) } else { None };
        Ok(Self { collection, len, counts, low: rest.0.to_vec(), high })
    }

    pub(super) fn value(&self) -> Vec<u8> {
        let Self { len, counts: Counts { levels, members, end }, low, high, .. } = self;
        let mut value = len.to_le_bytes().to_vec();
        let partly_counted = if end.is_some() { PARTLY_COUNTED } else { 0 };
        let has_high = if high.is_some() { HAS_HIGH } else { 0 };
        value.push(levels | partly_counted | has_high);
        if end.is_some() {
            value.extend_from_slice(&members.to_le_bytes());
        }
        for text in [end, high].into_iter().flatten() {
            value.extend_from_slice(&(text.len() as u16).to_le_bytes());
            value.extend_from_slice(text);
        }
        value.extend_from_slice(low);
        value
    }

    pub(super) fn ranks<'r>(&'r self, place: Place<'r>) -> Ranks<'r> {
        Ranks { place, collection: self.collection, counts: self.counts.clone(), low: &self.low }
    }

    pub(super) fn key(&self, rank_key: &[u8]) -> Vec<u8> {
        [&head(self.collection, TAG_RANKS)[..], rank_key].concat()
    }

    /// Notes that no members are before a position. A prefix of it is a valid, weaker bound.
    pub(super) fn set_low(&mut self, rank_key: &[u8]) {
        self.low = rank_key[..rank_key.len().min(BOUND_LEN_MAX)].to_vec();
    }

    /// Notes that no members are after a position.
    pub(super) fn set_last(&mut self, rank_key: &[u8]) {
        self.high = (rank_key.len() < BOUND_LEN_MAX).then(|| [rank_key, &[0]].concat());
    }

    /// Moves the bounds for a member at a new position.
    pub(super) fn admit(&mut self, rank_key: &[u8]) {
        if rank_key < self.low.as_slice() {
            self.set_low(rank_key);
        }
        if self.high.as_ref().is_some_and(|high| high.as_slice() <= rank_key) {
            self.set_last(rank_key);
        }
    }

    /// The ends at which a member at this position may be, as far as the bounds tell. If it leaves, they have to be
    /// found again.
    pub(super) fn ends_at(&self, rank_key: &[u8]) -> [bool; 2] {
        let is_last = self.high.as_ref().is_none_or(|high| {
            high.split_last().is_some_and(|(&last, position)| last == 0 && position == rank_key)
        });
        [rank_key.starts_with(&self.low), is_last]
    }

    /// Where a walk over all members begins or ends, in the elements' keys.
    pub(super) fn low_key(&self) -> Vec<u8> {
        self.key(&self.low)
    }

    /// The position behind the last member, in the elements' keys.
    pub(super) fn high_key(&self) -> Vec<u8> {
        match &self.high {
            Some(high) => self.key(high),
            None => head(self.collection, TAG_RANKS + 1).to_vec(),
        }
    }
}

/// What is left of a record's value.
struct Rest<'v>(&'v [u8]);

impl Rest<'_> {
    fn take<const LEN: usize>(&mut self) -> Result<[u8; LEN], ReadError> {
        let (taken, rest) = self.0.split_first_chunk().ok_or_else(cut_off)?;
        self.0 = rest;
        Ok(*taken)
    }

    /// A text, preceded by its length.
    fn text(&mut self) -> Result<Vec<u8>, ReadError> {
        let len = usize::from(u16::from_le_bytes(self.take()?));
        let (text, rest) = self.0.split_at_checked(len).ok_or_else(cut_off)?;
        self.0 = rest;
        Ok(text.to_vec())
    }
}

fn cut_off() -> ReadError {
    damaged("the record of a large sorted set is too short")
}

#[cfg(test)]
mod tests {
    use tokaido_store::{Store, tree};

    use super::*;

    #[test]
    fn records_come_back_and_damage_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let options = tree::Options { size_max: 1 << 24, ..tree::Options::default() };
        let store = tree::open(directory.path(), options).unwrap();
        let collection = store.writer().unwrap().begin().unwrap().new_collection().unwrap();
        let mut large = Large::new(collection);
        (large.len, large.low) = (9, b"low".to_vec());
        let high = || Some(b"high".to_vec());
        for (levels, members, end, high) in [
            (0, 0, Some(Vec::new()), None),
            (3, 5, Some(b"position".to_vec()), high()),
            (2, 9, None, high()),
            (LEVELS_MAX, 9, None, None),
        ] {
            large.counts = Counts { levels, members, end };
            large.high = high;
            let value = large.value();
            let read = Large::read(collection, &value).unwrap();
            assert_eq!(format!("{read:?}"), format!("{large:?}"));
            let fixed = value.len() - large.low.len();
            for len in 0..fixed {
                assert!(Large::read(collection, &value[..len]).is_err(), "{len} bytes");
            }
        }
        large.counts.levels = LEVELS_MAX + 1;
        assert!(Large::read(collection, &large.value()).is_err());
    }
}
