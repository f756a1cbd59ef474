//! Scripts that a virtual machine runs besides its procedures, for `tokaido run` and the shell.

use std::io::Write as _;

use mlua::{Function, Table, chunk::ChunkMode};
use tokaido_store::Writer;

use crate::{
    CallError, Value, Vm,
    failure::Failure,
    load,
    state::LuaState,
    vm::{check_arguments, in_ms},
};

impl Vm {
    /// Runs a chunk outside of any transaction, for `tokaido run` and the shell. Its memory and time have no limits
    /// but those of scripts, if set, in [`Limits`](crate::Limits); [`interrupt`](Self::interrupt) stops it.
    /// In the native dialect, `tokaido.transact(f, …)` calls `f(tx, …)` in a transaction that is durable when it
    /// returns, `tokaido.snapshot(f, …)` calls it on a snapshot, and `print` writes to stdout. The
    /// arguments are `...` in the chunk, and the global `arg`. In the dialects of Kyoto Tycoon and Tokyo Tyrant the
    /// whole script is one transaction, like a call.
    /// Globals may be set, and are kept between calls, so that a session can build on them. Without a
    /// writer, as in a VM without a store, there are no transactions.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn run_script(
        &mut self,
        chunk_name: &str,
        text: &[u8],
        arguments: &[Value],
        writer: Option<&mut dyn Writer>,
    ) -> Result<Vec<Value>, CallError> {
        self.run_as_script(chunk_name, arguments, writer, |state| {
            compile_script(state, chunk_name, text, arguments)
        })
    }

    /// The same for the function that `make_chunk` gives.
    pub(crate) fn run_as_script(
        &mut self,
        chunk_name: &str,
        arguments: &[Value],
        mut writer: Option<&mut dyn Writer>,
        make_chunk: impl FnOnce(&LuaState) -> mlua::Result<Function>,
    ) -> Result<Vec<Value>, CallError> {
        check_arguments(arguments)?;
        self.forget_dropped();
        let raised = |message: String| CallError::Raised { message, traceback: String::new() };
        let mut exit_status = None::<u8>;
        let outcome = self.state.with_memory_of_scripts(|state| {
            let chunk = match make_chunk(state) {
                Ok(chunk) => chunk,
                Err(mlua::Error::SyntaxError { message, .. }) => {
                    return Err(Failure::Raised { message, traceback: String::new() });
                }
                Err(error) => {
                    let message = error.to_string();
                    return Err(Failure::Raised { message, traceback: String::new() });
                }
            };
            let context = state.context();
            context.procedure.clear();
            context.procedure.push_str(chunk_name);
            context.writer = writer.as_deref_mut().map(|writer| {
                let writer: *mut (dyn Writer + '_) = writer;
                // SAFETY: only the lifetime is extended; the pointer is removed again below.
                unsafe {
                    std::mem::transmute::<*mut (dyn Writer + '_), *mut (dyn Writer + 'static)>(
                        writer,
                    )
                }
            });
            let results = state.run_chunk(chunk, arguments);
            let context = state.context();
            context.end();
            context.snapshot = None;
            context.writer = None;
            let _ = state.core().set("write_out", mlua::Value::Nil);
            exit_status = state.core().get("exit_status").unwrap_or_default();
            results
        });
        // Rolls back what a script left open because an error passed through.
        if let Some(writer) = writer {
            writer.rollback().map_err(|error| raised(error.to_string()))?;
        }
        let has_ended =
            matches!(outcome, Ok(Ok(_) | Err(Failure::Raised { .. } | Failure::Refused { .. })));
        if let Some(status) = exit_status.filter(|_| has_ended) {
            return Err(CallError::Exited { status });
        }
        match outcome {
            Ok(Ok(results)) => Ok(results),
            Ok(Err(Failure::Time)) => Err(CallError::ScriptTimeLimit {
                name: chunk_name.to_owned(),
                limit_ms: self.limits.script_time.map_or(u64::MAX, in_ms),
            }),
            Ok(Err(Failure::Memory)) => {
                self.replace_state();
                Err(CallError::ScriptMemoryLimit {
                    name: chunk_name.to_owned(),
                    limit_bytes: self.limits.script_memory_bytes.unwrap_or(usize::MAX),
                })
            }
            Ok(Err(failure)) => Err(self.error(chunk_name.to_owned(), failure)),
            Err(error) => Err(raised(error.to_string())),
        }
    }
}

pub(crate) fn compile_script(
    state: &LuaState,
    chunk_name: &str,
    text: &[u8],
    arguments: &[Value],
) -> mlua::Result<Function> {
    let core = state.core();
    let session = match core.get::<Option<Table>>("session")? {
        Some(session) => session,
        None => {
            let session = core.get::<Function>("make_session")?.call::<Table>(())?;
            core.set("session", &session)?;
            session
        }
    };
    let texts = state.lua().create_table()?;
    texts.raw_set(0, chunk_name)?;
    for argument in arguments {
        if let Value::String(text) = argument {
            texts.push(state.lua().create_string(text)?)?;
        }
    }
    session.raw_set("arg", texts)?;
    core.set("exit_status", mlua::Value::Nil)?;
    core.set("write_out", writer_of_stdout(state, b"\n")?)?;
    core.set("write_text", writer_of_stdout(state, b"")?)?;
    let chunk = state
        .lua()
        .load(&load::source_text(text)[..])
        .set_name(format!("@{chunk_name}"))
        .set_mode(ChunkMode::Text)
        .set_environment(session)
        .into_function()?;
    // A dialect may do more around a script.
    match core.get::<Option<Function>>("script_of")? {
        Some(script_of) => script_of.call(chunk),
        None => Ok(chunk),
    }
}

/// A function that writes a text, followed by `end`, to standard output.
fn writer_of_stdout(state: &LuaState, end: &'static [u8]) -> mlua::Result<Function> {
    state.lua().create_function(move |_, text: mlua::LuaString| {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(&text.as_bytes()).and_then(|()| stdout.write_all(end)).map_err(|error| {
            mlua::Error::RuntimeError(format!("cannot write to the standard output: {error}"))
        })
    })
}
