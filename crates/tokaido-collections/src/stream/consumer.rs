//! The state of a consumer.

use tokaido_store::ReadError;

use super::{
    super::place::damaged,
    state::{read_numbers, write_numbers},
};

/// A member of a group, with entries delivered only to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumer {
    /// Its name.
    pub name: Vec<u8>,
    /// When it last asked for something, in ms since the epoch.
    pub seen_at_ms: u64,
    /// How many of its entries are not acknowledged.
    pub pending: u64,
}

/// How many numbers, of eight bytes each, a consumer has before its name.
const NUMBERS: usize = 2;

impl Consumer {
    pub(super) fn read(value: &[u8]) -> Result<Self, ReadError> {
        let [seen_at_ms, pending] = read_numbers::<NUMBERS>(value)?;
        let name = value.get(8 * NUMBERS..);
        let name = name.ok_or_else(|| damaged("a consumer has no name"))?.to_vec();
        Ok(Self { name, seen_at_ms, pending })
    }

    pub(super) fn value(&self) -> Vec<u8> {
        [&write_numbers(&[self.seen_at_ms, self.pending])[..], &self.name].concat()
    }
}
