//! A Lua virtual machine and the calls into it: limits, errors, and a new state where the old one
//! can no longer be trusted.

use std::{cell::RefCell, io::Write as _, rc::Rc, sync::Arc, time::Duration};

use mlua::{Function, Table, chunk::ChunkMode};
use tokaido_store::{Store, Writer};

use crate::{
    CallError, Dialect, HostFunction, HttpRequest, HttpResponse, Interrupt, Language, Limits,
    LoadError, Procedure, ProcedureId, Runtime, RuntimeError, Scope, Settings, Source, Sources,
    UnknownDialect, Value,
    bridge::{context::StoreOrReason, functions::SharedFunction},
    failure::Failure,
    limits::ARGUMENTS_MAX,
    load, runtime,
    state::LuaState,
};

/// Lua as a language of procedures: a VM for each dialect that has files.
#[derive(Clone, Debug)]
pub struct Lua {
    /// Those that files may be written in.
    pub dialects: &'static [&'static Dialect],
    /// What they are told.
    pub settings: Arc<Settings>,
}

impl Default for Lua {
    fn default() -> Self {
        Self { dialects: Dialect::ALL, settings: Arc::default() }
    }
}

impl Language for Lua {
    fn extension(&self) -> &'static str {
        load::EXTENSION
    }

    fn start(
        &self,
        store: &Arc<dyn Store>,
        sources: &Sources,
        limits: Limits,
    ) -> Result<(Box<dyn Runtime>, Vec<LoadError>), RuntimeError> {
        let (mut runtimes, mut errors) = (Vec::<Box<dyn Runtime>>::new(), Vec::new());
        for &dialect in self.dialects {
            if load::of_dialect(sources, dialect).next().is_some() {
                let (store, settings) = (Ok(Arc::clone(store)), Arc::clone(&self.settings));
                let (vm, failed) = Vm::start(dialect, store, sources, limits, settings)?;
                runtimes.push(Box::new(vm));
                errors.extend(failed);
            }
        }
        let is_known = |source: &Source| {
            self.dialects.iter().any(|dialect| dialect.name == source.dialect_name())
        };
        for source in sources.of(load::EXTENSION).filter(|source| !is_known(source)) {
            let error = UnknownDialect { name: source.dialect_name().to_owned() };
            errors.push(LoadError::of_file(source, error.to_string()));
        }
        Ok((runtime::together(runtimes), errors))
    }
}

/// A Lua virtual machine with every procedure loaded. It belongs to one thread.
pub struct Vm {
    state: LuaState,
    procedures: Vec<Procedure>,
    functions: Vec<SharedFunction>,
    store: StoreOrReason,
    sources: Sources,
    limits: Limits,
    settings: Arc<Settings>,
    interrupt: Interrupt,
}

impl Vm {
    /// Starts a VM of the native dialect and loads those of `sources` that are written in it. Files with errors are left out and reported; the others
    /// serve.
    ///
    /// # Errors
    /// If LuaJIT cannot start.
    pub fn new(
        store: &Arc<dyn Store>,
        sources: &Sources,
        limits: Limits,
    ) -> Result<(Self, Vec<LoadError>), RuntimeError> {
        Self::start(&Dialect::NATIVE, Ok(Arc::clone(store)), sources, limits, Arc::default())
    }

    /// Starts a VM of any dialect, as [`new`](Self::new) does of the native one.
    ///
    /// # Errors
    /// If LuaJIT cannot start.
    pub fn of_dialect(
        dialect: &'static Dialect,
        store: &Arc<dyn Store>,
        sources: &Sources,
        limits: Limits,
    ) -> Result<(Self, Vec<LoadError>), RuntimeError> {
        Self::start(dialect, Ok(Arc::clone(store)), sources, limits, Arc::default())
    }

    /// Starts a VM that has no store and no procedures, for scripts alone: in them
    /// `tokaido.transact` and `tokaido.snapshot` raise `why`.
    ///
    /// # Errors
    /// If LuaJIT cannot start.
    pub fn without_store(why: &str) -> Result<Self, RuntimeError> {
        let (dialect, sources) = (&Dialect::NATIVE, Sources::default());
        let limits = Limits::default();
        let (vm, _) = Self::start(dialect, Err(why.into()), &sources, limits, Arc::default())?;
        Ok(vm)
    }

