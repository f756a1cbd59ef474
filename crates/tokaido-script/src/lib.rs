//! Lua procedures as transactions over a [`tokaido_store::Store`], compiled by LuaJIT.
//!
//! A [`Vm`] lives as long as its thread. It loads [`Sources`], knows the [`Procedure`]s that they
//! export, and runs them inside a transaction that the caller has begun; committing or rolling
//! back stays with the caller.

#![deny(missing_docs)]

#[cfg(test)]
mod annotations;
mod bridge;
#[cfg(test)]
mod compiled;
mod convert;
mod engine;
mod http;
pub mod json;
mod limits;
mod load;
mod memory;
mod pattern;
mod percent;
mod procedure;
mod source;
mod value;
mod vm;
mod watchdog;

pub use bridge::HostFunction;
pub use http::{HttpRequest, HttpResponse};
pub use limits::{Limits, SOURCE_DEPTH_MAX, SourceLimits};
pub use procedure::{Mode, Procedure, ProcedureId, Route};
pub use source::{LoadError, Source, Sources};
pub use value::Value;
pub use vm::{CallError, Transaction, Vm, VmError};
