//! A record: a value with a kind, flags, an expiry and a version, and its form on disk.
//!
//! ```text
//! byte 0      bit 0     flags are present
//!             bit 1     an expiry is present
//!             bits 2-4  number of version bytes, 0 to 7
//!             bits 5-7  kind of value, see `Kind`
//! then        flags     4 bytes, little-endian, if present
//! then        expiry    8 bytes, little-endian, ms since the epoch, if present
//! then        version   as many little-endian bytes as bits 2-4 say
//! then        collection  8 bytes, little-endian, 0 for none, unless the kind is bytes
//! then        marks     1 byte, if the number of the kind is 6: bytes with marks, see `Marks`
//! then        value     to the end
//! ```
//! Absent fields cost nothing: a record of bytes that never expires and has no flags costs one byte
//! plus its version.

use std::{fmt, num::NonZeroU64};

use crate::{CommitNumber, DatabaseStatistics, ReadError, limits};

/// What a value is. The store distinguishes kinds but leaves their contents to its callers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A string of bytes.
    #[default]
    Bytes = 0,
    /// Fields, each with a value.
    Hash = 1,
    /// Items in the order that callers gave them.
    List = 2,
    /// Members.
    Set = 3,
    /// Members in the order of their scores.
    SortedSet = 4,
    /// Entries in the order of their ids.
    Stream = 5,
}

impl Kind {
    fn from_number(number: u8) -> Option<Self> {
        use Kind::{Bytes, Hash, List, Set, SortedSet, Stream};
        [Bytes, Hash, List, Set, SortedSet, Stream].into_iter().find(|kind| *kind as u8 == number)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bytes => "string of bytes",
            Self::Hash => "hash",
            Self::List => "list",
            Self::Set => "set",
            Self::SortedSet => "sorted set",
            Self::Stream => "stream",
        })
    }
}

/// The number that stands for [`Kind::Bytes`] in the header of a record with marks.
const MARKED_BYTES: u8 = 6;

/// What memcached's meta commands and shared dictionaries note about a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Marks(u8);

impl Marks {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// The value is out of date, but is served until there is a newer one.
    pub const STALE: Self = Self(1 << 0);
    /// One client has been told to renew the value.
    pub const CLAIMED: Self = Self(1 << 1);
    /// The value has been read. Only a [`cache`](crate::cache) notes this.
    pub const FETCHED: Self = Self(1 << 2);

    /// The value is the text of a number, and shared dictionaries return it as one. Only a
    /// [`cache`](crate::cache) notes this and the next two.
    pub const NUMBER: Self = Self(1 << 3);
    /// The value is the text of a boolean.
    pub const BOOLEAN: Self = Self(1 << 4);
    /// The value is a list, in the cache's format.
    pub const LIST: Self = Self(1 << 3 | 1 << 4);

    const ALL: u8 = 0b1_1111;

    /// What the value is to shared dictionaries: [`NUMBER`](Self::NUMBER), [`BOOLEAN`](Self::BOOLEAN),
    /// [`LIST`](Self::LIST), or [`NONE`](Self::NONE) for bytes.
    #[must_use]
    pub const fn form(self) -> Self {
        Self(self.0 & Self::LIST.0)
    }

    /// The union of both.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// These without the others.
    #[must_use]
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Whether all of the others are among these.
    #[must_use]
    pub const fn has(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    pub(crate) const fn from_bits(bits: u8) -> Self {
        Self(bits & Self::ALL)
    }
}

/// The number of a collection whose elements are records of their own, in the second keyspace of
/// its database: see [`DatabaseId::elements`](crate::DatabaseId::elements). A store never uses a
/// number twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CollectionId(NonZeroU64);

impl CollectionId {
    /// Length in bytes of the prefix that all element keys of a collection share.
    pub const LEN: usize = 8;

    /// The id that transaction `transaction` makes after `made` others; `None` if it may make no
    /// more, or if there have been so many transactions that numbers have run out.
    pub(crate) fn new(transaction: CommitNumber, made: usize) -> Option<Self> {
        const MADE_MAX: u64 = limits::TRANSACTION_COLLECTIONS_MAX as u64;
        let first = transaction.checked_mul(MADE_MAX)?;
        Self::from_number(first + made as u64).filter(|_| (made as u64) < MADE_MAX)
    }

