//! The libraries `cmsgpack` and `struct`, as C functions on the values of their arguments.

use std::{
    ffi::c_int,
    panic::{AssertUnwindSafe, catch_unwind},
};

use mlua::ffi;

use super::{message_pack, number, pack};
use crate::{
    Value,
    bridge::Context,
    convert::{Unconvertible, VALUES_PER_LOOK},
    limits, watchdog,
};

/// Counts the values that are made outside Lua, where neither its memory limit nor its time limit is
/// checked.
#[derive(Default)]
pub(crate) struct Tally(usize);

impl Tally {
    pub(crate) fn count(&mut self, values: usize) -> Result<(), String> {
        self.0 += values;
        if self.0 > limits::VALUE_COUNT_MAX {
            return Err(format!("more than {} values", limits::VALUE_COUNT_MAX));
        }
        if self.0.is_multiple_of(VALUES_PER_LOOK) && watchdog::is_stopping() {
            return Err("more values than the time limit allows".to_owned());
        }
        Ok(())
    }
}

/// Gets the arguments.
type Run = fn(&[Value]) -> Result<Value, String>;

/// A codec: its name and its function.
pub(crate) struct Codec {
    pub(crate) name: &'static str,
    run: Run,
}

impl Codec {
    const fn new(name: &'static str, run: Run) -> Self {
        Self { name, run }
    }
}

/// Every codec; Lua calls them by index.
pub(crate) static CODECS: [Codec; 5] = [
    Codec::new("pack", message_pack_pack),
    Codec::new("unpack", message_pack_unpack),
    Codec::new("struct_pack", |arguments| pack::pack(arguments).map(Value::String)),
    Codec::new("struct_unpack", |arguments| pack::unpack(arguments).map(Value::Array)),
    Codec::new("struct_size", |arguments| {
        pack::size(arguments).map(|size| Value::Integer(size as i64))
    }),
];

/// The argument at `place`, which Lua has checked, as an unsigned number.
fn count(arguments: &[Value], place: usize) -> u64 {
    number::number_of(arguments.get(place)).unwrap_or(0.0) as u64
}

fn text(arguments: &[Value], place: usize) -> &[u8] {
    match arguments.get(place) {
        Some(Value::String(text)) => text,
        _ => &[],
    }
}

fn message_pack_pack(arguments: &[Value]) -> Result<Value, String> {
    let mut out = Vec::new();
    for argument in arguments {
        message_pack::pack(argument, 0, &mut out);
    }
    Ok(Value::String(out))
}

/// `(text, offset, limit)` → an array of the number of values, where the next begins, and the values.
fn message_pack_unpack(arguments: &[Value]) -> Result<Value, String> {
    let (offset, limit) = (count(arguments, 1) as usize, count(arguments, 2) as usize);
    let (values, at) = message_pack::unpack(text(arguments, 0), offset, limit)?;
    let head = [Value::Integer(values.len() as i64), Value::Integer(at as i64)];
    Ok(Value::Array(head.into_iter().chain(values).collect()))
}

/// `codec(context, place, …)` → true and the result, or false and a message.
///
/// # Safety
/// To be called from Lua with the VM's context and the index of a codec.
pub(crate) unsafe extern "C-unwind" fn lua_codec(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the prelude passes the context. The context owns what is pushed, so a raise leaks
    // nothing, and nothing raises before that.
    unsafe {
        let context = &mut *ffi::lua_touserdata(state, 1).cast::<Context>();
        let codec = &CODECS[ffi::lua_tointeger(state, 2) as usize % CODECS.len()];
        let (ok, value) = match run(state, context, codec) {
            Ok(value) => (true, value),
            Err(message) => (false, Value::String(message.into_bytes())),
        };
        let value = &*context.parsed.insert(value);
        ffi::lua_pushboolean(state, c_int::from(ok));
        context.lua_side.converter.plain().push(state, value, false);
        context.parsed = None;
        2
    }
}

/// Runs a codec on what is on the stack above its index. Never raises.
unsafe fn run(
    state: *mut ffi::lua_State,
    context: &Context,
    codec: &Codec,
) -> Result<Value, String> {
    // Functions and other values that cannot be converted count as nil.
    let converter = context.lua_side.converter.lenient();
    // SAFETY: reading the arguments leaves the stack as it was.
    let arguments: Result<Vec<Value>, Unconvertible> = unsafe {
        let read = |at| converter.read(state, at);
        (3..=ffi::lua_gettop(state)).map(read).collect()
    };
    let arguments = arguments.map_err(|why| why.short_message("an argument"))?;
    catch_unwind(AssertUnwindSafe(|| (codec.run)(&arguments)))
        .unwrap_or_else(|_| Err("a codec panicked, which is a fault of tokaido".to_owned()))
}
