//! A Lua virtual machine and the calls into it: limits, errors, and a new state when the old one can
//! no longer be trusted.

use std::{cell::RefCell, rc::Rc, sync::Arc, time::Duration};

use mlua::Function;
use tokaido_store::Store;

use crate::{
    CallError, Dialect, HostFunction, HttpRequest, HttpResponse, Interrupt, Language, Limits,
    LoadError, Procedure, ProcedureId, Runtime, RuntimeError, Scope, Settings, Source, Sources,
    Timer, UnknownDialect, Value,
    bridge::{context::StoreOrReason, functions::SharedFunction},
    failure::Failure,
    limits::ARGUMENTS_MAX,
    load,
    state::LuaState,
    together,
};

/// Lua as a language of procedures: a VM for each dialect that has files.
#[derive(Clone, Debug)]
pub struct Lua {
    /// The dialects that files may be written in.
    pub dialects: Vec<&'static Dialect>,
    /// The operator's settings for them.
    pub settings: Arc<Settings>,
}

impl Default for Lua {
    fn default() -> Self {
        Self { dialects: Dialect::of_lua().collect(), settings: Arc::default() }
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
        for &dialect in &self.dialects {
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
        Ok((together(runtimes), errors))
    }
}

/// A Lua virtual machine with every procedure loaded. It belongs to one thread.
pub struct Vm {
    pub(crate) state: LuaState,
    procedures: Vec<Procedure>,
    functions: Vec<SharedFunction>,
    store: StoreOrReason,
    sources: Sources,
    pub(crate) limits: Limits,
    settings: Arc<Settings>,
    interrupt: Interrupt,
    /// Whether its timers are premature from now on.
    is_retired: bool,
}

impl Vm {
    /// Starts a VM of the native dialect, and loads those of `sources` that are written in it. Files with errors are left out and
    /// reported; the others serve.
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

    /// Starts a VM of any dialect, as [`new`](Self::new) does for the native one.
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

    /// Starts a VM that has no store and no procedures, only for scripts. In them
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
        let is_retired = false;
        let vm = Self {
            state,
            procedures,
            functions,
            store,
            sources,
            limits,
            settings,
            interrupt,
            is_retired,
        };
        Ok((vm, errors))
    }

    /// What stops the calls and scripts of this VM.
    #[must_use]
    pub fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// Makes a function a global of that name in the scripts of [`run_script`](Self::run_script).
    /// Arguments and result are converted like those of procedures. An `Err`, or a panic in it,
    /// becomes an error at the line that called it.
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

    pub(crate) fn forget_dropped(&mut self) {
        if let Ok(store) = &self.store {
            self.state.forget_dropped(store.databases_dropped());
        }
    }

    fn begin(&mut self, procedure: ProcedureId, scope: Scope<'_>) {
        let context = self.state.context();
        context.procedure.clear();
        context.procedure.push_str(&self.procedures[procedure.index()].name);
        self.lend(scope);
    }

    /// Prepares a call that [`Context::procedure`](crate::bridge::Context) names; lends it `scope`.
    fn lend(&mut self, scope: Scope<'_>) {
        self.state.forget_seed();
        self.forget_dropped();
        // SAFETY: the caller lends transaction and host, to be used only here, until the call
        // returns, and `end` takes them back before that.
        unsafe { self.state.context().begin(scope) };
    }

    /// Takes the transaction back, and turns a failure into an error.
    fn end<T>(&mut self, result: Result<T, Failure>) -> Result<T, CallError> {
        let poison = self.state.context().end();
        let failure = match (result, poison) {
            (Ok(result), None) => return Ok(result),
            // A refusal that keeps its writes would commit this, too.
            (Ok(_) | Err(Failure::Refused { is_kept: true, .. }), Some(message)) => {
                Failure::Raised { message, traceback: String::new() }
            }
            (Err(failure), _) => failure,
        };
        if !matches!(failure, Failure::Refused { is_kept: true, .. }) {
            self.state.context().free_locks();
        }
        let name = self.state.context().procedure.clone();
        if matches!(failure, Failure::Memory) {
            self.replace_state();
        }
        Err(self.error(name, failure))
    }

