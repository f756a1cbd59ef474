//! Commands of the host in the running transaction. Their arguments come as the keys of `get_many`
//! do; replies that are no table are in the [`Reply`](super::context::Reply), the others are fetched.

use std::ffi::c_int;

use mlua::ffi;

use super::context::{Context, Fault, NO, WIDE, YES};
use crate::{CommandError, Value};

/// The kinds of reply; `lua/command.lua` has the same. `NO` is nil, `YES` a string, and `WIDE` an
/// integer that only an `int64_t` holds.
const NUMBER: i32 = 4;
const FETCH: i32 = 5;

/// Runs a command; the code tells the kind of its reply.
pub(super) fn command_run(context: &mut Context) -> Result<i32, Fault> {
    let (host, transaction) = context.host()?;
    let arguments = context.many.list.strings();
    let replied = host.command(transaction, &arguments).map_err(|error| match error {
        CommandError::Refused(message) => Fault::Refused(message),
        CommandError::Failed(message) => Fault::Poisoned(message),
    })?;
    if !replied.is_passable() {
        return Err(Fault::refused("the reply is nested too deeply to be passed on"));
    }
    Ok(match replied {
        Value::Nil => NO,
        Value::String(bytes) => {
            context.scratch = bytes;
            context.reply.data(&context.scratch);
            YES
        }
        Value::Integer(integer) => match context.reply.integer(integer) {
            WIDE => WIDE,
            _ => NUMBER,
        },
        Value::Number(number) => {
            context.reply.number = number;
            NUMBER
        }
        other => {
            context.replied = other;
            FETCH
        }
    })
}

/// `fetch_reply(context)` → the reply that `command_run` left.
///
/// # Safety
/// To be called from Lua with the VM's context.
pub(crate) unsafe extern "C-unwind" fn lua_fetch_reply(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the prelude passes the context, which owns what is pushed, so that a raise leaks
    // nothing; Lua calls C functions protected.
    unsafe {
        let context = &mut *ffi::lua_touserdata(state, 1).cast::<Context>();
        context.lua_side.converter.push(state, &context.replied, false);
        context.replied = Value::Nil;
        1
    }
}
