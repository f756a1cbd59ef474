//! Converts values between Rust and the Lua stack, with the C API.
//!
//! Pushing allocates in Lua and so may raise: it runs only under a protected call, and on borrowed
//! data, since a raise skips destructors. Reading allocates nothing in Lua, except that a 64-bit
//! integer is split by a protected call into the prelude.

use std::{cmp::Ordering, ffi::c_int, ptr};

use mlua::ffi;

use crate::{
    Value,
    bridge::context::EXACT_MAX,
    limits::{VALUE_COUNT_MAX, VALUE_DEPTH_MAX},
    memory, watchdog,
};

/// How many values a conversion handles between two checks whether to stop.
pub(crate) const VALUES_PER_LOOK: usize = 1 << 12;

/// The error for values that take too long to read.
const TOO_SLOW: &str = "more values than the time limit allows";

/// Registry references to the prelude's parts for conversion, and a limit.
#[derive(Clone, Copy)]
pub(crate) struct Converter {
    /// `function(high, low)` → `int64_t`.
    pub(crate) integer_from_halves: c_int,
    /// `function(int64_t)` → high, low; nothing for other cdata.
    pub(crate) integer_to_halves: c_int,
    /// The metatable of tables that are JSON objects even when they are empty.
    pub(crate) object_meta: c_int,
    /// Maximum total length of the strings in one read. A table that holds one string many times is
    /// small, but the result of reading it is not.
    pub(crate) bytes_max: usize,
    pub(crate) style: Style,
}

/// What a dialect of Lua makes of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Integers are exact over 64 bits, `json.null` stands for nil in tables, and an empty object is
    /// marked as one.
    Exact,
    /// Every number is a Lua number, and tables have neither marks nor a null. `is_lenient`: a value that cannot be
    /// converted becomes nil.
    Plain { is_lenient: bool },
}

/// The error for tables that cannot be read to their end.
const TOO_DEEP: &str = "tables nested too deeply, or in a circle,";

/// What has been read so far.
#[derive(Default)]
struct Taken {
    values: usize,
    bytes: usize,
}

/// Why a Lua value cannot be converted.
#[derive(Debug)]
pub(crate) struct Unconvertible {
    what: &'static str,
    /// The path of fields that leads to it, innermost first.
    path: Vec<String>,
}

impl Unconvertible {
    fn new(what: &'static str) -> Self {
        Self { what, path: Vec::new() }
    }

    /// As [`message`](Self::message), without the path.
    pub(crate) fn short_message(&self, subject: &str) -> String {
        format!("{subject} has {}, which cannot be passed on", self.what)
    }

    fn inside(mut self, field: String) -> Self {
        self.path.push(field);
        self
    }

    /// `subject` names what was converted, as in "the result".
    pub(crate) fn message(&self, subject: &str) -> String {
        let mut place = String::new();
        for field in self.path.iter().rev() {
            place.push_str(field);
        }
        let at = if place.is_empty() { String::new() } else { format!(" at {place}") };
        format!("{subject} has {}{at}, which cannot be passed on", self.what)
    }
}

impl Converter {
    /// Before the prelude has run.
    pub(crate) fn unset() -> Self {
        let none = ffi::LUA_NOREF;
        Self {
            integer_from_halves: none,
            integer_to_halves: none,
            object_meta: none,
            bytes_max: 0,
            style: Style::Exact,
        }
    }

    /// One without what only the native API has.
    pub(crate) fn plain(mut self) -> Self {
        self.style = Style::Plain { is_lenient: false };
        self
    }

    /// As [`plain`](Self::plain), and reads values that cannot be converted as nil.
    pub(crate) fn lenient(mut self) -> Self {
        self.style = Style::Plain { is_lenient: true };
        self
    }

    fn is_lenient(self) -> bool {
        self.style == Style::Plain { is_lenient: true }
    }

