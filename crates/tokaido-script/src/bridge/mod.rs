//! The way from Lua into the store: `extern "C"` functions that LuaJIT calls through its FFI, so
//! that a database call in a hot loop is part of the machine code.
//!
//! Rules that hold for every function here: nothing unwinds out of it, it never calls Lua, it
//! answers a code, and what it has to say besides stands in the [`context::Reply`].
//! Only [`host`] is reached by the C API instead, since its arguments may be any values.

mod cache;
pub(crate) mod context;
mod databases;
mod exchange;
pub(crate) mod host;
mod many;
mod native;
mod pages;
mod read;
mod scan;
mod script;
mod write;

pub(crate) use context::Context;
pub(crate) use exchange::Exchange;
pub use host::HostFunction;
pub(crate) use native::functions;
