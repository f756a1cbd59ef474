//! `KEYS` and `ARGV`.

use std::ffi::{CStr, c_int};

use mlua::ffi;

use crate::{bridge::context::Texts, convert};

/// Sets a field of the table on top of the stack to a list of texts. May raise.
///
/// # Safety
/// `state` must be valid and run under a protected call, with room for three values, and whoever
/// holds the texts must still do so.
pub(crate) unsafe fn set_texts(state: *mut ffi::lua_State, name: &CStr, texts: Texts) {
    // SAFETY: the caller's promise.
    unsafe {
        let texts = texts.get();
        ffi::lua_createtable(state, c_int::try_from(texts.len()).unwrap_or(c_int::MAX), 0);
        for (place, text) in (1..).zip(texts) {
            convert::push_bytes(state, text);
            ffi::lua_rawseti(state, -2, place);
        }
        ffi::lua_setfield(state, -2, name.as_ptr());
    }
}