    /// Pushes a value. `nested` tells whether it is in a table, where `json.null` takes the place of
    /// nil.
    ///
    /// # Safety
    /// `state` must be valid and run under a protected call.
    pub(crate) unsafe fn push(self, state: *mut ffi::lua_State, value: &Value, nested: bool) {
        // SAFETY: stack space is reserved first; the rest is the caller's promise.
        unsafe {
            ffi::luaL_checkstack(state, 6, c"nested too deeply".as_ptr());
            match value {
                Value::Nil if nested && self.style == Style::Exact => {
                    ffi::lua_pushlightuserdata(state, ptr::null_mut());
                }
                Value::Nil => ffi::lua_pushnil(state),
                Value::Boolean(boolean) => ffi::lua_pushboolean(state, c_int::from(*boolean)),
                Value::Integer(integer) => self.push_integer(state, *integer),
                Value::Number(number) => ffi::lua_pushnumber(state, *number),
                Value::String(bytes) => push_bytes(state, bytes),
                Value::Array(items) => {
                    look(state);
                    ffi::lua_createtable(state, c_len(items.len()), 0);
                    for (i, item) in (1..).zip(items) {
                        if (i as usize).is_multiple_of(VALUES_PER_LOOK) {
                            look(state);
                        }
                        self.push(state, item, true);
                        ffi::lua_rawseti(state, -2, i);
                    }
                }
                Value::Map(entries) => self.push_map(state, entries),
            }
        }
    }

    unsafe fn push_map(self, state: *mut ffi::lua_State, entries: &[(Value, Value)]) {
        // SAFETY: as in `push`, which has made room.
        unsafe {
            look(state);
            ffi::lua_createtable(state, 0, c_len(entries.len()));
            for (i, (key, value)) in entries.iter().enumerate() {
                if i.is_multiple_of(VALUES_PER_LOOK) {
                    look(state);
                }
                self.push(state, key, true);
                self.push(state, value, true);
                ffi::lua_rawset(state, -3);
            }
            if entries.is_empty() && self.style == Style::Exact {
                ffi::lua_rawgeti(state, ffi::LUA_REGISTRYINDEX, self.object_meta.into());
                ffi::lua_setmetatable(state, -2);
            }
        }
    }

    unsafe fn push_integer(self, state: *mut ffi::lua_State, integer: i64) {
        // SAFETY: as in `push`, which has made room.
        unsafe {
            if (-EXACT_MAX..=EXACT_MAX).contains(&integer) || self.style != Style::Exact {
                ffi::lua_pushnumber(state, integer as f64);
                return;
            }
            ffi::lua_rawgeti(state, ffi::LUA_REGISTRYINDEX, self.integer_from_halves.into());
            ffi::lua_pushnumber(state, (integer >> 32) as f64);
            ffi::lua_pushnumber(state, (integer & 0xffff_ffff) as f64);
            ffi::lua_call(state, 2, 1);
        }
    }

    /// Reads the value at `index`, and leaves the stack as it was.
    ///
    /// # Safety
    /// `state` must be valid, and `index` absolute.
    pub(crate) unsafe fn read(
        self,
        state: *mut ffi::lua_State,
        index: c_int,
    ) -> Result<Value, Unconvertible> {
        // SAFETY: the caller's promise.
        unsafe { self.read_nested(state, index, 0, &mut Taken::default()) }
    }

    unsafe fn read_nested(
        self,
        state: *mut ffi::lua_State,
        index: c_int,
        depth: usize,
        taken: &mut Taken,
    ) -> Result<Value, Unconvertible> {
        taken.values += 1;
        if taken.values > VALUE_COUNT_MAX {
            return Err(Unconvertible::new("too many values"));
        }
        if taken.values.is_multiple_of(VALUES_PER_LOOK) && watchdog::is_stopping() {
            return Err(Unconvertible::new(TOO_SLOW));
        }
        // SAFETY: each arm checks the type first; `lua_tolstring` converts nothing, since the value is a
        // string already.
        unsafe {
            match ffi::lua_type(state, index) {
                ffi::LUA_TNIL | ffi::LUA_TNONE => Ok(Value::Nil),
                ffi::LUA_TBOOLEAN => Ok(Value::Boolean(ffi::lua_toboolean(state, index) != 0)),
                ffi::LUA_TNUMBER => Ok(number(ffi::lua_tonumber(state, index))),
                ffi::LUA_TSTRING => {
                    let bytes = string(state, index);
                    taken.bytes += bytes.len();
                    if taken.bytes > self.bytes_max {
                        return Err(Unconvertible::new("more bytes than the memory limit allows"));
                    }
                    Ok(Value::String(bytes.to_vec()))
                }
                ffi::LUA_TTABLE => self.read_table(state, index, depth + 1, taken),
                ffi::LUA_TLIGHTUSERDATA if ffi::lua_touserdata(state, index).is_null() => {
                    Ok(Value::Nil)
                }
                ffi::LUA_TCDATA => self.read_integer(state, index),
                _ if self.is_lenient() => Ok(Value::Nil),
                ffi::LUA_TFUNCTION => Err(Unconvertible::new("a function")),
                ffi::LUA_TTHREAD => Err(Unconvertible::new("a coroutine")),
                _ => Err(Unconvertible::new("a userdata")),
            }
        }
    }

