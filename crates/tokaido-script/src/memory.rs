//! The memory limit of a VM.
//!
//! If an allocator says no, LuaJIT raises an error wherever it happens to allocate, and some of
//! those paths are rarely exercised (a function freed with another size than it was made with, a
//! half-recorded trace). So a small block is granted although the limit is passed, and a hook is
//! armed instead. The hook runs at the next instruction or loop, compiled or not, where raising is
//! ordinary. It first collects garbage, and if that makes room the script goes on. Only a large
//! block is refused at once, and any block at mlua's own limit, the wall, some way beyond.
//!
//! A refusal is remembered, so a script that catches the error cannot hide it.

use std::ffi::c_void;

use mlua::ffi;

/// Blocks of this size or more are refused if they would pass the limit.
const LARGE_BLOCK: usize = 1 << 20;

/// Blocks of this size or more are never granted. Slightly below the most that LuaJIT asks for.
const NEVER_GRANTED_LEN: usize = 0x7ff0_0000;

/// A collection begins when the heap reaches this percentage of what the last one left. LuaJIT's
/// default is 200. The sweep touches garbage, and so does every new string on its way through the
/// string table, so the garbage of a small heap is kept small enough to stay in the processor's
/// cache. That of a large heap does not fit there in any case.
const PAUSE_SMALL: i32 = 150;
const PAUSE_LARGE: i32 = 300;

/// A heap is small up to this many bytes, garbage included.
const SMALL_HEAP_MAX: usize = 8 << 20;

/// mlua's own limit for a VM with this limit.
pub(crate) fn wall_bytes(limit_bytes: usize) -> usize {
    limit_bytes.saturating_add(limit_bytes / 4).saturating_add(8 << 20)
}

/// Wraps the allocator of one VM.
pub(crate) struct MemoryGuard {
    inner: ffi::lua_Alloc,
    inner_data: *mut c_void,
    state: *mut ffi::lua_State,
    used_bytes: usize,
    limit_bytes: usize,
    /// When collections begin; see [`PAUSE_SMALL`].
    pause: i32,
    /// The hook is in place.
    armed: bool,
    /// Memory was refused in this call.
    refused: bool,
}

impl MemoryGuard {
    /// Installs a guard around the allocator of `state`, the main state.
    ///
    /// # Safety
    /// `state` must be valid, and [`remove`](Self::remove) called before it is closed or the
    /// guard dropped.
    pub(crate) unsafe fn install(state: *mut ffi::lua_State, limit_bytes: usize) -> Box<Self> {
        let mut inner_data = std::ptr::null_mut();
        // SAFETY: the guard is boxed, so that its address does not change.
        unsafe {
            let inner = ffi::lua_getallocf(state, &raw mut inner_data);
            let used_bytes = (ffi::lua_gc(state, ffi::LUA_GCCOUNT, 0) as usize) << 10;
            let mut guard = Box::new(Self {
                inner,
                inner_data,
                state,
                used_bytes,
                limit_bytes,
                pause: PAUSE_SMALL,
                armed: false,
                refused: false,
            });
            let data: *mut Self = &raw mut *guard;
            ffi::lua_setallocf(state, allocate, data.cast());
            ffi::lua_gc(state, ffi::LUA_GCSETPAUSE, guard.pause);
            guard
        }
    }

    /// After a call: removes the hook, sets when the next collection begins, and tells whether
    /// memory was refused in the call.
    pub(crate) fn end_call(&mut self) -> bool {
        if self.armed {
            self.armed = false;
            // SAFETY: the VM is alive while its guard is in place, and no Lua code runs.
            unsafe { ffi::lua_sethook(self.state, None, 0, 0) };
        }
        let pause = if self.used_bytes <= SMALL_HEAP_MAX { PAUSE_SMALL } else { PAUSE_LARGE };
        if pause != self.pause {
            self.pause = pause;
            // SAFETY: as above.
            unsafe { ffi::lua_gc(self.state, ffi::LUA_GCSETPAUSE, pause) };
        }
        std::mem::take(&mut self.refused)
    }

    /// Restores the original allocator.
    ///
    /// # Safety
    /// The VM must not have been closed.
    pub(crate) unsafe fn remove(&self) {
        // SAFETY: the caller's promise.
        unsafe { ffi::lua_setallocf(self.state, self.inner, self.inner_data) };
    }

    /// Whether there is room again, with some to spare, so that a script at the limit does not
    /// collect at every step.
    fn has_room(&self) -> bool {
        self.used_bytes <= self.limit_bytes / 8 * 7
    }
}

/// Raises an error that `pcall` and `xpcall` catch, but that no `xpcall` handler is called with.
/// LuaJIT runs no hook within a hook, so a handler started by a hook's error could loop forever.
/// Of the errors that C may raise, only a refused allocation bypasses handlers; hence the request
/// for a block that is never granted.
///
/// # Safety
/// To be called from a hook, or where the API may raise, with nothing to drop below it.
pub(crate) unsafe fn raise_past_handlers(state: *mut ffi::lua_State) {
    // SAFETY: the caller's promise; the allocator is ours while Lua runs.
    unsafe { ffi::lua_newuserdata(state, NEVER_GRANTED_LEN) };
}

unsafe extern "C" fn allocate(
    data: *mut c_void,
    block: *mut c_void,
    old_size: usize,
    new_size: usize,
) -> *mut c_void {
    // SAFETY: `data` is the guard, which lives until it is removed; the rest is passed through
    // unchanged.
    unsafe {
        if new_size >= NEVER_GRANTED_LEN {
            return std::ptr::null_mut();
        }
        let guard = &mut *data.cast::<MemoryGuard>();
        let used_bytes = (guard.used_bytes + new_size).saturating_sub(old_size);
        let is_over = new_size > old_size && used_bytes > guard.limit_bytes;
        if is_over && new_size >= LARGE_BLOCK {
            guard.refused = true;
            return std::ptr::null_mut();
        }
        let allocated = (guard.inner)(guard.inner_data, block, old_size, new_size);
        if allocated.is_null() && new_size > 0 {
            guard.refused = true;
            return allocated;
        }
        guard.used_bytes = used_bytes;
        if is_over && !guard.armed {
            guard.armed = true;
            // LuaJIT allows this at any moment, even in a signal handler.
            ffi::lua_sethook(guard.state, Some(on_hook), ffi::LUA_MASKCOUNT, 1);
        }
        allocated
    }
}

/// Makes room or raises; once it has raised, it raises at every instruction until the call ends.
unsafe extern "C-unwind" fn on_hook(state: *mut ffi::lua_State, _: *mut ffi::lua_Debug) {
    // SAFETY: LuaJIT calls hooks where an error may be raised and the API may be used. The guard is
    // the allocator's data while it is in place. Collecting reaches it, too, so no reference to it
    // is held meanwhile.
    unsafe {
        let mut data = std::ptr::null_mut();
        ffi::lua_getallocf(state, &raw mut data);
        let guard = data.cast::<MemoryGuard>();
        if !(*guard).refused {
            ffi::lua_gc(state, ffi::LUA_GCCOLLECT, 0);
            if (*guard).has_room() {
                (*guard).armed = false;
                ffi::lua_sethook(state, None, 0, 0);
                return;
            }
            (*guard).refused = true;
        }
        raise_past_handlers(state);
    }
}
