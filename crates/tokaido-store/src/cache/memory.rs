//! What an allocation really costs.

/// From this size on, glibc's malloc takes whole pages from the system.
const PAGED_MIN: usize = 128 << 10;
const PAGE: usize = 4 << 10;
/// The allocator's own word before a block, and the granularity of its blocks.
const OVERHEAD: usize = 16;

/// Bytes that an allocation of `len` bytes costs, never an underestimate. By glibc's rules;
/// mimalloc and jemalloc take at most an eighth more for the sizes that the cache allocates.
pub(super) const fn allocated(len: usize) -> usize {
    let grain = if len < PAGED_MIN { OVERHEAD } else { PAGE };
    (len + OVERHEAD).next_multiple_of(grain)
}
