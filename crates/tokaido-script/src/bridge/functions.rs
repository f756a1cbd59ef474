//! Functions of the host program that scripts call as globals.

use std::{
    cell::RefCell,
    ffi::c_int,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
};

use mlua::ffi;

use super::Context;
use crate::Value;

/// A function that scripts call. It gets the arguments, and gives the result, or the message of the
/// error to raise. See [`Vm::set_function`](crate::Vm::set_function).
pub type HostFunction = Box<dyn FnMut(&[Value]) -> Result<Value, String>>;

/// A function with its name, kept by the VM and by the engine, which the VM may replace.
pub(crate) type SharedFunction = Rc<(String, RefCell<HostFunction>)>;

/// `call_function(context, index, …)` → true and the result, or false and a message.
///
/// # Safety
/// To be called from Lua with the VM's context and the index of one of its functions.
pub(crate) unsafe extern "C-unwind" fn lua_call_function(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the prelude passes the context. The context owns what is pushed, so a raise leaks
    // nothing, and nothing raises before that.
    unsafe {
        let context = &mut *ffi::lua_touserdata(state, 1).cast::<Context>();
        let (ok, value) = match call(state, context) {
            Ok(value) => (true, value),
            Err(message) => (false, Value::String(message.into_bytes())),
        };
        let value = &*context.parsed.insert(value);
        ffi::lua_pushboolean(state, c_int::from(ok));
        context.lua_side.converter.push(state, value, false);
        context.parsed = None;
        2
    }
}

/// Calls the function with what is on the stack above its index. Never raises.
unsafe fn call(state: *mut ffi::lua_State, context: &Context) -> Result<Value, String> {
    // SAFETY: the prelude passes the index; reading the arguments leaves the stack as it was.
    let (index, arguments) = unsafe {
        let read = |at| context.lua_side.converter.read(state, at);
        let arguments: Vec<_> = (3..=ffi::lua_gettop(state)).map(read).collect();
        (ffi::lua_tointeger(state, 2), arguments)
    };
    let found = usize::try_from(index).ok().and_then(|index| context.functions.get(index));
    let (name, function) = &**found.ok_or("the host has no such function")?;
    let arguments = (1..)
        .zip(arguments)
        .map(|(place, read)| {
            read.map_err(|why| why.message(&format!("argument {place} of {name}")))
        })
        .collect::<Result<Vec<Value>, String>>()?;
    let called = catch_unwind(AssertUnwindSafe(|| (*function.borrow_mut())(&arguments)));
    let result = called
        .map_err(|_| format!("{name} panicked, which is a fault of tokaido; please report it"))??;
    if result.is_passable() {
        Ok(result)
    } else {
        Err(format!(
            "the result of {name} is nested too deeply, or has a map key that no table has"
        ))
    }
}
