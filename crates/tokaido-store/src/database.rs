//! Named databases.

use crate::{CollectionId, ReadError, error::DatabaseError, limits};

/// A named database of one store, as [`crate::Store::database`] registered it; or the accompanying
/// keyspace that holds the [elements](Self::elements) of its collections.
///
/// Valid in every transaction for as long as the store is open, whether or not anything has been written to the
/// database yet. An id from [`Store::find_database`](crate::Store::find_database) or from a transaction is valid
/// until the database is dropped; after that it reads as empty and cannot be written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DatabaseId(u16);

/// Set in the number of a keyspace of elements.
const ELEMENTS: u16 = 1 << 15;

impl DatabaseId {
    /// A database that does not exist: it reads as empty and cannot be written to.
    pub const NOWHERE: Self = Self((limits::DATABASE_NUMBERS_MAX - 1) as u16);

    /// Key prefix of elements that belong to the database itself rather than to one of its collections, and that
    /// cannot be derived from its records: a number that no collection has, and 0.
    pub const LASTING_ELEMENTS: [u8; CollectionId::LEN + 1] = [0; _];

    /// As [`LASTING_ELEMENTS`](Self::LASTING_ELEMENTS), for what can be rebuilt from the records, such as an index.
    /// Salvage of a damaged store leaves these elements out, since they may be incomplete.
    pub const DERIVED_ELEMENTS: [u8; CollectionId::LEN + 1] = [0, 0, 0, 0, 0, 0, 0, 0, 1];

    /// The id at `index` in the engine's table of databases.
    ///
    /// # Panics
    /// If `index` is not below [`limits::DATABASE_NUMBERS_MAX`], a limit that engines respect.
    #[must_use]
    pub fn from_index(index: usize) -> Self {
        assert!(index < limits::DATABASE_NUMBERS_MAX, "database index {index} is over the limit");
        Self(index as u16)
    }

    /// The id of the `slot`th database that is [mounted](crate::composite) beside the store's own.
    ///
    /// # Panics
    /// If `slot` is not below [`limits::MOUNTS_MAX`].
    #[must_use]
    pub fn from_mount(slot: usize) -> Self {
        assert!(slot < limits::MOUNTS_MAX, "mount {slot} is over the limit");
        Self((limits::DATABASE_NUMBERS_MAX + slot) as u16)
    }

    /// The id whose [`index`](Self::index) is `number`; `None` if there is none.
    #[must_use]
    pub fn from_number(number: usize) -> Option<Self> {
        (number < limits::DATABASE_NUMBERS_MAX + limits::MOUNTS_MAX).then_some(Self(number as u16))
    }

    /// The index in the engine's table of databases. Mounted databases come after all those that an
    /// engine uses.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0 & !ELEMENTS)
    }

    /// The keyspace that holds the elements of the database's hashes, lists, sets, sorted sets and
    /// streams, as records of bytes. It is read and written like a database of its own, but
    /// has no name and appears in no listing. The keys of a collection's elements begin with
    /// [`CollectionId::prefix`], have at least one more byte, and may be
    /// [`limits::ELEMENT_HEAD_LEN_MAX`] bytes longer than other keys. They are eventually removed
    /// once the collection's record is gone.
    #[must_use]
    pub fn elements(self) -> Self {
        Self(self.0 | ELEMENTS)
    }

    /// Whether this is the keyspace of a database's elements.
    #[inline]
    #[must_use]
    pub fn is_elements(self) -> bool {
        self.0 & ELEMENTS != 0
    }

    /// The keyspace's number in a store's files.
    #[inline]
    pub(crate) fn to_stored(self) -> u16 {
        self.0
    }

    /// The keyspace with a number read from a file; `None` if no keyspace of a store can have it.
    pub(crate) fn from_stored(number: u16) -> Option<Self> {
        let id = Self(number);
        (id.index() < Self::NOWHERE.index()).then_some(id)
    }

    /// Refuses a key that no record of the keyspace can have. Keys of ordinary records have at most
    /// `key_len_max` bytes.
    #[inline]
    pub(crate) fn check_key(self, key: &[u8], key_len_max: usize) -> Result<(), ReadError> {
        let (len, mut head_len, mut max) = (key.len(), 0, key_len_max);
        if self.is_elements() {
            head_len = CollectionId::LEN;
            max += limits::ELEMENT_HEAD_LEN_MAX;
        }
        if len <= head_len || len > max {
            return Err(ReadError::KeyLength { len, max });
        }
        Ok(())
    }

    /// Whether an element with this key belongs to the database itself.
    pub(crate) fn has_own_element(key: &[u8]) -> bool {
        key.starts_with(&Self::LASTING_ELEMENTS) || key.starts_with(&Self::DERIVED_ELEMENTS)
    }

    /// The mount slot of a mounted database; `None` for one of the store's own.
    #[inline]
    #[must_use]
    pub fn mount(self) -> Option<usize> {
        self.index().checked_sub(limits::DATABASE_NUMBERS_MAX)
    }
}

