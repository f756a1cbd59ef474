//! Fetching memory before it is needed.

/// Begins to load what `pointer` leads to. A hint, which reads nothing: any pointer will do.
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
