//! Named databases.

use crate::{CollectionId, ReadError, error::DatabaseError, limits};

/// A named database of one store, as [`crate::Store::database`] registered it; or the keyspace
/// beside it that holds the [elements](Self::elements) of its collections.
///
/// Valid as long as the store is open, in every transaction, whether or not anything was written
/// to the database yet. One that [`Store::find_database`](crate::Store::find_database) or a transaction
/// has given is valid until the database is dropped: then it reads as empty and cannot be written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DatabaseId(u16);

/// Set in the number of a keyspace of elements.
const ELEMENTS: u16 = 1 << 15;

impl DatabaseId {
    /// A database that is nowhere: it reads as empty and cannot be written to.
    pub const NOWHERE: Self = Self((limits::DATABASE_NUMBERS_MAX - 1) as u16);

    /// What the keys of elements begin with that belong to the database itself and not to one of its collections, and
    /// that say something of their own: the number of no collection, and 0.
    pub const LASTING_ELEMENTS: [u8; CollectionId::LEN + 1] = [0; _];

    /// As [`LASTING_ELEMENTS`](Self::LASTING_ELEMENTS), for what can be made of the records again, such as an index:
    /// whoever saves what is left of a damaged store leaves it out, for it may lack something.
    pub const DERIVED_ELEMENTS: [u8; CollectionId::LEN + 1] = [0, 0, 0, 0, 0, 0, 0, 0, 1];

    /// The id that stands at `index` in the engine's table of databases.
    ///
    /// # Panics
    /// If `index` is not below [`limits::DATABASE_NUMBERS_MAX`], which engines keep.
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

    /// The id that [`index`](Self::index) gave as a number; `None` for any other number.
    #[must_use]
    pub fn from_number(number: usize) -> Option<Self> {
        (number < limits::DATABASE_NUMBERS_MAX + limits::MOUNTS_MAX).then_some(Self(number as u16))
    }

    /// The place in the engine's table of databases. Those of mounted databases come after those
    /// that any engine uses.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0 & !ELEMENTS)
    }

    /// The keyspace that holds the elements of the database's hashes, lists, sets, sorted sets and
    /// streams, as records of bytes. It is read and written like a database of its own, but
    /// has no name and is in no listing. The keys of a collection's elements begin with
    /// [`CollectionId::prefix`], have at least one byte more, and may be
    /// [`limits::ELEMENT_HEAD_LEN_MAX`] bytes longer than other keys. They are removed, in time,
    /// when nothing is left of the collection's record.
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

    /// The number of the keyspace in the files of a store.
    #[inline]
    pub(crate) fn to_stored(self) -> u16 {
        self.0
    }

    /// The keyspace of a number that a file has; `None` if no keyspace of a store has it.
    pub(crate) fn from_stored(number: u16) -> Option<Self> {
        let id = Self(number);
        (id.index() < Self::NOWHERE.index()).then_some(id)
    }

    /// Refuses a key that no record of the keyspace can have, where other keys have up to
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

    /// Whether an element with that key is one of the database's own.
    pub(crate) fn has_own_element(key: &[u8]) -> bool {
        key.starts_with(&Self::LASTING_ELEMENTS) || key.starts_with(&Self::DERIVED_ELEMENTS)
    }

    /// Which one of the mounted databases this is; `None` for one of the store's own.
    #[inline]
    #[must_use]
    pub fn mount(self) -> Option<usize> {
        self.index().checked_sub(limits::DATABASE_NUMBERS_MAX)
    }
}

/// What one database holds, known without counting.
///
/// A cache does not count keys apart from values: all its records, with their headers, are in
/// `value_bytes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatabaseStatistics {
    /// Records, with those that have expired and were not removed yet.
    pub records: u64,
    /// Bytes of their keys.
    pub key_bytes: u64,
    /// Bytes of their values, without headers.
    pub value_bytes: u64,
}

/// Differences are numbers like others: one below zero wraps around, and comes back with what it is
/// added to.
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
}

/// What a store occupies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Memory of what was written since the last checkpoint: the memtable and, during a
    /// checkpoint, the frozen one. Each may exceed its limit by one group of transactions.
    pub memtable_bytes: u64,
    /// Memory of memtables whose checkpoint is done, and which a snapshot still sees. A snapshot
    /// holds at most two, however long it lives, until it is renewed or released.
    pub held_bytes: u64,
    /// Files of the log.
    pub log_bytes: u64,
    /// The file of the base. It does not shrink, and what a long snapshot sees is not used again.
    pub base_bytes: u64,
    /// Files of the runs, which are to be merged into the base.
    pub runs_bytes: u64,
}

/// The name that [`Store::internal_database`](crate::Store::internal_database) has in the catalog. Nobody else
/// can have it: it is no name that [`check_database_name`] takes.
pub(crate) const INTERNAL_NAME: &str = ".internal";

/// A name is 1 to 64 of `a-z A-Z 0-9 _ - .`, and starts with a letter, a digit or `_`: it stands
/// in URLs, in file names and as a field in Lua without quoting.
///
/// # Errors
/// [`DatabaseError::BadName`] for any other.
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
