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

    /// The place in the engine's table of databases.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What one database holds, known without counting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatabaseStatistics {
    /// Records, with those that have expired and were not removed yet.
    pub records: u64,
    /// Bytes of their keys.
    pub key_bytes: u64,
    /// Bytes of their values, without headers.
    pub value_bytes: u64,
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
