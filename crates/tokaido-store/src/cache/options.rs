//! The options of a cache, and how its memory is divided among the shards.

use std::sync::Arc;

use crate::{Clock, SystemClock, limits};

use super::{OptionsError, record, segment};

/// Maximum number of shards. Their number is a power of two.
pub(super) const SHARDS_MAX: usize = 256;
/// Minimum memory of a shard, in bytes: sixteen of the smallest segments.
pub(super) const SHARD_BYTES_MIN: usize = 64 << 10;
/// Maximum memory of a shard, in bytes: with the shortest records that have a segment of their own,
/// it has as many segments as a location can address.
pub(super) const SHARD_BYTES_MAX: usize = 4 << 30;
const _: () = assert!(SHARD_BYTES_MAX / segment::OWN_LEN_MIN <= segment::SEGMENTS_MAX);

/// By default, shards get at least this many bytes (4 MiB), so that half a shard, which is the
/// longest record, holds memcached's longest value, 1 MiB,
const SHARD_BYTES_WANTED: usize = 4 << 20;
/// and there are at most this many: enough that threads rarely contend, few enough that the part of
/// each shard that cannot be filled stays small.
const SHARDS_WANTED_MAX: usize = 64;

/// A shard is made of this many segments, so that the window, a twentieth of the shard, is
/// several of them.
const SEGMENTS_PER_SHARD: usize = 128;
const SEGMENT_LEN_MIN: usize = 4 << 10;

/// How to make a cache.
#[derive(Clone)]
pub struct Options {
    /// Maximum number of bytes that the cache takes, including records and index.
    pub bytes_max: usize,
    /// How many parts, each with its own lock, the cache has: a power of two, at most 256; 0 lets
    /// the cache choose. A record may take half a shard.
    pub shards: usize,
    /// Maximum length of a key that is written, in bytes; at most [`limits::KEY_LEN_MAX`].
    pub key_len_max: usize,
    /// Maximum length of a value that is written, in bytes; at most [`limits::VALUE_LEN_MAX`].
    pub value_len_max: usize,
    /// The clock that expiry is measured by. It is read under a shard's lock, so it must not block.
    pub clock: Arc<dyn Clock>,
}

impl Default for Options {
    /// 64 MiB, as in memcached.
    fn default() -> Self {
        Self {
            bytes_max: 64 << 20,
            shards: 0,
            key_len_max: limits::KEY_LEN_MAX,
            value_len_max: limits::VALUE_LEN_MAX,
            clock: Arc::new(SystemClock),
        }
    }
}

/// The dimensions of the shards, derived from the options.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) shards: usize,
    pub(super) shard_bytes: usize,
    pub(super) segment_len: usize,
    /// Maximum length of a record with its header, in bytes.
    pub(super) record_len_max: usize,
}

impl Options {
    pub(super) fn layout(&self) -> Result<Layout, OptionsError> {
        let bytes_max = self.bytes_max;
        let shards = match self.shards {
            0 => wanted_shards(bytes_max),
            n if n.is_power_of_two() && n <= SHARDS_MAX => n,
            shards => return Err(OptionsError::Shards { shards }),
        };
        let shard_bytes = bytes_max / shards;
        if shard_bytes < SHARD_BYTES_MIN {
            return Err(OptionsError::TooSmall { bytes_max, shards });
        }
        if shard_bytes > SHARD_BYTES_MAX {
            return Err(OptionsError::TooLarge { bytes_max, shards });
        }
        let segment_len = floor_power_of_two(shard_bytes / SEGMENTS_PER_SHARD)
            .clamp(SEGMENT_LEN_MIN, segment::LEN_MAX);
        let record_len_max = record::round(shard_bytes / 2 - segment_len);
        Ok(Layout { shards, shard_bytes, segment_len, record_len_max })
    }
}

fn wanted_shards(bytes_max: usize) -> usize {
    let wanted = floor_power_of_two(bytes_max / SHARD_BYTES_WANTED).min(SHARDS_WANTED_MAX);
    let needed = bytes_max.div_ceil(SHARD_BYTES_MAX).next_power_of_two();
    wanted.max(needed).min(SHARDS_MAX)
}

fn floor_power_of_two(n: usize) -> usize {
    1 << n.max(1).ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(bytes_max: usize, shards: usize) -> Result<Layout, OptionsError> {
        Options { bytes_max, shards, ..Options::default() }.layout()
    }

    #[test]
    fn shards_follow_the_memory() {
        assert_eq!(layout(64 << 10, 0).unwrap().shards, 1);
        assert_eq!(layout(64 << 20, 0).unwrap().shards, 16);
        assert_eq!(layout(1 << 30, 0).unwrap().shards, 64);
        assert_eq!(layout(100 << 30, 0).unwrap().shards, 64);
        assert_eq!(layout(300 << 30, 0).unwrap().shards, 128);
        assert_eq!(layout(1 << 40, 0).unwrap().shards, 256);
        assert_eq!(layout(1 << 20, 4).unwrap().shards, 4);
        assert_eq!(layout(1 << 30, 0).unwrap().segment_len, 64 << 10);
    }

    #[test]
    fn a_value_of_a_mib_fits_unless_the_cache_is_small() {
        for bytes_max in [4 << 20, 5 << 20, 7 << 20, 8 << 20, 64 << 20, 100 << 20, 1 << 40] {
            let layout = layout(bytes_max, 0).unwrap();
            assert!(layout.record_len_max > (1 << 20) + 4096, "{bytes_max}: {layout:?}");
        }
    }

    #[test]
    fn what_cannot_be_made_is_refused() {
        assert_eq!(layout(1 << 20, 3).unwrap_err(), OptionsError::Shards { shards: 3 });
        assert_eq!(layout(1 << 40, 512).unwrap_err(), OptionsError::Shards { shards: 512 });
        assert!(matches!(layout(0, 0), Err(OptionsError::TooSmall { .. })));
        assert!(matches!(layout(1 << 20, 32), Err(OptionsError::TooSmall { .. })));
        assert!(matches!(layout(2 << 40, 0), Err(OptionsError::TooLarge { .. })));
        assert!(matches!(layout(1 << 40, 1), Err(OptionsError::TooLarge { .. })));
    }
}