/// What one database holds, known without a scan.
///
/// A cache does not count keys separately from values: all its records, with their headers, are in
/// `value_bytes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatabaseStatistics {
    /// Records, including expired ones that have not been removed yet.
    pub records: u64,
    /// Bytes of their keys.
    pub key_bytes: u64,
    /// Bytes of their values, without headers.
    pub value_bytes: u64,
}

/// Differences are represented in the same type: a negative one wraps around, and wraps back when
/// it is added to a total.
impl DatabaseStatistics {
    pub(crate) fn of_record(key_len: usize, value_len: usize) -> Self {
        Self { records: 1, key_bytes: key_len as u64, value_bytes: value_len as u64 }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.records = self.records.wrapping_add(other.records);
        self.key_bytes = self.key_bytes.wrapping_add(other.key_bytes);
        self.value_bytes = self.value_bytes.wrapping_add(other.value_bytes);
    }

    pub(crate) fn subtract(&mut self, other: Self) {
        self.records = self.records.wrapping_sub(other.records);
        self.key_bytes = self.key_bytes.wrapping_sub(other.key_bytes);
        self.value_bytes = self.value_bytes.wrapping_sub(other.value_bytes);
    }

    /// An estimate of a total, with zero instead of what is negative.
    pub(crate) fn at_least_zero(self) -> Self {
        let at_least_zero = |number: u64| number.cast_signed().max(0).cast_unsigned();
        Self {
            records: at_least_zero(self.records),
            key_bytes: at_least_zero(self.key_bytes),
            value_bytes: at_least_zero(self.value_bytes),
        }
    }
}

/// Memory and disk space that a store occupies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Memory of what was written since the last checkpoint: the memtable and, during a
    /// checkpoint, the frozen one. Each may exceed its limit by one group of transactions.
    pub memtable_bytes: u64,
    /// Memory of memtables whose checkpoint is done but which a snapshot still sees. A snapshot
    /// holds at most two, however long it lives, until it is renewed or released.
    pub held_bytes: u64,
    /// The log files.
    pub log_bytes: u64,
    /// The base file. It does not shrink, and space that a long-lived snapshot sees is not reused.
    pub base_bytes: u64,
    /// The files of the runs, which will be merged into the base.
    pub runs_bytes: u64,
}

/// The name that [`Store::internal_database`](crate::Store::internal_database) has in the catalog.
/// No other database can have it, since [`check_database_name`] refuses it.
pub(crate) const INTERNAL_NAME: &str = ".internal";

/// A name is 1 to 64 of `a-z A-Z 0-9 _ - .`, and starts with a letter, a digit or `_`, so that it
/// needs no quoting in URLs, in file names or as a field in Lua.
///
/// # Errors
/// [`DatabaseError::BadName`] for any other name.
pub fn check_database_name(name: &str) -> Result<(), DatabaseError> {
    let body = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    let ok = name.len() <= limits::DATABASE_NAME_LEN_MAX
        && name.bytes().all(body)
        && name.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_');
    if ok { Ok(()) } else { Err(DatabaseError::BadName { name: name.to_owned() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_need_no_quoting_are_taken() {
        for name in ["main", "0", "_cache", "hits-2026.11", &"x".repeat(64)] {
            assert!(check_database_name(name).is_ok(), "{name}");
        }
        for name in ["", "-x", ".x", INTERNAL_NAME, "a b", "a/b", "日本", "a\0", &"x".repeat(65)]
        {
            assert!(check_database_name(name).is_err(), "{name}");
        }
    }
}
