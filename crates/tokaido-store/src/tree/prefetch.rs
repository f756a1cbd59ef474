//! Fetching memory before it is needed.

/// Begins to load what `pointer` points to. A hint that reads nothing: any pointer will do.
#[inline]
pub(super) fn prefetch<T>(pointer: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the instruction does not fault, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(pointer.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = pointer;
}

/// Bytes that are loaded into the cache at once.
pub(super) const LINE_LEN: usize = 64;

/// Begins to load all of the `len` bytes around `inside`, a block that is aligned to its length.
pub(super) fn prefetch_block(inside: *const u8, len: usize) {
    let start = inside.wrapping_sub(inside.addr() % len);
    for line in (0..len).step_by(LINE_LEN) {
        prefetch(start.wrapping_add(line));
    }
}
