//! The limits of tables.

use tokaido_store::{DatabaseId, limits};

/// Maximum number of indexes of one table, including those that are being removed.
pub const INDEXES_MAX: usize = 64;

/// Maximum length of the name of a column that has an index, in bytes.
pub(crate) const INDEX_NAME_LEN_MAX: usize = 1024;

/// Maximum length of the part of a value that an index stores, in bytes: longer values are truncated, and
/// told apart by looking at the row.
pub(crate) const HEAD_LEN_MAX: usize = 1024;

/// Maximum length of the key of a row in a table that has an index, in bytes: the keys of index entries have no room
/// for more.
pub const ROW_KEY_LEN_MAX: usize = 3072;

/// Maximum total size of the index entries of one row, in bytes (32 MiB): for a long text, an index of
/// grams has one entry, which contains the row's key, for each different gram.
pub const ROW_INDEX_BYTES_MAX: usize = 32 << 20;

/// Maximum number of conditions in one query.
pub const CONDITIONS_MAX: usize = 256;

/// Maximum number of queries that one search combines.
pub const QUERIES_MAX: usize = 64;

/// An entry that has all of its parts as long as they may be is a key that an element may have.
const _: () = assert!(
    DatabaseId::DERIVED_ELEMENTS.len() + 1 + 2 + HEAD_LEN_MAX + 1 + ROW_KEY_LEN_MAX
        <= limits::KEY_LEN_MAX + limits::ELEMENT_HEAD_LEN_MAX
);
