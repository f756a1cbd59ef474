//! A Lua virtual machine and the calls into it: limits, errors, and a new engine where the old one
//! can no longer be trusted.

use std::{cell::RefCell, collections::HashMap, io::Write as _, rc::Rc, sync::Arc};

use mlua::{Function, Table, chunk::ChunkMode};
use tokaido_store::{ReadTransaction, Store, WriteTransaction, Writer};

use crate::{
    HostFunction, HttpRequest, HttpResponse, Limits, LoadError, Procedure, ProcedureId, Sources,
    Value,
    bridge::{context::StoreOrReason, host::SharedFunction},
    engine::{Engine, Failure},
    limits::ARGUMENTS_MAX,
    load,
};

/// A VM could not be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot start a Lua VM: {0}")]
pub struct VmError(pub(crate) String);

/// A call failed. The caller rolls the transaction back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The procedure raised, or did something that is not allowed.
    #[error("{message}")]
    Raised {
        /// `file:line: message`.
        message: String,
        /// Lua's stack, a line a level.
        traceback: String,
    },
    /// The procedure said no, by `error{message = …, code = …, status = …}`.
    #[error("{message}")]
    Refused {
        /// For the user.
        message: String,
        /// For programs, if the procedure gave one.
        code: Option<String>,
        /// The HTTP status, if the procedure gave one: 400 to 599.
        status: Option<u16>,
    },
    /// It ran past [`Limits::time`] and was stopped.
    #[error("{name} was stopped after {limit_ms} ms, its time limit; nothing of it remains")]
    TimeLimit {
        /// The procedure.
        name: String,
        /// The limit in ms.
        limit_ms: u64,
    },
    /// It needed more than [`Limits::memory_bytes`].
    #[error("{name} needed more than {limit_bytes} bytes, its memory limit; nothing of it remains")]
    MemoryLimit {
        /// The procedure.
        name: String,
        /// The limit in bytes.
        limit_bytes: usize,
    },
    /// An argument or a result has no form on the other side.
    #[error("{message}")]
    Value {
        /// Which one and why.
        message: String,
    },
}

