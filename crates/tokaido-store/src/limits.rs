//! The limits of every engine, so that a procedure that runs on one runs on all.

/// Longest key, in bytes. A key has at least one byte.
pub const KEY_LEN_MAX: usize = 4096;

/// Longest value, in bytes (64 MiB).
pub const VALUE_LEN_MAX: usize = 64 << 20;

/// Most writes (puts, deletes) that one transaction can be allowed. With so many, and so many
/// bytes, it still has a length of 32 bits in the log.
pub const TRANSACTION_WRITES_MAX: usize = 10_000_000;

/// Most bytes of keys and values that one transaction can be allowed to write (1 GiB).
pub const TRANSACTION_BYTES_MAX: usize = 1 << 30;

/// Most named databases in one store.
pub const DATABASES_MAX: usize = 256;

/// Most databases that are mounted beside those of a store: caches and constant databases.
pub const MOUNTS_MAX: usize = 64;

/// Longest name of a database, in bytes.
pub const DATABASE_NAME_LEN_MAX: usize = 64;

/// How often [`crate::transact`] runs a body that ends in a conflict before it gives up.
pub const CONFLICT_ATTEMPTS_MAX: u32 = 10;
