//! The limits of every engine, so that a procedure that runs on one runs on all.

/// Maximum length of a key, in bytes. A key has at least one byte.
pub const KEY_LEN_MAX: usize = 4096;

/// Maximum number of extra bytes in the key of a collection's element, compared with other keys: the
/// number of the collection, and whatever orders the elements before their own names, such as a score.
pub const ELEMENT_HEAD_LEN_MAX: usize = 32;

/// Maximum length of a field of a hash, or a member of a set or a sorted set, in bytes: it is part of the key of its element.
pub const FIELD_LEN_MAX: usize = 4096;

/// Maximum number of collections that one transaction creates.
pub const TRANSACTION_COLLECTIONS_MAX: usize = 1 << 16;

/// Maximum length of a value, in bytes (64 MiB).
pub const VALUE_LEN_MAX: usize = 64 << 20;

/// Maximum number of writes (puts, deletes) that can be configured for one transaction. With that many
/// writes and [`TRANSACTION_BYTES_MAX`] bytes, its length still fits into the 32 bits it has in the log.
pub const TRANSACTION_WRITES_MAX: usize = 10_000_000;

/// Maximum number of records that one [`crate::WriteTransaction::reclaim`] removes, whatever limit is
/// configured for transactions: that fits into the log even with the longest keys.
pub const RECLAIM_MAX: usize = 100_000;

/// Maximum size in bytes of the keys and values that can be configured for one transaction (1 GiB).
pub const TRANSACTION_BYTES_MAX: usize = 1 << 30;

/// Maximum number of named databases that can be configured for one store.
pub const DATABASES_MAX: usize = 8192;

/// How many numbers there are for the databases of a store. A number is reused only after all others.
pub const DATABASE_NUMBERS_MAX: usize = 16384;

/// One is that of no database, and with those of mounts they fit into the 15 bits that they have in the
/// files.
const _: () =
    assert!(DATABASES_MAX < DATABASE_NUMBERS_MAX && DATABASE_NUMBERS_MAX + MOUNTS_MAX <= 1 << 15);

/// Maximum number of databases mounted in addition to those of a store: caches and constant databases.
pub const MOUNTS_MAX: usize = 64;

/// Maximum length of the name of a database, in bytes.
pub const DATABASE_NAME_LEN_MAX: usize = 64;

/// How many times [`crate::transact`] runs a body that ends in a conflict before it gives up.
pub const CONFLICT_ATTEMPTS_MAX: u32 = 10;
