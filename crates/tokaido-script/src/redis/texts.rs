//! Keys and arguments as Lua gets them: `KEYS` and `ARGV` of scripts, the arguments of functions.

use std::ffi::{CStr, c_int};

use mlua::ffi;

use crate::{bridge::texts::Texts, convert};

/// Sets a field of the table on top of the stack to a list of texts. May raise.
///
/// # Safety
/// As [`push_texts`], with room for one more value.
pub(crate) unsafe fn set_texts(state: *mut ffi::lua_State, name: &CStr, texts: Texts) {
    // SAFETY: the caller's promise.
    unsafe {
        push_texts(state, texts);
        ffi::lua_setfield(state, -2, name.as_ptr());
    }
}

/// Pushes a list of texts. May raise.
///
/// # Safety
/// `state` must be valid and run under a protected call, with room for two values, and the holder of
/// the texts must still hold them.
pub(crate) unsafe fn push_texts(state: *mut ffi::lua_State, texts: Texts) {
    // SAFETY: the caller's promise.
    unsafe {
        let texts = texts.get();
        ffi::lua_createtable(state, c_int::try_from(texts.len()).unwrap_or(c_int::MAX), 0);
        for (place, text) in (1..).zip(texts) {
            convert::push_bytes(state, text);
            ffi::lua_rawseti(state, -2, place);
        }
    }
}
