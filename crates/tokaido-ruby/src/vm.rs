//! A Ruby virtual machine with every Ruby file loaded, and the calls into it: limits, errors, and a
//! new state when the old one can no longer be trusted.

use std::{path::PathBuf, sync::Arc};

use tokaido_mruby_sys::Item;
use tokaido_script::{
    CallError, Dialect, HttpRequest, HttpResponse, Interrupt, Language, Limits, LoadError,
    Procedure, ProcedureId, Runtime, RuntimeError, Scope, Sources, Value, check_arguments,
    together,
};
use tokaido_store::Store;

use crate::{
    context::SharedCommand,
    items,
    load::{self, EXTENSION},
    report::Failure,
    setup::Setup,
    state::{RubyState, Usage},
};

/// Ruby as a language for procedures; mod_mruby scripts get a virtual machine of their own.
#[derive(Clone, Debug, Default)]
pub struct Ruby {
    /// The directory below which mod_mruby scripts may access files; `None`: no files.
    pub document_root: Option<PathBuf>,
}

impl Language for Ruby {
    fn extension(&self) -> &'static str {
        EXTENSION
    }

    fn start(
        &self,
        store: &Arc<dyn Store>,
        sources: &Sources,
        limits: Limits,
    ) -> Result<(Box<dyn Runtime>, Vec<LoadError>), RuntimeError> {
        let (vm, mut errors) = RubyVm::new(store, sources, limits)?;
        let root = self.document_root.clone();
        let (scripts, failed) = RubyVm::of_mod_mruby(store, sources, limits, root)?;
        errors.extend(failed);
        Ok((together(vec![Box::new(vm), Box::new(scripts)]), errors))
    }
}

/// The procedures of the Ruby files among the sources. It has a virtual machine if there are any files.
pub struct RubyVm {
    pub(crate) state: Option<RubyState>,
    procedures: Vec<Procedure>,
    setup: Setup,
    /// The number of dropped databases when Ruby last forgot its database objects.
    dropped: u64,
    /// The function that `command` in lines and scripts calls.
    pub(crate) command: Option<SharedCommand>,
}

impl RubyVm {
    /// Loads the files in the native dialect. Those with errors are skipped and reported; the others are usable.
    ///
    /// # Errors
    /// If mruby cannot start.
    pub fn new(
        store: &Arc<dyn Store>,
        sources: &Sources,
        limits: Limits,
    ) -> Result<(Self, Vec<LoadError>), RuntimeError> {
        Self::start(Setup {
            store: Some(Arc::clone(store)),
            sources: sources.clone(),
            limits,
            interrupt: Interrupt::default(),
            dialect: &Dialect::NATIVE,
            document_root: None,
        })
    }

    /// Creates one for the lines of a shell, which may require the files. `interrupt` stops them.
    /// Load errors are not reported.
    ///
    /// # Errors
    /// If mruby cannot start.
    pub fn for_lines(
        store: &Arc<dyn Store>,
        sources: &Sources,
        interrupt: Interrupt,
    ) -> Result<Self, RuntimeError> {
        let setup = Setup {
            store: Some(Arc::clone(store)),
            sources: sources.clone(),
            limits: Limits::default(),
            interrupt,
            dialect: &Dialect::NATIVE,
            document_root: None,
        };
        Ok(Self::start(setup)?.0)
    }

    /// Creates one for the lines of a shell only: it has no store and no procedures.
    #[must_use]
    pub fn without_store(interrupt: Interrupt) -> Self {
        let setup = Setup {
            store: None,
            sources: Sources::default(),
            limits: Limits::default(),
            interrupt,
            dialect: &Dialect::NATIVE,
            document_root: None,
        };
        Self { state: None, procedures: Vec::new(), setup, dropped: 0, command: None }
    }

    /// Loads the files written for mod_mruby, which may access files below `document_root`.
    ///
    /// # Errors
    /// If mruby cannot start.
    pub fn of_mod_mruby(
        store: &Arc<dyn Store>,
        sources: &Sources,
        limits: Limits,
        document_root: Option<PathBuf>,
    ) -> Result<(Self, Vec<LoadError>), RuntimeError> {
        Self::start(Setup {
            store: Some(Arc::clone(store)),
            sources: sources.clone(),
            limits,
            interrupt: Interrupt::default(),
            dialect: &Dialect::MOD_MRUBY,
            document_root,
        })
    }

