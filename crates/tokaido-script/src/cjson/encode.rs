//! `cjson.encode`.

use std::{
    ffi::{c_int, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
};

use mlua::ffi;

use super::DEPTH_MAX;
use crate::{
    bridge::Context,
    convert::{VALUES_PER_LOOK, string},
    json::answer,
    redis::{codecs::Tally, number::put_general},
    watchdog,
};

/// Powers of ten up to this exponent are exact.
const EXACT_DIGITS_MAX: u8 = 15;

/// The settings of a `cjson`, and what marks arrays.
struct Settings {
    /// Whether a sparse array becomes an object instead of an error.
    sparse_converts: bool,
    /// An array is sparse if its length is more than this many times its element count; 0: never.
    sparse_ratio: f64,
    /// No array up to this length is sparse.
    sparse_safe: f64,
    depth_max: usize,
    digits: u8,
    /// Integers below this are written as they are.
    plain_below: f64,
    invalid_numbers: InvalidNumbers,
    empty_tables_are_objects: bool,
    escapes_slashes: bool,
    /// The value in whose place an empty array is written, the metatable of arrays and that of tables that are arrays
    /// even when they are empty. Only their addresses are used.
    empty_array: *const c_void,
    array_meta: *const c_void,
    empty_array_meta: *const c_void,
}

/// How NaN and infinity are handled, which JSON does not have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InvalidNumbers {
    Refused,
    Written,
    Null,
}

/// Writes Lua's values. It allocates nothing in Lua, so nothing raises.
struct Encoder<'o> {
    state: *mut ffi::lua_State,
    settings: Settings,
    out: &'o mut Vec<u8>,
    /// Maximum length of the text.
    len_max: usize,
    tally: Tally,
}

/// `cjson_encode(context, value, sparse_converts, sparse_ratio, sparse_safe, depth_max, digits, invalid_numbers,
/// empty_tables_are_objects, escapes_slashes, empty_array, array_meta, empty_array_meta)` → the text, or nil and a message.
///
/// # Safety
/// To be called from Lua with the VM's context.
pub(crate) unsafe extern "C-unwind" fn lua_encode(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the prelude passes the context, which owns what is pushed, so a raise leaks nothing.
    unsafe {
        let context = &mut *ffi::lua_touserdata(state, 1).cast::<Context>();
        let len_max = context.lua_side.converter.bytes_max;
        let (settings, out) = (Settings::read(state), &mut context.scratch);
        out.clear();
        let mut encoder = Encoder { state, settings, out, len_max, tally: Tally::default() };
        let encoded = catch_unwind(AssertUnwindSafe(|| encoder.put(2, 0)))
            .unwrap_or_else(|_| Err("a codec panicked, which is a fault of tokaido".to_owned()));
        ffi::lua_settop(state, 0);
        answer(state, context, encoded.err())
    }
}

impl Settings {
    /// The arguments after the value.
    ///
    /// # Safety
    /// As [`lua_encode`].
    unsafe fn read(state: *mut ffi::lua_State) -> Self {
        // SAFETY: these accept whatever is there, or is not; a string is asked for only where there is one.
        unsafe {
            let number = |at| ffi::lua_tonumber(state, at);
            let is_on = |at| ffi::lua_toboolean(state, at) != 0;
            let digits = number(7) as u8;
            let invalid = match ffi::lua_type(state, 8) {
                ffi::LUA_TSTRING => string(state, 8),
                _ => b"",
            };
            Self {
                sparse_converts: is_on(3),
                sparse_ratio: number(4),
                sparse_safe: number(5),
                depth_max: (number(6) as usize).min(DEPTH_MAX),
                digits,
                plain_below: 10f64.powi(i32::from(digits.min(EXACT_DIGITS_MAX))),
                invalid_numbers: match invalid {
                    b"on" => InvalidNumbers::Written,
                    b"null" => InvalidNumbers::Null,
                    _ => InvalidNumbers::Refused,
                },
                empty_tables_are_objects: is_on(9),
                escapes_slashes: is_on(10),
                empty_array: ffi::lua_topointer(state, 11),
                array_meta: ffi::lua_topointer(state, 12),
                empty_array_meta: ffi::lua_topointer(state, 13),
            }
        }
    }
}

/// What a table is written as.
enum Shape {
    Array(usize),
    Object,
}

