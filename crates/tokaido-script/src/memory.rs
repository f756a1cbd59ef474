//! Notes when a VM was refused memory, even if the script caught the error.
//!
//! mlua's allocator keeps the limit but tells nobody. This one stands before it, and is taken out
//! again before mlua closes the VM, since mlua knows its own by address.

use std::ffi::c_void;

use mlua::ffi;

/// Stands before the allocator of one VM.
pub(crate) struct MemoryGuard {
    inner: ffi::lua_Alloc,
    inner_data: *mut c_void,
    refused: bool,
}

impl MemoryGuard {
    /// Puts a guard before the allocator of `state`.
    ///
    /// # Safety
    /// `state` must be valid, and [`remove`](Self::remove) called before it is closed or the
    /// guard dropped.
    pub(crate) unsafe fn install(state: *mut ffi::lua_State) -> Box<Self> {
        let mut inner_data = std::ptr::null_mut();
        // SAFETY: the guard is boxed, so that its address stays.
        unsafe {
            let inner = ffi::lua_getallocf(state, &raw mut inner_data);
            let mut guard = Box::new(Self { inner, inner_data, refused: false });
            let data: *mut Self = &raw mut *guard;
            ffi::lua_setallocf(state, allocate, data.cast());
            guard
        }
    }

    /// Whether memory was refused since the last time this was asked.
    pub(crate) fn take_refused(&mut self) -> bool {
        std::mem::take(&mut self.refused)
    }

    /// Puts the first allocator back.
    ///
    /// # Safety
    /// `state` must be the one that the guard was installed in.
    pub(crate) unsafe fn remove(&self, state: *mut ffi::lua_State) {
        // SAFETY: the caller's promise.
        unsafe { ffi::lua_setallocf(state, self.inner, self.inner_data) };
    }
}

unsafe extern "C" fn allocate(
    data: *mut c_void,
    block: *mut c_void,
    old_size: usize,
    new_size: usize,
) -> *mut c_void {
    // SAFETY: `data` is the guard, which lives until it is removed; the rest goes through as it
    // came.
    unsafe {
        let guard = data.cast::<MemoryGuard>();
        let allocated = ((*guard).inner)((*guard).inner_data, block, old_size, new_size);
        if allocated.is_null() && new_size > 0 {
            (*guard).refused = true;
        }
        allocated
    }
}
