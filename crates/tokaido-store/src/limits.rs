//! The limits of every engine, so that a procedure that runs on one runs on all.

/// Maximum length of a key, in bytes. A key has at least one byte.
pub const KEY_LEN_MAX: usize = 4096;

/// Maximum number of bytes by which the key of a collection's element is longer than other keys: the
/// number of the collection, and what orders elements before their own names, such as a score.
pub const ELEMENT_HEAD_LEN_MAX: usize = 32;

/// Maximum length of a field of a hash, or a member of a set or a sorted set, in bytes: it stands in the key of its element.
pub const FIELD_LEN_MAX: usize = 4096;

/// Maximum number of collections that one transaction makes.
pub const TRANSACTION_COLLECTIONS_MAX: usize = 1 << 16;

/// Maximum length of a value, in bytes (64 MiB).
pub const VALUE_LEN_MAX: usize = 64 << 20;

/// Maximum number of writes (puts, deletes) that one transaction can be allowed. With that many, and
/// [`TRANSACTION_BYTES_MAX`] bytes, its length still fits into the 32 bits it has in the log.
pub const TRANSACTION_WRITES_MAX: usize = 10_000_000;

/// Maximum number of records that one [`reclaim`](crate::WriteTransaction::reclaim) removes, whatever a
/// transaction is allowed: with the longest keys, too, that fits into the log.
pub const RECLAIM_MAX: usize = 100_000;

/// Maximum size in bytes of the keys and values one transaction can be allowed to write (1 GiB).
pub const TRANSACTION_BYTES_MAX: usize = 1 << 30;

/// Maximum number of named databases that one store can be allowed.
pub const DATABASES_MAX: usize = 8192;

/// How many numbers there are for them. A number is used again after all others.
pub const DATABASE_NUMBERS_MAX: usize = 16384;

/// One is that of no database, and with those of mounts they fit into the 15 bits that they have in the
/// files.
const _: () =
    assert!(DATABASES_MAX < DATABASE_NUMBERS_MAX && DATABASE_NUMBERS_MAX + MOUNTS_MAX <= 1 << 15);

/// Maximum number of databases mounted beside those of a store: caches and constant databases.
pub const MOUNTS_MAX: usize = 64;

/// Maximum length of the name of a database, in bytes.
pub const DATABASE_NAME_LEN_MAX: usize = 64;

/// How often [`crate::transact`] runs a body that ends in a conflict before it gives up.
pub const CONFLICT_ATTEMPTS_MAX: u32 = 10;
