//! The path from Lua to the store: `extern "C"` functions that LuaJIT calls through its FFI, so
//! that a database call in a hot loop is part of the machine code.
//!
//! Rules for every function here: nothing unwinds out of it, it never calls Lua, it returns a code,
//! and any further results are in the [`context::Reply`]. [`native`] makes C functions of them, so
//! that here they are plain Rust.
//! Functions that take or give values of any kind use the C API instead: [`functions`], and the
//! replies of [`command`].

mod apache;
mod cabinet;
mod cache;
pub(crate) mod call;
mod collections;
pub(crate) mod command;
pub(crate) mod context;
mod databases;
mod exchange;
pub(crate) mod functions;
mod handler;
mod many;
mod native;
mod openresty;
mod pages;
pub(crate) mod random;
mod read;
mod scan;
mod script;
pub(crate) mod texts;
pub(crate) mod timers;
mod tyrant;
mod write;

pub(crate) use context::Context;
pub(crate) use databases::engine_of;
pub(crate) use exchange::Exchange;
pub use functions::HostFunction;
pub(crate) use native::functions as native_functions;
