//! Commands of the host in the running transaction. Their arguments are passed like the keys of `get_many`.
//! Replies other than tables are in the [`Reply`](super::context::Reply), tables are fetched.

use std::ffi::c_int;

use mlua::ffi;

use super::{
    context::{Context, Fault, NO, WIDE, YES},
    many::check_list,
};
use crate::{CommandError, CommandReply, Host, Transaction, Value};

/// The kinds of reply; `lua/command.lua` has the same. `NO` is nil, `YES` a string, and `WIDE` an
/// integer that needs an `int64_t`.
const NUMBER: i32 = 4;
const FETCH: i32 = 5;
/// `false`.
const FALSE: i32 = 6;
/// A table with the field `ok`, whose text is in the reply.
const STATUS: i32 = 7;

/// Maximum number of arguments, with the command's name, that [`command_of`] takes; `lua/redis/call.lua` has the same.
const FEW: usize = 6;

/// Runs the command whose arguments were gathered; the code gives the kind of its reply.
pub(super) fn command_run(context: &mut Context) -> Result<i32, Fault> {
    let (host, transaction) = context.host()?;
    let replied = run(host, transaction, &context.many.list.strings())?;
    answer(context, replied)
}

/// As [`command_run`], for a command with few arguments, which need not be gathered: the first `count` of these.
#[expect(
    clippy::too_many_arguments,
    reason = "LuaJIT passes the arguments of a C function, and no list"
)]
pub(super) fn command_of(
    context: &mut Context,
    count: i32,
    first: &[u8],
    second: &[u8],
    third: &[u8],
    fourth: &[u8],
    fifth: &[u8],
    sixth: &[u8],
) -> Result<i32, Fault> {
    let arguments: [&[u8]; FEW] = [first, second, third, fourth, fifth, sixth];
    let arguments = &arguments[..usize::try_from(count).unwrap_or(0).min(FEW)];
    let bytes = arguments.iter().map(|argument| argument.len()).sum();
    check_list(&context.limits, arguments.len(), bytes)?;
    let (host, transaction) = context.host()?;
    let replied = run(host, transaction, arguments)?;
    answer(context, replied)
}

fn run<'h>(
    host: &'h mut dyn Host,
    transaction: Transaction<'_>,
    arguments: &[&[u8]],
) -> Result<CommandReply<'h>, Fault> {
    host.command(transaction, arguments).map_err(|error| match error {
        CommandError::Refused(message) => Fault::Refused(message),
        CommandError::Failed(message) => Fault::Poisoned(message),
    })
}

/// Puts a command's reply where Lua finds it; the code gives its kind.
fn answer(context: &mut Context, replied: CommandReply<'_>) -> Result<i32, Fault> {
    let value = match replied {
        // What the host lends stays until the next command, and Lua copies it before that.
        CommandReply::Bytes(bytes) => {
            context.reply.data(bytes);
            return Ok(YES);
        }
        CommandReply::Status(text) => {
            context.reply.data(text);
            return Ok(STATUS);
        }
        CommandReply::Value(value) => value,
    };
    Ok(match value {
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
        Value::Boolean(false) => FALSE,
        other if !other.is_passable() => {
            return Err(Fault::refused("the reply is nested too deeply to be passed on"));
        }
        other => {
            context.replied = other;
            FETCH
        }
    })
}

/// Selects the form of replies: version 2 or 3 of the protocol.
pub(super) fn set_resp(context: &mut Context, version: i32) -> Result<i32, Fault> {
    context.host()?.0.speak(version);
    Ok(YES)
}

/// Whether the script may run the gathered command; `WIDE` if there is no such command.
pub(super) fn may_run(context: &mut Context) -> Result<i32, Fault> {
    let (host, _) = context.host()?;
    Ok(match host.may_run(&context.many.list.strings()) {
        Some(true) => YES,
        Some(false) => NO,
        None => WIDE,
    })
}

/// The SHA-1 of a text, in hexadecimal digits.
pub(super) fn sha1_hex(context: &mut Context, text: &[u8]) -> Result<i32, Fault> {
    let digest = crate::redis::sha1_hex(text);
    Ok(context.answer(|out| out.extend_from_slice(digest.as_bytes())))
}

/// `fetch_reply(context)` → the reply that `command_run` left.
///
/// # Safety
/// To be called from Lua with the VM's context.
pub(crate) unsafe extern "C-unwind" fn lua_fetch_reply(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the prelude passes the context, which owns what is pushed, so that a raise leaks
    // nothing; Lua code runs only below a protected call.
    unsafe {
        let context = &mut *ffi::lua_touserdata(state, 1).cast::<Context>();
        context.lua_side.converter.push(state, &context.replied, false);
        context.replied = Value::Nil;
        1
    }
}
