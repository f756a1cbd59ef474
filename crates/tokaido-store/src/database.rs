//! Named databases.

use crate::{error::DatabaseError, limits};

/// A named database of one store, as [`crate::Store::database`] registered it.
///
/// Valid as long as the store is open, in every transaction, whether or not anything was written
/// to the database yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DatabaseId(u16);

impl DatabaseId {
    /// The id that stands at `index` in the engine's table of databases.
    ///
    /// # Panics
    /// If `index` is not below [`limits::DATABASES_MAX`], which engines keep.
    #[must_use]
    pub fn from_index(index: usize) -> Self {
        assert!(index < limits::DATABASES_MAX, "database index {index} is over the limit");
        Self(index as u16)
    }

    /// The id of the `slot`th database that is [mounted](crate::composite) beside the store's own.
    ///
    /// # Panics
    /// If `slot` is not below [`limits::MOUNTS_MAX`].
    #[must_use]
    pub fn from_mount(slot: usize) -> Self {
        assert!(slot < limits::MOUNTS_MAX, "mount {slot} is over the limit");
        Self((limits::DATABASES_MAX + slot) as u16)
    }

    /// The id that [`index`](Self::index) gave as a number; `None` for any other number.
    #[must_use]
    pub fn from_number(number: usize) -> Option<Self> {
        (number < limits::DATABASES_MAX + limits::MOUNTS_MAX).then_some(Self(number as u16))
    }

    /// The place in the engine's table of databases. Those of mounted databases come after those
    /// that any engine uses.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// Which one of the mounted databases this is; `None` for one of the store's own.
    #[inline]
    #[must_use]
    pub fn mount(self) -> Option<usize> {
        self.index().checked_sub(limits::DATABASES_MAX)
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
}

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
        for name in ["", "-x", ".x", "a b", "a/b", "日本", "a\0", &"x".repeat(65)] {
            assert!(check_database_name(name).is_err(), "{name}");
        }
    }
}