    unsafe fn read_integer(
        self,
        state: *mut ffi::lua_State,
        index: c_int,
    ) -> Result<Value, Unconvertible> {
        // SAFETY: the call is protected, and the stack is restored.
        unsafe {
            let top = ffi::lua_gettop(state);
            if ffi::lua_checkstack(state, 4) == 0 {
                return Err(Unconvertible::new("tables nested too deeply"));
            }
            ffi::lua_rawgeti(state, ffi::LUA_REGISTRYINDEX, self.integer_to_halves.into());
            ffi::lua_pushvalue(state, index);
            let ok = ffi::lua_pcall(state, 1, 2, 0) == ffi::LUA_OK
                && ffi::lua_type(state, -1) == ffi::LUA_TNUMBER;
            let halves = ok.then(|| (ffi::lua_tonumber(state, -2), ffi::lua_tonumber(state, -1)));
            ffi::lua_settop(state, top);
            let (high, low) = halves.ok_or_else(|| Unconvertible::new("a cdata"))?;
            Ok(Value::Integer((high as i64) << 32 | low as i64))
        }
    }

    unsafe fn read_table(
        self,
        state: *mut ffi::lua_State,
        index: c_int,
        depth: usize,
        taken: &mut Taken,
    ) -> Result<Value, Unconvertible> {
        // SAFETY: stack space is reserved; `lua_next` is given the keys that it returned.
        unsafe {
            if depth > VALUE_DEPTH_MAX || ffi::lua_checkstack(state, 6) == 0 {
                return Err(Unconvertible::new(TOO_DEEP));
            }
            // Scanning a table may take long even if it is empty.
            if watchdog::is_stopping() {
                return Err(Unconvertible::new(TOO_SLOW));
            }
            let Some(len) = sequence_len(state, index) else {
                return self.read_map(state, index, depth, taken);
            };
            if len == 0 && self.is_object(state, index) {
                return Ok(Value::Map(Vec::new()));
            }
            let mut items = Vec::with_capacity(len);
            for i in 1..=len {
                ffi::lua_rawgeti(state, index, i as ffi::lua_Integer);
                let item = self.read_nested(state, ffi::lua_gettop(state), depth, taken);
                ffi::lua_pop(state, 1);
                items.push(item.map_err(|why| why.inside(format!("[{i}]")))?);
            }
            Ok(Value::Array(items))
        }
    }

    unsafe fn read_map(
        self,
        state: *mut ffi::lua_State,
        index: c_int,
        depth: usize,
        taken: &mut Taken,
    ) -> Result<Value, Unconvertible> {
        let mut entries = Vec::new();
        // SAFETY: as in `read_table`.
        unsafe {
            ffi::lua_pushnil(state);
            while ffi::lua_next(state, index) != 0 {
                let top = ffi::lua_gettop(state);
                let entry = self.read_entry(state, top, depth, taken);
                ffi::lua_settop(state, top - 1);
                match entry {
                    Ok(entry) => entries.push(entry),
                    Err(why) => {
                        ffi::lua_pop(state, 1);
                        return Err(why);
                    }
                }
            }
        }
        entries.sort_by(|(a, _), (b, _)| key_order(a, b));
        Ok(Value::Map(entries))
    }

    /// Reads the value at `top`, with its key below it.
    unsafe fn read_entry(
        self,
        state: *mut ffi::lua_State,
        top: c_int,
        depth: usize,
        taken: &mut Taken,
    ) -> Result<(Value, Value), Unconvertible> {
        // SAFETY: as in `read_table`.
        unsafe {
            if ffi::lua_type(state, top - 1) == ffi::LUA_TTABLE {
                return Err(Unconvertible::new("a table as a key"));
            }
            let key = self.read_nested(state, top - 1, depth, taken)?;
            let value = self.read_nested(state, top, depth, taken);
            let value = value.map_err(|why| why.inside(field_text(&key)))?;
            Ok((key, value))
        }
    }