/// The transaction that a call runs in.
pub enum Transaction<'t> {
    /// For [`Mode::Read`](crate::Mode::Read).
    Read(&'t mut dyn ReadTransaction),
    /// For [`Mode::Write`](crate::Mode::Write); a read procedure may run in it, too.
    Write(&'t mut dyn WriteTransaction),
}

/// A Lua virtual machine with every procedure loaded. It belongs to one thread.
pub struct Vm {
    engine: Engine,
    procedures: Vec<Procedure>,
    names: HashMap<Vec<u8>, ProcedureId>,
    functions: Vec<SharedFunction>,
    store: StoreOrReason,
    sources: Sources,
    limits: Limits,
}

impl Vm {
    /// Starts a VM and loads `sources`. Files with errors are left out and reported; the others
    /// serve.
    ///
    /// # Errors
    /// If LuaJIT cannot start.
    pub fn new(
        store: &Arc<dyn Store>,
        sources: &Sources,
        limits: Limits,
    ) -> Result<(Self, Vec<LoadError>), VmError> {
        Self::start(Ok(Arc::clone(store)), sources, limits)
    }

    /// Starts a VM that has no store and no procedures, for scripts alone: in them
    /// `tokaido.transact` and `tokaido.snapshot` raise `why`.
    ///
    /// # Errors
    /// If LuaJIT cannot start.
    pub fn without_store(why: &str) -> Result<Self, VmError> {
        let (vm, _) = Self::start(Err(why.into()), &Sources::default(), Limits::default())?;
        Ok(vm)
    }

    fn start(
        store: StoreOrReason,
        sources: &Sources,
        limits: Limits,
    ) -> Result<(Self, Vec<LoadError>), VmError> {
        let mut engine = Engine::new(&store, limits)?;
        let (procedures, errors) = load::load(&mut engine, sources)?;
        let names = (0..)
            .zip(&procedures)
            .map(|(i, procedure)| (procedure.name.clone().into_bytes(), ProcedureId(i)))
            .collect();
        let (functions, sources) = (Vec::new(), sources.clone());
        Ok((Self { engine, procedures, names, functions, store, sources, limits }, errors))
    }

    /// Makes a function a global of that name in the scripts of [`run_script`](Self::run_script).
    /// Arguments and result are converted as those of procedures; its `Err`, and a panic in it,
    /// is an error at the line that called it.
    ///
    /// # Errors
    /// If the VM has no memory left.
    pub fn set_function(&mut self, name: &str, function: HostFunction) -> Result<(), VmError> {
        let function: SharedFunction = Rc::new((name.to_owned(), RefCell::new(function)));
        let set = self.engine.set_function(Rc::clone(&function));
        set.map_err(|error| VmError(error.to_string()))?;
        self.functions.push(function);
        Ok(())
    }

    /// Every procedure, in the order of module and name.
    #[must_use]
    pub fn procedures(&self) -> &[Procedure] {
        &self.procedures
    }

    /// The procedure of that name.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<ProcedureId> {
        self.names.get(name).copied()
    }

    /// Calls a procedure, and gives its first result. On `Err` the transaction must be rolled back.
    ///
    /// # Errors
    /// See [`CallError`].
    ///
    /// # Panics
    /// If `procedure` is another VM's, of other sources.
    pub fn call(
        &mut self,
        procedure: ProcedureId,
        transaction: Transaction<'_>,
        arguments: &[Value],
    ) -> Result<Value, CallError> {
        let called = &self.procedures[procedure.0 as usize];
        if let Some(route) = &called.route {
            return Err(CallError::Value {
                message: format!(
                    "{} answers {} {}; call it over HTTP",
                    called.name, route.method, route.pattern
                ),
            });
        }
        check_arguments(arguments)?;
        self.begin(procedure, transaction);
        let result = self.engine.call(run_index(procedure), arguments);
        self.end(procedure, result)
    }

    /// Calls a procedure that has a route, and fills `response`, which is empty on `Err`.
    ///
    /// # Errors
    /// See [`CallError`].
    ///
    /// # Panics
    /// If `procedure` is another VM's, of other sources, or has no route.
    pub fn call_http(
        &mut self,
        procedure: ProcedureId,
        transaction: Transaction<'_>,
        request: &HttpRequest<'_>,
        response: &mut HttpResponse,
    ) -> Result<(), CallError> {
        let called = &self.procedures[procedure.0 as usize];
        assert!(called.route.is_some(), "{} has no route", called.name);
        response.clear();
        self.begin(procedure, transaction);
        // SAFETY: both are borrowed for the whole of this function, and given back below.
        unsafe { self.engine.context().exchange.begin(request, response) };
        let result = self.engine.dispatch(run_index(procedure));
        self.engine.context().exchange.end();
        let result = self.end(procedure, result);
        if result.is_err() {
            response.clear();
        }
        result
    }

    #[cfg(test)]
    pub(crate) fn engine_for_tests(&mut self) -> &mut Engine {
        &mut self.engine
    }

    fn begin(&mut self, procedure: ProcedureId, transaction: Transaction<'_>) {
        let name = &self.procedures[procedure.0 as usize].name;
        let context = self.engine.context();
        context.procedure.clear();
        context.procedure.push_str(name);
        // SAFETY: the caller lends the transaction for the call, and `end` takes it back before
        // the call returns.
        unsafe { context.begin(transaction) };
    }

    /// Takes the transaction back, and turns what went wrong into an error.
    fn end<T>(
        &mut self,
        procedure: ProcedureId,
        result: Result<T, Failure>,
    ) -> Result<T, CallError> {
        let poison = self.engine.context().end();
        let failure = match (result, poison) {
            (Ok(result), None) => return Ok(result),
            (Ok(_), Some(message)) => Failure::Raised { message, traceback: String::new() },
            (Err(failure), _) => failure,
        };
        if matches!(failure, Failure::Memory) {
            self.replace_engine();
        }
        let name = self.procedures[procedure.0 as usize].name.clone();
        Err(self.error(name, failure))
    }

    fn error(&self, name: String, failure: Failure) -> CallError {
        match failure {
            Failure::Raised { message, traceback } => CallError::Raised { message, traceback },
            Failure::Refused { message, code, status } => {
                CallError::Refused { message, code, status }
            }
            Failure::Memory => {
                CallError::MemoryLimit { name, limit_bytes: self.limits.memory_bytes }
            }
            Failure::Time => CallError::TimeLimit {
                name,
                limit_ms: u64::try_from(self.limits.time.as_millis()).unwrap_or(u64::MAX),
            },
            Failure::Result(why) => {
                CallError::Value { message: why.message(&format!("the result of {name}")) }
            }
        }
    }

    /// After it was refused memory a VM may be in a state that nobody tested; a new one is cheap.
    fn replace_engine(&mut self) {
        let replaced = Engine::new(&self.store, self.limits).and_then(|mut engine| {
            let (procedures, _) = load::load(&mut engine, &self.sources)?;
            for function in &self.functions {
                let set = engine.set_function(Rc::clone(function));
                set.map_err(|error| VmError(error.to_string()))?;
            }
            Ok((engine, procedures))
        });
        match replaced {
            // A file may load differently the second time; then the old engine keeps the numbers
            // of procedures true.
            Ok((engine, procedures)) if same_names(&procedures, &self.procedures) => {
                self.engine = engine;
            }
            Ok(_) => tracing::warn!("procedures load differently than before; keeping the VM"),
            Err(error) => tracing::error!("cannot replace a VM after its memory limit: {error}"),
        }
    }

    /// Runs a chunk outside of any transaction, without limits, for `tokaido run` and the shell.
    /// In it, `tokaido.transact(f, …)` calls `f(tx, …)` in a transaction that is durable when it
    /// returns, `tokaido.snapshot(f, …)` calls it on a snapshot, and `print` writes to stdout. The
    /// arguments are `...` in the chunk, and the global `arg`.
    /// Globals may be set, and stay between calls, so that a session can build on them. Without a
    /// writer, as in a VM without a store, there are no transactions.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn run_script(
        &mut self,
        chunk_name: &str,
        text: &[u8],
        arguments: &[Value],
        mut writer: Option<&mut dyn Writer>,
    ) -> Result<Vec<Value>, CallError> {
        check_arguments(arguments)?;
        let raised = |message: String| CallError::Raised { message, traceback: String::new() };
        let limit_bytes = self.limits.memory_bytes;
        let outcome = self.engine.without_memory_limit(limit_bytes, |engine| {
            let chunk = match compile_script(engine, chunk_name, text, arguments) {
                Ok(chunk) => chunk,
                Err(mlua::Error::SyntaxError { message, .. }) => {
                    return Err(Failure::Raised { message, traceback: String::new() });
                }
                Err(error) => {
                    let message = error.to_string();
                    return Err(Failure::Raised { message, traceback: String::new() });
                }
            };
            let context = engine.context();
            context.procedure.clear();
            context.procedure.push_str(chunk_name);
            context.writer = writer.as_deref_mut().map(|writer| {
                let writer: *mut (dyn Writer + '_) = writer;
                // SAFETY: only the lifetime is lengthened; it is taken away again below.
                unsafe {
                    std::mem::transmute::<*mut (dyn Writer + '_), *mut (dyn Writer + 'static)>(
                        writer,
                    )
                }
            });
            let results = engine.run_chunk(chunk, arguments);
            let context = engine.context();
            context.end();
            context.snapshot = None;
            context.writer = None;
            let _ = engine.core().set("write_out", mlua::Value::Nil);
            results
        });
        // What a script left open, because an error passed through, has not happened.
        if let Some(writer) = writer {
            writer.rollback().map_err(|error| raised(error.to_string()))?;
        }
        match outcome {
            Ok(Ok(results)) => Ok(results),
            Ok(Err(failure)) => Err(self.error(chunk_name.to_owned(), failure)),
            Err(error) => Err(raised(error.to_string())),
        }
    }
}

