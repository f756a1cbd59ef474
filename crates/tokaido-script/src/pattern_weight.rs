//! Estimates the cost of a Lua pattern, so that one that could take long is matched step by step.

use std::ffi::c_int;

use mlua::ffi;

use crate::{convert::string, pattern::set_end};

/// How many items of a pattern match any number of bytes, and how many are optional. A malformed
/// pattern counts up to the error; a match gets no further.
fn weigh(pattern: &[u8]) -> (usize, usize) {
    let (mut repeats, mut optional, mut p) = (0, 0, 0);
    while p < pattern.len() {
        p += match &pattern[p..] {
            [b'%', b'b', ..] => {
                repeats += 1;
                4
            }
            [b'%', b'0'..=b'9', ..] => {
                repeats += 1;
                2
            }
            [b'%', ..] => 2,
            [b'[', ..] => match set_end(pattern, p) {
                Ok(end) => end - p,
                Err(_) => break,
            },
            [b'*' | b'+' | b'-', ..] => {
                repeats += 1;
                1
            }
            [b'?', ..] => {
                optional += 1;
                1
            }
            _ => 1,
        };
    }
    (repeats, optional)
}

/// `weigh_pattern(pattern)` → the number of items that match any number of bytes, and the number
/// of optional items. Takes linear time.
///
/// # Safety
/// To be called from Lua with a string.
pub(crate) unsafe extern "C-unwind" fn lua_weigh(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: `lua/patterns.lua` passes a string, which stays on the stack; a C function has room
    // for 20 values.
    unsafe {
        let (repeats, optional) = weigh(string(state, 1));
        ffi::lua_pushnumber(state, repeats as f64);
        ffi::lua_pushnumber(state, optional as f64);
        2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_backtracks_is_weighed() {
        for (pattern, repeats, optional) in [
            ("", 0, 0),
            ("abc", 0, 0),
            ("^(%w+)%s*=%s*(.-)$", 4, 0),
            ("https?://[^/?*+-]*", 1, 1),
            ("[]*+]+%[*", 2, 0),
            ("[%]*]?x", 0, 1),
            ("%b()%1%*%%%?", 2, 0),
            ("%b**x", 1, 0),
            ("a*[b*", 1, 0),
            ("%", 0, 0),
            ("%b", 1, 0),
        ] {
            assert_eq!(weigh(pattern.as_bytes()), (repeats, optional), "{pattern}");
        }
    }
}