    /// Whether that transaction made it.
    pub(crate) fn is_of(self, transaction: CommitNumber) -> bool {
        self.number() / limits::TRANSACTION_COLLECTIONS_MAX as u64 == transaction
    }

    pub(crate) fn from_number(number: u64) -> Option<Self> {
        NonZeroU64::new(number).map(Self)
    }

    pub(crate) fn number(self) -> u64 {
        self.0.get()
    }

    /// The prefix of its elements' keys. At least one byte follows in each.
    #[must_use]
    pub fn prefix(self) -> [u8; Self::LEN] {
        self.number().to_be_bytes()
    }
}

/// What a read finds under a key. Borrowed from the transaction, and valid until its next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'t> {
    /// The value.
    pub value: &'t [u8],
    /// Opaque to the store; memcached clients keep the value's type in them.
    pub flags: u32,
    /// When the record expires, in ms since the epoch; `None`: never.
    pub expires_at_ms: Option<u64>,
    /// The transaction that wrote it. It changes with every write, so it serves as memcached's cas.
    pub version: CommitNumber,
    /// What the value is.
    pub kind: Kind,
    /// The collection whose elements belong to this record, if any do.
    pub collection: Option<CollectionId>,
    /// Marks on the value. Only a record of bytes has any.
    pub marks: Marks,
}

/// What a write puts under a key. Its version will be the writing transaction's number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewRecord<'a> {
    /// The value.
    pub value: &'a [u8],
    /// Opaque to the store.
    pub flags: u32,
    /// When the record expires, in ms since the epoch; `None`: never. With a time in the past, the
    /// record is never visible.
    pub expires_at_ms: Option<u64>,
    /// What the value is. Only the store's own databases hold values other than bytes.
    pub kind: Kind,
    /// The collection whose elements belong to this record, if any do. They are removed along with
    /// the record, also when another replaces it. A record of bytes has none.
    pub collection: Option<CollectionId>,
    /// Marks on the value. Only a record of bytes has any.
    pub marks: Marks,
}

/// Changes to a record that leave its value as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amendment {
    /// When the record expires.
    pub expires_at_ms: Option<u64>,
    /// Marks on the value.
    pub marks: Marks,
}

impl<'a> NewRecord<'a> {
    /// A record of bytes that never expires, without flags.
    #[must_use]
    pub fn of(value: &'a [u8]) -> Self {
        Self { value, ..Self::default() }
    }

    /// The same record with another expiry.
    #[must_use]
    pub fn expiring(self, expires_at_ms: Option<u64>) -> Self {
        Self { expires_at_ms, ..self }
    }
}

/// A key and its record, as a scan yields them. Valid until the transaction's next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'t> {
    /// The key.
    pub key: &'t [u8],
    /// The record under it.
    pub record: Record<'t>,
}

impl<'t> Record<'t> {
    /// A record of bytes that never expires, without flags.
    #[must_use]
    pub const fn of(value: &'t [u8], version: CommitNumber) -> Self {
        let (kind, collection) = (Kind::Bytes, None);
        let marks = Marks::NONE;
        Self { value, flags: 0, expires_at_ms: None, version, kind, collection, marks }
    }

    /// This record with another value, to be put again. Marks of the old value are dropped.
    #[must_use]
    pub fn with_value<'v>(&self, value: &'v [u8]) -> NewRecord<'v> {
        NewRecord { marks: Marks::NONE, ..self.with_same_value(value) }
    }

    /// As [`with_value`](Self::with_value); a number of shared dictionaries stays a number.
    #[must_use]
    pub fn with_number<'v>(&self, digits: &'v [u8]) -> NewRecord<'v> {
        let is_number = self.marks.form() == Marks::NUMBER;
        let marks = if is_number { Marks::NUMBER } else { Marks::NONE };
        NewRecord { marks, ..self.with_same_value(digits) }
    }

    /// This record with a copy of its value, to be put again.
    #[must_use]
    pub fn with_same_value<'v>(&self, copy: &'v [u8]) -> NewRecord<'v> {
        let Self { flags, expires_at_ms, kind, collection, marks, .. } = *self;
        NewRecord { value: copy, flags, expires_at_ms, kind, collection, marks }
    }

    /// Whether the record is still visible at `now_ms`. It expires at exactly `expires_at_ms`.
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

/// The largest number that fits a version.
pub(crate) const COMMIT_NUMBER_MAX: CommitNumber = (1 << 56) - 1;

