//! Procedures as transactions over a [`tokaido_store::Store`].
//!
//! A [`Runtime`] has the [`Procedure`]s that some [`Sources`] export. It runs them inside a
//! transaction that the caller has begun; the caller commits or rolls back. [`Vm`] is the runtime
//! for Lua, compiled by LuaJIT.

#![deny(missing_docs)]

#[cfg(test)]
mod annotations;
mod apache;
mod bridge;
pub mod cabinet;
mod call_error;
mod cjson;
#[cfg(test)]
mod compiled;
#[cfg(test)]
mod compiled_handlers;
mod convert;
mod dialect;
mod expressions;
mod failure;
mod fault;
mod function_bench;
mod host;
mod http;
mod interrupt;
pub mod json;
mod json_decode;
mod limits;
mod listing;
mod load;
mod load_error;
mod memory;
#[cfg(test)]
mod names;
mod openresty;
mod pattern;
mod pattern_weight;
pub mod percent;
mod prelude;
mod procedure;
mod redis;
mod runtime;
mod settings;
mod sockets;
mod source;
mod sources;
mod state;
mod timer;
mod together;
mod tyrant;
mod value;
mod vm;
mod vm_script;
mod watchdog;

pub use apache::{DocumentRoot, FileError, SharedValues};
pub use bridge::HostFunction;
pub use call_error::CallError;
pub use dialect::{Dialect, Globals, Setting, UnknownDialect};
pub use expressions::{Expression, ExpressionError, Expressions};
pub use fault::{Fault, check_elements, check_value};
pub use function_bench::{
    BenchCode, BenchOptions, BenchSample, FunctionBench, TraceEvent, TraceOutcome,
};
pub use host::{
    CommandError, CommandReply, Host, MiscCall, NestedError, Scope, ServerFigures, Transaction,
};
pub use http::{HttpRequest, HttpResponse, Progress, Waiting};
pub use interrupt::Interrupt;
pub use limits::{
    ARGUMENTS_MAX, Limits, SOURCE_DEPTH_MAX, SourceLimits, VALUE_COUNT_MAX, VALUE_DEPTH_MAX,
};
pub use listing::Listing;
pub use load_error::LoadError;
pub use procedure::{Hook, Mode, Procedure, ProcedureId, Route};
pub use redis::{
    FunctionCall, FunctionFlags, FunctionVm, LibraryError, RedisCall, RedisScript, RedisVm,
    RegisteredFunction, sha1_hex,
};
pub use runtime::{Language, Runtime, RuntimeError};
pub use settings::Settings;
pub use sockets::{Receive, Received, SocketOption, SocketTarget, Sockets};
pub use source::Source;
pub use sources::{ScriptFile, SourcePlaces, Sources};
pub use timer::Timer;
pub use together::{start, together};
pub use tyrant::{TyrantCommons, TyrantSettings};
pub use value::Value;
pub use vm::{Lua, Vm, check_arguments};
pub use watchdog::{Stop, StopTarget, Watched, Watching, is_stopping};