fn compile_script(
    engine: &Engine,
    chunk_name: &str,
    text: &[u8],
    arguments: &[Value],
) -> mlua::Result<Function> {
    let session: Table = engine.core().get("session")?;
    let texts = engine.lua().create_table()?;
    for argument in arguments {
        if let Value::String(text) = argument {
            texts.push(engine.lua().create_string(text)?)?;
        }
    }
    session.raw_set("arg", texts)?;
    let print = engine.lua().create_function(|_, line: mlua::LuaString| {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(&line.as_bytes()).and_then(|()| stdout.write_all(b"\n")).map_err(|error| {
            mlua::Error::RuntimeError(format!("cannot write to the standard output: {error}"))
        })
    })?;
    engine.core().set("write_out", print)?;
    engine
        .lua()
        .load(&load::source_text(text)[..])
        .set_name(format!("@{chunk_name}"))
        .set_mode(ChunkMode::Text)
        .set_environment(session)
        .into_function()
}

/// The place of a procedure's function in the prelude's list, which counts from 1.
fn run_index(procedure: ProcedureId) -> i64 {
    i64::from(procedure.0) + 1
}

fn check_arguments(arguments: &[Value]) -> Result<(), CallError> {
    if arguments.len() > ARGUMENTS_MAX {
        let message = format!(
            "{} arguments are too many; {ARGUMENTS_MAX} may be passed, or a table",
            arguments.len()
        );
        return Err(CallError::Value { message });
    }
    match arguments.iter().position(|argument| !argument.is_passable()) {
        None => Ok(()),
        Some(place) => Err(CallError::Value {
            message: format!(
                "argument {} is nested too deeply, or has a map key that is not a string, number or boolean",
                place + 1
            ),
        }),
    }
}

fn same_names(a: &[Procedure], b: &[Procedure]) -> bool {
    a.iter().map(|procedure| &procedure.name).eq(b.iter().map(|procedure| &procedure.name))
}
