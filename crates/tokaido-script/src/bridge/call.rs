//! Calls from one procedure to another, of its own language or of another one.

use std::{
    ffi::c_int,
    panic::{AssertUnwindSafe, catch_unwind},
};

use mlua::ffi;

use super::context::{Context, Fault};
use crate::{NestedError, Value, check_arguments};

/// Why a call gave no result, as it is raised in the caller.
struct Failed {
    message: String,
    code: Option<String>,
    status: Option<u16>,
    /// Whether the error is the procedure's own, so that the caller's line is not to blame.
    was_called: bool,
}

impl From<String> for Failed {
    fn from(message: String) -> Self {
        Self { message, code: None, status: None, was_called: false }
    }
}

/// `call_procedure(context, name, …)` → true and the result, or false and an array: a message, a code or false, a status or
/// false, and whether the procedure was called. For procedures outside this virtual machine.
///
/// # Safety
/// To be called from Lua with the VM's context and a string.
pub(crate) unsafe extern "C-unwind" fn lua_call_procedure(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the prelude passes the context. The context owns what is pushed, so a raise leaks nothing, and nothing
    // raises before that.
    unsafe {
        let context = &mut *ffi::lua_touserdata(state, 1).cast::<Context>();
        let called = catch_unwind(AssertUnwindSafe(|| call(state, context)));
        let called = called.unwrap_or_else(|_| {
            let message = "the call panicked, which is a fault of tokaido; please report it";
            context.poison(message.to_owned());
            Err(message.to_owned().into())
        });
        let (is_ok, value) = match called {
            Ok(value) => (true, value),
            Err(Failed { message, code, status, was_called }) => {
                let none = Value::Boolean(false);
                let code = code.map_or(none.clone(), |code| Value::String(code.into_bytes()));
                let status = status.map_or(none, |status| Value::Integer(status.into()));
                let message = Value::String(message.into_bytes());
                (false, Value::Array(vec![message, code, status, Value::Boolean(was_called)]))
            }
        };
        let value = &*context.parsed.insert(value);
        ffi::lua_pushboolean(state, c_int::from(is_ok));
        context.lua_side.converter.push(state, value, false);
        context.parsed = None;
        2
    }
}

/// Calls the procedure with what is on the stack above its name. Never raises.
unsafe fn call(state: *mut ffi::lua_State, context: &mut Context) -> Result<Value, Failed> {
    // SAFETY: the prelude passes a string, which the stack keeps; reading the arguments leaves the stack as it was.
    let (name, read) = unsafe {
        let mut len = 0;
        let data = ffi::lua_tolstring(state, 2, &raw mut len);
        let name = std::slice::from_raw_parts(data.cast::<u8>(), len);
        let read = |at| context.lua_side.converter.read(state, at);
        (name, (3..=ffi::lua_gettop(state)).map(read).collect::<Vec<_>>())
    };
    let text = || String::from_utf8_lossy(name).into_owned();
    let arguments = (1..)
        .zip(read)
        .map(|(place, read)| {
            read.map_err(|why| why.message(&format!("argument {place} of {}", text())))
        })
        .collect::<Result<Vec<Value>, String>>()?;
    check_arguments(&arguments).map_err(|error| error.to_string())?;
    let (host, transaction) = context.host().map_err(|fault| match fault {
        Fault::Refused(message) | Fault::Poisoned(message) => message,
    })?;
    host.call(transaction, name, &arguments).map_err(|error| {
        let (code, status) = error.code_and_status();
        let (code, message) = (code.map(str::to_owned), error.to_string());
        if error.is_final() {
            context.poison(message.clone());
        }
        let was_called = matches!(error, NestedError::Failed { .. });
        Failed { message, code, status, was_called }
    })
}

/// Notes that a procedure of this virtual machine that may write has failed: its caller's transaction fails with it.
pub(super) fn call_failed(context: &mut Context, message: &[u8]) -> Result<i32, Fault> {
    context.poison(String::from_utf8_lossy(message).into_owned());
    Ok(super::context::YES)
}