    fn start(setup: Setup) -> Result<(Self, Vec<LoadError>), RuntimeError> {
        let (mut state, mut procedures, mut errors) = (None, Vec::new(), Vec::new());
        if setup.files().next().is_some() {
            let mut made = RubyState::new(&setup)?;
            (procedures, errors) = load::load(&mut made, &setup)?;
            state = Some(made);
        }
        let dropped = setup.databases_dropped();
        let command = None;
        Ok((Self { state, procedures, setup, dropped, command }, errors))
    }

    /// The handle that stops the calls of this VM.
    #[must_use]
    pub fn interrupt(&self) -> Interrupt {
        self.setup.interrupt.clone()
    }

    /// What its virtual machine holds, if it has one. Collects garbage first.
    pub fn usage(&mut self) -> Usage {
        self.state.as_mut().map(RubyState::usage).unwrap_or_default()
    }

    /// Calls a procedure; one that answers a request gets the request and its response.
    fn run(
        &mut self,
        procedure: ProcedureId,
        scope: Scope<'_>,
        arguments: &[Value],
        exchange: Option<(&HttpRequest<'_>, &mut HttpResponse)>,
    ) -> Result<Value, CallError> {
        let name = &self.procedures[procedure.index()].name;
        let Some(state) = &mut self.state else { panic!("{name} has a file, so there is a VM") };
        let dropped = self.setup.databases_dropped();
        if dropped != self.dropped {
            self.dropped = dropped;
            // If this fails, it is for lack of memory, and the call fails likewise.
            let _ = state.call(c"forget_databases", &[], 0);
        }
        let (place, is_handler) = (procedure.index(), exchange.is_some());
        let mut given: Vec<Item> = Vec::new();
        arguments.iter().for_each(|argument| items::flatten(argument, &mut given));
        let context = state.context();
        context.procedure.clone_from(name);
        // SAFETY: the caller lends both for the call; they are taken back below, before it returns.
        unsafe { context.begin(scope) };
        if let Some((request, response)) = exchange {
            // SAFETY: as above.
            unsafe { context.exchange.begin(request, response) };
        }
        let result = match self.setup.is_mod_mruby() {
            true => state.answer(place),
            false => state.run_procedure(place, is_handler, &given, arguments.len()),
        };
        let context = state.context();
        context.exchange.end();
        let poison = context.end();
        let result = match (result, poison) {
            (Ok(value), None) => return Ok(self.replace_if_worn(value)),
            (Ok(_), Some(message)) => Failure::Raised { message, traceback: String::new() },
            (Err(failure), _) => failure,
        };
        let (name, limits) = (name.clone(), self.setup.limits);
        if matches!(result, Failure::Memory) {
            self.replace_state();
        } else {
            self.replace_if_worn(());
        }
        Err(result.into_error(name, limits))
    }

    pub(crate) fn replace_if_worn<T>(&mut self, result: T) -> T {
        if self.state.as_ref().is_some_and(RubyState::is_worn) {
            self.replace_state();
        }
        result
    }

    pub(crate) fn limits(&self) -> Limits {
        self.setup.limits
    }

    /// Creates a state without procedures.
    pub(crate) fn new_state(&self) -> Result<RubyState, RuntimeError> {
        let mut state = RubyState::new(&self.setup)?;
        state.context().command = self.command.clone();
        Ok(state)
    }

    /// A VM that was refused memory may be in an untested state; a new one is cheap.
    pub(crate) fn replace_state(&mut self) {
        let replaced = self.new_state().and_then(|mut state| {
            let (procedures, _) = load::load(&mut state, &self.setup)?;
            Ok((state, procedures))
        });
        let names = |procedures: &[Procedure]| -> Vec<String> {
            procedures.iter().map(|procedure| procedure.name.clone()).collect()
        };
        match replaced {
            // If a file loads differently the second time, the old state keeps the procedures' numbers valid.
            Ok((state, procedures)) if names(&procedures) == names(&self.procedures) => {
                self.state = Some(state);
            }
            Ok(_) => tracing::warn!("procedures load differently than before; keeping the VM"),
            Err(error) => tracing::error!("cannot replace a VM: {error}"),
        }
    }
}

impl Runtime for RubyVm {
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
        self.run(procedure, scope, arguments, None)
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
        let result = self.run(procedure, scope, &[], Some((request, &mut *response)));
        if result.is_err() {
            response.clear();
        }
        result.map(|_| ())
    }
}