    pub(crate) fn error(&self, name: String, failure: Failure) -> CallError {
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

    /// Replaces the state. After a refused allocation it may be in an untested condition; a new one is cheap.
    pub(crate) fn replace_state(&mut self) {
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
            // A file may load differently the second time. Then the old state is kept, so that the
            // numbers of procedures stay valid.
            Ok((state, procedures)) if same_names(&procedures, &self.procedures) => {
                let timers = self.state.timers().count();
                if timers > 0 {
                    tracing::warn!(timers, "timers are lost with a VM that met its memory limit");
                }
                self.state = state;
                if self.is_retired {
                    self.state.retire();
                }
            }
            Ok(_) => tracing::warn!("procedures load differently than before; keeping the VM"),
            Err(error) => tracing::error!("cannot replace a VM after its memory limit: {error}"),
        }
    }
}

impl Runtime for Vm {
    fn procedures(&self) -> &[Procedure] {
        &self.procedures
    }

    fn interrupts(&self) -> Vec<Interrupt> {
        vec![self.interrupt()]
    }

    fn call(
        &mut self,
        procedure: ProcedureId,
        scope: Scope<'_>,
        arguments: &[Value],
    ) -> Result<Value, CallError> {
        let called = &self.procedures[procedure.index()];
        if let Some(route) = &called.route {
            return Err(CallError::Value { message: called.answers(route) });
        }
        check_arguments(arguments)?;
        self.begin(procedure, scope);
        let result = self.state.call(run_index(procedure), arguments);
        self.end(result)
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
        self.begin(procedure, scope);
        self.exchange(request, response, |state| state.dispatch(run))
    }

    fn resume_http(
        &mut self,
        procedure: ProcedureId,
        slot: u64,
        scope: Scope<'_>,
        request: &HttpRequest<'_>,
        response: &mut HttpResponse,
    ) -> Result<(), CallError> {
        self.begin(procedure, scope);
        self.exchange(request, response, |state| state.wake(slot))
    }

    fn abandon_http(&mut self, _: ProcedureId, slot: u64) {
        let abandon = || self.state.core().get::<Function>("abandon")?.call::<()>(slot as f64);
        if let Err(error) = abandon() {
            tracing::warn!(%error, "a handler that nobody waits for any more is not given up");
        }
    }

    fn take_timers(&mut self) -> Vec<Timer> {
        self.state.context().timers.take_made()
    }

    fn has_timer(&self, timer: u64) -> bool {
        self.state.timers().has(timer)
    }

    fn run_timer(
        &mut self,
        timer: &Timer,
        slot: Option<u64>,
        scope: Scope<'_>,
        request: &HttpRequest<'_>,
        response: &mut HttpResponse,
    ) -> Result<(), CallError> {
        let (context, number) = (self.state.context(), timer.number);
        context.timers.begin(number);
        context.procedure.clear();
        context.procedure.push_str(timer.name());
        self.lend(scope);
        let result = self.exchange(request, response, |state| match slot {
            None => state.fire(number),
            Some(slot) => state.wake(slot),
        });
        if result.is_err() || response.waiting.is_none() {
            self.state.context().timers.end(number);
        }
        result
    }

    fn abandon_timer(&mut self, timer: u64, slot: Option<u64>) {
        self.state.context().timers.end(timer);
        let forget = || self.state.core().get::<Function>("forget_timer")?.call::<()>(timer as f64);
        if let Err(error) = forget() {
            tracing::warn!(%error, "a timer that is not run keeps what it holds");
        }
        if let Some(slot) = slot {
            self.abandon_http(ProcedureId::from_index(0), slot);
        }
    }

    fn retire(&mut self) {
        self.is_retired = true;
        self.state.retire();
    }
}

impl Vm {
    /// Runs a handler, or a part of one, in a call that has begun.
    fn exchange(
        &mut self,
        request: &HttpRequest<'_>,
        response: &mut HttpResponse,
        run: impl FnOnce(&mut LuaState) -> Result<(), Failure>,
    ) -> Result<(), CallError> {
        // SAFETY: both are borrowed for the whole of this function, and returned below.
        unsafe { self.state.context().exchange.begin(request, response) };
        let result = run(&mut self.state);
        self.state.context().exchange.end();
        let result = self.end(result);
        if result.is_err() && !response.is_sent {
            response.clear();
        }
        result
    }
}

/// The index of a procedure's function in the prelude's list, which counts from 1.
fn run_index(procedure: ProcedureId) -> i64 {
    procedure.index() as i64 + 1
}

/// Refuses too many arguments, or ones that cannot be passed to a procedure.
///
/// # Errors
/// In these cases.
pub fn check_arguments(arguments: &[Value]) -> Result<(), CallError> {
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

pub(crate) fn in_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The error for a Lua state that cannot be made.
pub(crate) fn cannot_start(error: &mlua::Error) -> RuntimeError {
    RuntimeError { language: "Lua", message: error.to_string() }
}
