//! Errors when making a cache.

use super::options::SHARD_BYTES_MIN;

/// A cache could not be made with the given options.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// The number of shards is not allowed.
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
