//! Scripts that clients send: EVAL and related commands, and their cache.

mod cache;
mod commands;
mod host;
mod result;
mod run;
mod shebang;
mod slots;
mod thread;

pub(crate) use cache::{Script, ScriptCache};
pub(super) use commands::COMMANDS;
pub(super) use result::write as write_result;
pub(crate) use run::ScriptCall;
pub(super) use run::{call_in, load, run_lua};
pub(super) use slots::{Slot, Slots};
pub(crate) use thread::ThreadScripts;