impl Encoder<'_> {
    /// Appends the JSON of the value at `index`, which is absolute, and leaves the stack as it was unless it fails.
    ///
    /// # Safety
    /// As for all of these: the state is valid.
    unsafe fn put(&mut self, index: c_int, depth: usize) -> Result<(), String> {
        self.tally.count(1)?;
        if self.out.len() > self.len_max {
            return Err(format!("Cannot serialise, more than {} bytes", self.len_max));
        }
        let state = self.state;
        // SAFETY: each arm reads what the value is.
        unsafe {
            match ffi::lua_type(state, index) {
                ffi::LUA_TNIL | ffi::LUA_TNONE => self.out.extend_from_slice(b"null"),
                ffi::LUA_TBOOLEAN if ffi::lua_toboolean(state, index) != 0 => {
                    self.out.extend_from_slice(b"true");
                }
                ffi::LUA_TBOOLEAN => self.out.extend_from_slice(b"false"),
                ffi::LUA_TNUMBER => self.put_number(ffi::lua_tonumber(state, index))?,
                ffi::LUA_TSTRING => self.put_string(string(state, index)),
                ffi::LUA_TTABLE => return self.put_table(index, depth + 1),
                ffi::LUA_TLIGHTUSERDATA if ffi::lua_touserdata(state, index).is_null() => {
                    self.out.extend_from_slice(b"null");
                }
                kind => return Err(format!("Cannot serialise {}: type not supported", name(kind))),
            }
        }
        Ok(())
    }

    fn put_number(&mut self, number: f64) -> Result<(), String> {
        let Settings { digits, plain_below, invalid_numbers, .. } = self.settings;
        let is_plain = number.fract() == 0.0 && number.abs() < plain_below;
        if is_plain && (number != 0.0 || number.is_sign_positive()) {
            let mut text = itoa::Buffer::new();
            self.out.extend_from_slice(text.format(number as i64).as_bytes());
            return Ok(());
        }
        match invalid_numbers {
            _ if number.is_finite() => put_general(number, digits, self.out),
            InvalidNumbers::Refused => {
                return Err("Cannot serialise number: must not be NaN or Inf".to_owned());
            }
            InvalidNumbers::Null => self.out.extend_from_slice(b"null"),
            InvalidNumbers::Written if number.is_nan() => self.out.extend_from_slice(b"nan"),
            InvalidNumbers::Written => put_general(number, digits, self.out),
        }
        Ok(())
    }

    fn put_string(&mut self, text: &[u8]) {
        self.out.push(b'"');
        let mut rest = text;
        while let Some(len) = rest.iter().position(|&byte| self.is_escaped(byte)) {
            self.out.extend_from_slice(&rest[..len]);
            self.put_escape(rest[len]);
            rest = &rest[len + 1..];
        }
        self.out.extend_from_slice(rest);
        self.out.push(b'"');
    }

    fn is_escaped(&self, byte: u8) -> bool {
        match byte {
            0..=0x1f | b'"' | b'\\' | 0x7f => true,
            b'/' => self.settings.escapes_slashes,
            _ => false,
        }
    }

    fn put_escape(&mut self, byte: u8) {
        let escape: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'/' => b"\\/",
            0x08 => b"\\b",
            0x0c => b"\\f",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            _ => {
                self.out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
                return;
            }
        };
        self.out.extend_from_slice(escape);
    }

    unsafe fn put_table(&mut self, index: c_int, depth: usize) -> Result<(), String> {
        let state = self.state;
        // SAFETY: room is made for a key, a value and a metatable.
        unsafe {
            if depth > self.settings.depth_max || ffi::lua_checkstack(state, 4) == 0 {
                return Err(format!("Cannot serialise, excessive nesting ({depth})"));
            }
            match self.shape(index)? {
                Shape::Array(len) => self.put_array(index, len, depth),
                Shape::Object => self.put_object(index, depth),
            }
        }
    }

    unsafe fn shape(&self, index: c_int) -> Result<Shape, String> {
        let state = self.state;
        // SAFETY: as in `put_table`.
        unsafe {
            let is = |marker: *const c_void, at| {
                !marker.is_null() && ffi::lua_topointer(state, at) == marker
            };
            if is(self.settings.empty_array, index) {
                return Ok(Shape::Array(0));
            }
            let mut is_array_when_empty = !self.settings.empty_tables_are_objects;
            if ffi::lua_getmetatable(state, index) != 0 {
                let is_array = is(self.settings.array_meta, -1);
                is_array_when_empty |= is(self.settings.empty_array_meta, -1);
                ffi::lua_pop(state, 1);
                if is_array {
                    return Ok(Shape::Array(ffi::lua_rawlen(state, index)));
                }
            }
            Ok(match self.array_len(index)? {
                Some(0) if !is_array_when_empty => Shape::Object,
                Some(len) => Shape::Array(len),
                None => Shape::Object,
            })
        }
    }

    /// The length of a table whose keys are all integers from 1 up, maybe with holes; else `None`.
    unsafe fn array_len(&self, index: c_int) -> Result<Option<usize>, String> {
        let state = self.state;
        let (mut len, mut count) = (0f64, 0usize);
        // SAFETY: as in `put_table`; `lua_next` is given the keys that it returned.
        unsafe {
            ffi::lua_pushnil(state);
            while ffi::lua_next(state, index) != 0 {
                ffi::lua_pop(state, 1);
                let is_number = ffi::lua_type(state, -1) == ffi::LUA_TNUMBER;
                let place = if is_number { ffi::lua_tonumber(state, -1) } else { 0.0 };
                if place < 1.0 || place.fract() != 0.0 {
                    ffi::lua_pop(state, 1);
                    return Ok(None);
                }
                len = len.max(place);
                count += 1;
                if count.is_multiple_of(VALUES_PER_LOOK) && watchdog::is_stopping() {
                    return Err("Cannot serialise, the time limit is over".to_owned());
                }
            }
        }
        let Settings { sparse_ratio, sparse_safe, sparse_converts, .. } = self.settings;
        if sparse_ratio > 0.0 && len > count as f64 * sparse_ratio && len > sparse_safe {
            if sparse_converts {
                return Ok(None);
            }
            return Err("Cannot serialise table: excessively sparse array".to_owned());
        }
        Ok(Some(len as usize))
    }

    unsafe fn put_array(&mut self, index: c_int, len: usize, depth: usize) -> Result<(), String> {
        self.out.push(b'[');
        for place in 1..=len {
            if place > 1 {
                self.out.push(b',');
            }
            // SAFETY: as in `put_table`.
            unsafe {
                ffi::lua_rawgeti(self.state, index, place as ffi::lua_Integer);
                self.put(ffi::lua_gettop(self.state), depth)?;
                ffi::lua_pop(self.state, 1);
            }
        }
        self.out.push(b']');
        Ok(())
    }

    unsafe fn put_object(&mut self, index: c_int, depth: usize) -> Result<(), String> {
        let state = self.state;
        self.out.push(b'{');
        let mut is_first = true;
        // SAFETY: as in `array_len`.
        unsafe {
            ffi::lua_pushnil(state);
            while ffi::lua_next(state, index) != 0 {
                if !std::mem::take(&mut is_first) {
                    self.out.push(b',');
                }
                let top = ffi::lua_gettop(state);
                self.put_key(top - 1)?;
                self.put(top, depth)?;
                ffi::lua_pop(state, 1);
            }
        }
        self.out.push(b'}');
        Ok(())
    }

    /// Appends a key and its colon.
    unsafe fn put_key(&mut self, index: c_int) -> Result<(), String> {
        let state = self.state;
        // SAFETY: each arm reads what the key is, which converts nothing.
        unsafe {
            match ffi::lua_type(state, index) {
                ffi::LUA_TSTRING => self.put_string(string(state, index)),
                ffi::LUA_TNUMBER => {
                    self.out.push(b'"');
                    self.put_number(ffi::lua_tonumber(state, index))?;
                    self.out.push(b'"');
                }
                kind => {
                    let kind = name(kind);
                    return Err(format!(
                        "Cannot serialise {kind}: table key must be a number or string"
                    ));
                }
            }
        }
        self.out.push(b':');
        Ok(())
    }
}

/// Lua's name for a type that JSON does not have.
fn name(kind: c_int) -> &'static str {
    match kind {
        ffi::LUA_TBOOLEAN => "boolean",
        ffi::LUA_TTABLE => "table",
        ffi::LUA_TFUNCTION => "function",
        ffi::LUA_TTHREAD => "thread",
        ffi::LUA_TCDATA => "cdata",
        _ => "userdata",
    }
}