/// Maximum length of a header: tag, flags, expiry, version, collection.
pub(crate) const HEADER_LEN_MAX: usize = 1 + 4 + 8 + 7 + CollectionId::LEN;

/// The header of one record, to be written before its value.
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
        let marks = record.marks.without(Marks::FETCHED.and(Marks::LIST));
        let is_marked = marks != Marks::NONE && record.kind == Kind::Bytes;
        if is_marked {
            header.push(&[marks.bits()]);
        } else if record.kind != Kind::Bytes {
            let number = record.collection.map_or(0, CollectionId::number);
            header.push(&number.to_le_bytes());
        }
        tag |= (if is_marked { MARKED_BYTES } else { record.kind as u8 }) << KIND_SHIFT;
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

/// What a stored record adds to the statistics of its tree.
pub(crate) fn statistics(key: &[u8], stored: &[u8]) -> Result<DatabaseStatistics, ReadError> {
    Ok(DatabaseStatistics::of_record(key.len(), decode(stored)?.value.len()))
}

/// Reads a record back from its form on disk.
#[inline]
pub(crate) fn decode(stored: &[u8]) -> Result<Record<'_>, ReadError> {
    let Some((&tag, rest)) = stored.split_first() else {
        return Err(ReadError::damaged("an empty record"));
    };
    // The common case: only a version.
    if tag & !(VERSION_LEN_MASK << VERSION_LEN_SHIFT) == 0
        && let Some((version, value)) = rest.split_at_checked(version_len(tag))
    {
        return Ok(Record::of(value, little_endian(version)));
    }
    decode_fields(tag, rest)
}

fn decode_fields(tag: u8, mut rest: &[u8]) -> Result<Record<'_>, ReadError> {
    let is_marked = tag >> KIND_SHIFT == MARKED_BYTES;
    let kind = if is_marked { Some(Kind::Bytes) } else { Kind::from_number(tag >> KIND_SHIFT) };
    let kind =
        kind.ok_or_else(|| ReadError::damaged("a kind of value that this version does not know"))?;
    let mut take = |len: usize| {
        let (field, tail) = rest
            .split_at_checked(len)
            .ok_or_else(|| ReadError::damaged("a truncated record header"))?;
        rest = tail;
        Ok::<u64, ReadError>(little_endian(field))
    };
    let flags = if tag & HAS_FLAGS == 0 { 0 } else { take(4)? as u32 };
    let expires_at_ms = if tag & HAS_EXPIRY == 0 { None } else { Some(take(8)?) };
    let version = take(version_len(tag))?;
    let collection = if kind == Kind::Bytes { 0 } else { take(CollectionId::LEN)? };
    let collection = CollectionId::from_number(collection);
    let marks = Marks::from_bits(if is_marked { take(1)? as u8 } else { 0 });
    let marks = marks.without(Marks::FETCHED.and(Marks::LIST));
    Ok(Record { value: rest, flags, expires_at_ms, version, kind, collection, marks })
}

fn version_len(tag: u8) -> usize {
    ((tag >> VERSION_LEN_SHIFT) & VERSION_LEN_MASK).into()
}

/// The number in up to eight bytes. Most versions have two or three, for which this is faster than
/// a copy.
#[inline]
fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
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
        for stored in [
            &b""[..],
            b"\x01ab",
            b"\x02\0\0\0",
            b"\x1c12",
            b"\x20\0\0\0",
            b"\xc0",
            b"\xe01234567v",
            b"\xff",
        ] {
            assert!(matches!(decode(stored), Err(ReadError::Damaged { .. })), "{stored:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            value: Vec<u8>, flags: u32, expires_at_ms: Option<u64>, version in 0..1u64 << 56,
            kind in 0..6u8, collection: u64, marks in 0..4u8,
        ) {
            let kind = Kind::from_number(kind).unwrap();
            let collection = CollectionId::from_number(collection).filter(|_| kind != Kind::Bytes);
            let marks = Marks::from_bits(if kind == Kind::Bytes { marks } else { 0 });
            let new = NewRecord { value: &value, flags, expires_at_ms, kind, collection, marks };
            let stored = encode(&new, version);
            let record = decode(&stored).unwrap();
            proptest::prop_assert_eq!(record.version, version);
            proptest::prop_assert_eq!(record.with_same_value(record.value), new);
        }
    }
}