    unsafe fn is_object(self, state: *mut ffi::lua_State, index: c_int) -> bool {
        // SAFETY: the caller has made room for two values.
        unsafe {
            if ffi::lua_getmetatable(state, index) == 0 {
                return false;
            }
            ffi::lua_rawgeti(state, ffi::LUA_REGISTRYINDEX, self.object_meta.into());
            let same = ffi::lua_rawequal(state, -1, -2) != 0;
            ffi::lua_pop(state, 2);
            same
        }
    }
}

/// Raises if the call is to be stopped.
///
/// # Safety
/// As [`Converter::push`].
unsafe fn look(state: *mut ffi::lua_State) {
    if watchdog::is_stopping() {
        // SAFETY: the caller's promise; what is pushed is borrowed, so there is nothing to drop.
        unsafe { memory::raise_past_handlers(state) };
    }
}

/// The bytes of the string at `index`, as long as it stays on the stack.
///
/// # Safety
/// There must be a string at `index`.
pub(crate) unsafe fn string<'s>(state: *mut ffi::lua_State, index: c_int) -> &'s [u8] {
    let mut len = 0;
    // SAFETY: a string has bytes, and keeps them while it is on the stack.
    unsafe {
        let data = ffi::lua_tolstring(state, index, &raw mut len);
        std::slice::from_raw_parts(data.cast(), len)
    }
}

/// Pushes a string. May raise.
///
/// # Safety
/// As [`Converter::push`].
pub(crate) unsafe fn push_bytes(state: *mut ffi::lua_State, bytes: &[u8]) {
    // SAFETY: the caller's promise.
    unsafe { ffi::lua_pushlstring(state, bytes.as_ptr().cast(), bytes.len()) };
}

fn c_len(len: usize) -> c_int {
    c_int::try_from(len).unwrap_or(c_int::MAX)
}

/// A number is an integer if the conversion is lossless; -0 is 0.
pub(crate) fn number(number: f64) -> Value {
    let exact = EXACT_MAX as f64;
    if number.fract() == 0.0 && (-exact..=exact).contains(&number) {
        Value::Integer(number as i64)
    } else {
        Value::Number(number)
    }
}

/// The length of a table whose keys are 1 to n; `None` for other tables.
unsafe fn sequence_len(state: *mut ffi::lua_State, index: c_int) -> Option<usize> {
    // SAFETY: the caller has made room; `lua_next` is given the keys that it returned.
    unsafe {
        let len = ffi::lua_rawlen(state, index);
        let mut count = 0;
        ffi::lua_pushnil(state);
        while ffi::lua_next(state, index) != 0 {
            ffi::lua_pop(state, 1);
            count += 1;
            let in_sequence = ffi::lua_type(state, -1) == ffi::LUA_TNUMBER && {
                let key = ffi::lua_tonumber(state, -1);
                key.fract() == 0.0 && key >= 1.0 && key <= len as f64
            };
            if !in_sequence {
                ffi::lua_pop(state, 1);
                return None;
            }
        }
        // n distinct keys, all within 1 to n: none is missing.
        (count == len).then_some(len)
    }
}

fn field_text(key: &Value) -> String {
    match key {
        Value::String(name) => format!(".{}", String::from_utf8_lossy(name)),
        Value::Integer(i) => format!("[{i}]"),
        other => format!("[{other:?}]"),
    }
}

/// Booleans, then numbers, then strings.
pub(crate) fn key_order(a: &Value, b: &Value) -> Ordering {
    fn rank(value: &Value) -> u8 {
        match value {
            Value::Nil => 0,
            Value::Boolean(_) => 1,
            Value::Integer(_) | Value::Number(_) => 2,
            _ => 3,
        }
    }
    fn float(value: &Value) -> f64 {
        match value {
            Value::Integer(integer) => *integer as f64,
            Value::Number(number) => *number,
            _ => 0.0,
        }
    }
    match (a, b) {
        (Value::Boolean(a), Value::Boolean(b)) => a.cmp(b),
        (Value::Integer(a), Value::Integer(b)) => a.cmp(b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        _ if rank(a) == 2 && rank(b) == 2 => float(a).total_cmp(&float(b)),
        _ => rank(a).cmp(&rank(b)),
    }
}
