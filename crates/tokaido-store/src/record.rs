//! A record: a value with flags, an expiry and a version, and its form on disk.
//!
//! ```text
//! byte 0      bit 0     flags are present
//!             bit 1     an expiry is present
//!             bits 2-4  number of version bytes, 0 to 7
//!             bits 5-7  kind of value; 0 = bytes, others are reserved
//! then        flags     4 bytes, little-endian, if present
//! then        expiry    8 bytes, little-endian, ms since the epoch, if present
//! then        version   as many little-endian bytes as bits 2-4 say
//! then        value     to the end
//! ```
//! Absent fields cost nothing: a record that never expires and has no flags pays one byte and its
//! version.

use crate::{CommitNumber, ReadError};

/// What a read finds under a key. Borrowed from the transaction, and valid until its next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'t> {
    /// The value.
    pub value: &'t [u8],
    /// Opaque to the store; memcached clients keep the value's type here.
    pub flags: u32,
    /// When the record ceases to be seen, in ms since the epoch; `None`: never.
    pub expires_at_ms: Option<u64>,
    /// The transaction that wrote it. Changes at every write, so it serves as memcached's cas.
    pub version: CommitNumber,
}

/// What a write puts under a key. Its version is the writing transaction's number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewRecord<'a> {
    /// The value.
    pub value: &'a [u8],
    /// Opaque to the store.
    pub flags: u32,
    /// When the record ceases to be seen, in ms since the epoch; `None`: never. A time that has
    /// passed makes a record that nobody sees.
    pub expires_at_ms: Option<u64>,
}

impl<'a> NewRecord<'a> {
    /// A record that never expires, without flags.
    #[must_use]
    pub fn of(value: &'a [u8]) -> Self {
        Self { value, flags: 0, expires_at_ms: None }
    }

    /// The same value with another expiry.
    #[must_use]
    pub fn expiring(self, expires_at_ms: Option<u64>) -> Self {
        Self { expires_at_ms, ..self }
    }
}

/// A key and its record, as a scan meets it. Valid until the transaction's next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'t> {
    /// The key.
    pub key: &'t [u8],
    /// What stands under it.
    pub record: Record<'t>,
}

impl Record<'_> {
    /// Whether the record is still seen at `now_ms`. It expires at the very millisecond.
    #[must_use]
    pub fn is_live(&self, now_ms: u64) -> bool {
        self.expires_at_ms.is_none_or(|at| now_ms < at)
    }
}

const HAS_FLAGS: u8 = 1 << 0;
const HAS_EXPIRY: u8 = 1 << 1;
const VERSION_LEN_SHIFT: u8 = 2;
const VERSION_LEN_MASK: u8 = 0b111;
const KIND_SHIFT: u8 = 5;

/// Most that a version has room for.
pub(crate) const COMMIT_NUMBER_MAX: CommitNumber = (1 << 56) - 1;

/// Longest header: tag, flags, expiry, version.
pub(crate) const HEADER_LEN_MAX: usize = 1 + 4 + 8 + 7;

/// The header of one record, ready to be put before its value.
pub(crate) struct Header {
    bytes: [u8; HEADER_LEN_MAX],
    len: usize,
}

impl Header {
    pub(crate) fn new(record: &NewRecord<'_>, version: CommitNumber) -> Self {
        let mut header = Self { bytes: [0; HEADER_LEN_MAX], len: 1 };
        let mut tag = 0;
        if record.flags != 0 {
            tag |= HAS_FLAGS;
            header.push(&record.flags.to_le_bytes());
        }
        if let Some(at) = record.expires_at_ms {
            tag |= HAS_EXPIRY;
            header.push(&at.to_le_bytes());
        }
        assert!(version <= COMMIT_NUMBER_MAX, "commit number {version} is over 2^56");
        let version_len = (64 - version.leading_zeros()).div_ceil(8) as usize;
        header.push(&version.to_le_bytes()[..version_len]);
        header.bytes[0] = tag | (version_len as u8) << VERSION_LEN_SHIFT;
        header
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Reads a record back from its form on disk.
#[inline]
pub(crate) fn decode(stored: &[u8]) -> Result<Record<'_>, ReadError> {
    let Some((&tag, rest)) = stored.split_first() else { return Err(damaged("an empty record")) };
    // The common case: nothing but a version.
    if tag & !(VERSION_LEN_MASK << VERSION_LEN_SHIFT) == 0
        && let Some((version, value)) = rest.split_at_checked(version_len(tag))
    {
        let version = little_endian(version);
        return Ok(Record { value, flags: 0, expires_at_ms: None, version });
    }
    decode_fields(tag, rest)
}

fn decode_fields(tag: u8, mut rest: &[u8]) -> Result<Record<'_>, ReadError> {
    if tag >> KIND_SHIFT != 0 {
        return Err(damaged("a kind of value that this version does not know"));
    }
    let mut take = |len: usize| {
        let (field, tail) =
            rest.split_at_checked(len).ok_or_else(|| damaged("a truncated record header"))?;
        rest = tail;
        Ok::<u64, ReadError>(little_endian(field))
    };
    let flags = if tag & HAS_FLAGS == 0 { 0 } else { take(4)? as u32 };
    let expires_at_ms = if tag & HAS_EXPIRY == 0 { None } else { Some(take(8)?) };
    let version = take(version_len(tag))?;
    Ok(Record { value: rest, flags, expires_at_ms, version })
}

fn version_len(tag: u8) -> usize {
    ((tag >> VERSION_LEN_SHIFT) & VERSION_LEN_MASK).into()
}

/// The number of up to eight bytes. Most versions have two or three, for which this is faster than
/// a copy.
#[inline]
fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

#[cold]
fn damaged(what: &str) -> ReadError {
    ReadError::Damaged { what: what.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(record: &NewRecord<'_>, version: CommitNumber) -> Vec<u8> {
        [Header::new(record, version).as_bytes(), record.value].concat()
    }

    #[test]
    fn absent_fields_cost_nothing() {
        assert_eq!(encode(&NewRecord::of(b"v"), 0), b"\x00v");
        assert_eq!(encode(&NewRecord::of(b"v"), 300), [0b01000, 44, 1, b'v']);
    }

    #[test]
    fn truncated_and_unknown_headers_are_damage_not_panics() {
        for stored in [&b""[..], b"\x01ab", b"\x02\0\0\0", b"\x1c12", b"\x20x", b"\xff"] {
            assert!(matches!(decode(stored), Err(ReadError::Damaged { .. })), "{stored:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            value: Vec<u8>, flags: u32, expires_at_ms: Option<u64>, version in 0..1u64 << 56,
        ) {
            let new = NewRecord { value: &value, flags, expires_at_ms };
            let stored = encode(&new, version);
            let record = decode(&stored).unwrap();
            proptest::prop_assert_eq!(record, Record { value: &value, flags, expires_at_ms, version });
        }
    }
}
