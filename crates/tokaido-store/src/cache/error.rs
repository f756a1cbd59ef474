//! What the cache refuses.

use crate::{IncrementError, ReadError, WriteError};

use super::options::SHARD_BYTES_MIN;

/// A cache could not be made as asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// The number of shards cannot be used.
    #[error("a cache has 1, 2, 4, 8 ... {max} shards, not {shards}; 0 lets the cache choose", max = super::options::SHARDS_MAX)]
    Shards {
        /// The number that was given.
        shards: usize,
    },
    /// There is too little memory for a cache.
    #[error("a cache needs {min} bytes for each shard, and {bytes_max} bytes are too few for {shards}; raise `bytes_max` or lower `shards`", min = SHARD_BYTES_MIN)]
    TooSmall {
        /// The bytes that were given.
        bytes_max: usize,
        /// The number of shards.
        shards: usize,
    },
    /// There is more memory than a shard can address.
    #[error("a shard holds at most {max} bytes, and {bytes_max} bytes are too many for {shards}; raise `shards` or lower `bytes_max`", max = super::options::SHARD_BYTES_MAX)]
    TooLarge {
        /// The bytes that were given.
        bytes_max: usize,
        /// The number of shards.
        shards: usize,
    },
}

/// The cache refused an operation. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// The key has no bytes, or too many.
    #[error("a key has 1 to {max} bytes, this one has {len}")]
    KeyLength {
        /// The length of the key that was given.
        len: usize,
        /// The length that it may have.
        max: usize,
    },
    /// The value is longer than a value may be, in whatever engine.
    #[error("a value has at most {max} bytes, this one has {len}; split it over several keys")]
    ValueLength {
        /// The length of the value that was given.
        len: usize,
        /// The length that it may have.
        max: usize,
    },
    /// The record is longer than this cache takes.
    #[error(
        "this cache takes records of at most {max} bytes, this one has {len}; raise its `bytes_max`, lower its `shards`, or split the value over several keys"
    )]
    RecordTooLarge {
        /// The bytes the record would take, with its header.
        len: usize,
        /// The bytes a record may take: half of a shard.
        max: usize,
    },
}

impl From<CacheError> for WriteError {
    fn from(error: CacheError) -> Self {
        match error {
            CacheError::KeyLength { len, max } => ReadError::KeyLength { len, max }.into(),
            CacheError::ValueLength { len, max } => Self::ValueLength { len, max },
            CacheError::RecordTooLarge { len, max } => Self::RecordTooLarge { len, max },
        }
    }
}

impl From<CacheError> for IncrementError {
    fn from(error: CacheError) -> Self {
        Self::Write(error.into())
    }
}