    pub(crate) fn start(
        dialect: &'static Dialect,
        store: StoreOrReason,
        sources: &Sources,
        limits: Limits,
        settings: Arc<Settings>,
    ) -> Result<(Self, Vec<LoadError>), RuntimeError> {
        let interrupt = Interrupt::default();
        let mut state = LuaState::new(dialect, &store, limits, interrupt.clone())?;
        settings.tell(&mut state, &store)?;
        let (procedures, errors) = load::load(&mut state, sources)?;
        let (functions, sources) = (Vec::new(), sources.clone());
        let vm = Self { state, procedures, functions, store, sources, limits, settings, interrupt };
        Ok((vm, errors))
    }

    /// What stops the calls and scripts of this VM.
    #[must_use]
    pub fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// Makes a function a global of that name in the scripts of [`run_script`](Self::run_script).
    /// Arguments and result are converted as those of procedures; its `Err`, and a panic in it,
    /// is an error at the line that called it.
    ///
    /// # Errors
    /// If the VM has no memory left.
    pub fn set_function(&mut self, name: &str, function: HostFunction) -> Result<(), RuntimeError> {
        let function: SharedFunction = Rc::new((name.to_owned(), RefCell::new(function)));
        let set = self.state.set_function(Rc::clone(&function));
        set.map_err(|error| cannot_start(&error))?;
        self.functions.push(function);
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn state_for_tests(&mut self) -> &mut LuaState {
        &mut self.state
    }

    fn forget_dropped(&mut self) {
        if let Ok(store) = &self.store {
            self.state.forget_dropped(store.databases_dropped());
        }
    }

    fn begin(&mut self, procedure: ProcedureId, scope: Scope<'_>) {
        self.state.forget_seed();
        self.forget_dropped();
        let name = &self.procedures[procedure.index()].name;
        let context = self.state.context();
        context.procedure.clear();
        context.procedure.push_str(name);
        // SAFETY: the caller lends both for the call, and `end` takes them back before the call
        // returns.
        unsafe { context.begin(scope) };
    }

    /// Takes the transaction back, and turns what went wrong into an error.
    fn end<T>(
        &mut self,
        procedure: ProcedureId,
        result: Result<T, Failure>,
    ) -> Result<T, CallError> {
        let poison = self.state.context().end();
        let failure = match (result, poison) {
            (Ok(result), None) => return Ok(result),
            // What a refusal keeps would be committed, too.
            (Ok(_) | Err(Failure::Refused { is_kept: true, .. }), Some(message)) => {
                Failure::Raised { message, traceback: String::new() }
            }
            (Err(failure), _) => failure,
        };
        if !matches!(failure, Failure::Refused { is_kept: true, .. }) {
            self.state.context().free_locks();
        }
        if matches!(failure, Failure::Memory) {
            self.replace_state();
        }
        let name = self.procedures[procedure.index()].name.clone();
        Err(self.error(name, failure))
    }

    fn error(&self, name: String, failure: Failure) -> CallError {
        match failure {
            Failure::Raised { message, traceback } => CallError::Raised { message, traceback },
            Failure::Refused { message, code, status, is_kept } => {
                CallError::Refused { message, code, status, is_kept }
            }
            Failure::Memory => {
                CallError::MemoryLimit { name, limit_bytes: self.limits.memory_bytes }
            }
            Failure::Time => CallError::TimeLimit { name, limit_ms: in_ms(self.limits.time) },
            Failure::Interrupted => CallError::Interrupted,
            Failure::Result(why) => {
                CallError::Value { message: why.message(&format!("the result of {name}")) }
            }
        }
    }

    /// After it was refused memory a VM may be in a state that nobody tested; a new one is cheap.
    fn replace_state(&mut self) {
        let replaced =
            LuaState::new(self.state.dialect(), &self.store, self.limits, self.interrupt())
                .and_then(|mut state| {
                    self.settings.tell(&mut state, &self.store)?;
                    let (procedures, _) = load::load(&mut state, &self.sources)?;
                    for function in &self.functions {
                        let set = state.set_function(Rc::clone(function));
                        set.map_err(|error| cannot_start(&error))?;
                    }
                    Ok((state, procedures))
                });
        match replaced {
            // A file may load differently the second time; then the old state keeps the numbers
            // of procedures true.
            Ok((state, procedures)) if same_names(&procedures, &self.procedures) => {
                self.state = state;
            }
            Ok(_) => tracing::warn!("procedures load differently than before; keeping the VM"),
            Err(error) => tracing::error!("cannot replace a VM after its memory limit: {error}"),
        }
    }

    /// Runs a chunk outside of any transaction, for `tokaido run` and the shell. Its memory has no
    /// limit, and its time has one only if [`Limits::script_time`] says so; [`interrupt`](Self::interrupt)
    /// stops it.
    /// In the native dialect, `tokaido.transact(f, …)` calls `f(tx, …)` in a transaction that is durable when it
    /// returns, `tokaido.snapshot(f, …)` calls it on a snapshot, and `print` writes to stdout. The
    /// arguments are `...` in the chunk, and the global `arg`. In the dialects of Kyoto Tycoon and Tokyo Tyrant the
    /// whole script is one transaction, as a call is.
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
        self.forget_dropped();
        let raised = |message: String| CallError::Raised { message, traceback: String::new() };
        let mut exit_status = None::<u8>;
        let outcome = self.state.with_memory_of_scripts(|state| {
            let chunk = match compile_script(state, chunk_name, text, arguments) {
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
                // SAFETY: only the lifetime is lengthened; it is taken away again below.
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
        // What a script left open, because an error passed through, has not happened.
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

impl Runtime for Vm {
    fn procedures(&self) -> &[Procedure] {
        &self.procedures
    }

    fn call(
        &mut self,
        procedure: ProcedureId,
        scope: Scope<'_>,
        arguments: &[Value],
    ) -> Result<Value, CallError> {
        let called = &self.procedures[procedure.index()];
        if let Some(route) = &called.route {
            return Err(CallError::Value {
                message: format!(
                    "{} answers {} {}; call it over HTTP",
                    called.name, route.method, route.pattern
                ),
            });
        }
        check_arguments(arguments)?;
        self.begin(procedure, scope);
        let result = self.state.call(run_index(procedure), arguments);
        self.end(procedure, result)
    }

    fn call_http(
        &mut self,
        procedure: ProcedureId,
        scope: Scope<'_>,
        request: &HttpRequest<'_>,
        response: &mut HttpResponse,
    ) -> Result<(), CallError> {
        let called = &self.procedures[procedure.index()];
        assert!(called.route.is_some(), "{} has no route", called.name);
        response.clear();
        let run = run_index(procedure);
        self.exchange(procedure, scope, request, response, |state| state.dispatch(run))
    }

    fn resume_http(
        &mut self,
        procedure: ProcedureId,
        slot: u64,
        scope: Scope<'_>,
        request: &HttpRequest<'_>,
        response: &mut HttpResponse,
    ) -> Result<(), CallError> {
        self.exchange(procedure, scope, request, response, |state| state.wake(slot))
    }

    fn abandon_http(&mut self, _: ProcedureId, slot: u64) {
        let abandon = || self.state.core().get::<Function>("abandon")?.call::<()>(slot as f64);
        if let Err(error) = abandon() {
            tracing::warn!(%error, "a handler that nobody waits for any more is not given up");
        }
    }
}

impl Vm {
    /// Runs a handler, or a part of one, with what it is lent.
    fn exchange(
        &mut self,
        procedure: ProcedureId,
        scope: Scope<'_>,
        request: &HttpRequest<'_>,
        response: &mut HttpResponse,
        run: impl FnOnce(&mut LuaState) -> Result<(), Failure>,
    ) -> Result<(), CallError> {
        self.begin(procedure, scope);
        // SAFETY: both are borrowed for the whole of this function, and given back below.
        unsafe { self.state.context().exchange.begin(request, response) };
        let result = run(&mut self.state);
        self.state.context().exchange.end();
        let result = self.end(procedure, result);
        if result.is_err() && !response.is_sent {
            response.clear();
        }
        result
    }
}

fn compile_script(
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
    // A dialect may have more to do around a script.
    match core.get::<Option<Function>>("script_of")? {
        Some(script_of) => script_of.call(chunk),
        None => Ok(chunk),
    }
}

/// A function that writes a text to the standard output, with this behind it.
fn writer_of_stdout(state: &LuaState, end: &'static [u8]) -> mlua::Result<Function> {
    state.lua().create_function(move |_, text: mlua::LuaString| {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(&text.as_bytes()).and_then(|()| stdout.write_all(end)).map_err(|error| {
            mlua::Error::RuntimeError(format!("cannot write to the standard output: {error}"))
        })
    })
}

/// The place of a procedure's function in the prelude's list, which counts from 1.
fn run_index(procedure: ProcedureId) -> i64 {
    procedure.index() as i64 + 1
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

fn in_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// What mlua says when a Lua state cannot be made.
pub(crate) fn cannot_start(error: &mlua::Error) -> RuntimeError {
    RuntimeError { language: "Lua", message: error.to_string() }
}
