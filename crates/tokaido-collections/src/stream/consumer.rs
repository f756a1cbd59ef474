//! What is known of a consumer.

use tokaido_store::ReadError;

use super::{
    super::place::damaged,
    state::{read_numbers, write_numbers},
};

/// A member of a group, which is delivered entries of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumer {
    /// Its name.
    pub name: Vec<u8>,
    /// When it last asked for something, in ms since the epoch.
    pub seen_at_ms: u64,
    /// How many entries it has not acknowledged.
    pub pending: u64,
}

/// Eight bytes each: a consumer has so many numbers before its name.
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
