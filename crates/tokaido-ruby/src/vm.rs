//! A Ruby virtual machine with every Ruby file loaded, and the calls into it: limits, errors, and a new state where the
//! old one can no longer be trusted.

use std::{ffi::CStr, sync::Arc};

use tokaido_mruby_sys::Item;
use tokaido_script::{
    CallError, HttpRequest, HttpResponse, Interrupt, Language, Limits, LoadError, Procedure,
    ProcedureId, Runtime, RuntimeError, Scope, Sources, Value, check_arguments,
};
use tokaido_store::Store;

use crate::{
    items,
    load::{self, EXTENSION},
    report::Failure,
    state::{RubyState, Usage},
};

/// Ruby as a language of procedures.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ruby;

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
        let (vm, errors) = RubyVm::new(store, sources, limits)?;
        Ok((Box::new(vm), errors))
    }
}

/// The procedures of the Ruby files among some sources. It has a virtual machine if there are any files.
pub struct RubyVm {
    pub(crate) state: Option<RubyState>,
    procedures: Vec<Procedure>,
    store: Arc<dyn Store>,
    sources: Sources,
    limits: Limits,
    interrupt: Interrupt,
    /// How many databases had been dropped when Ruby last forgot its objects of them.
    dropped: u64,
}

impl RubyVm {
    /// Loads the files. Those with errors are left out and reported; the others serve.
    ///
    /// # Errors
    /// If mruby cannot start.
    pub fn new(
        store: &Arc<dyn Store>,
        sources: &Sources,
        limits: Limits,
    ) -> Result<(Self, Vec<LoadError>), RuntimeError> {
        let interrupt = Interrupt::default();
        let (mut state, mut procedures, mut errors) = (None, Vec::new(), Vec::new());
        if sources.of(EXTENSION).next().is_some() {
            let mut made = RubyState::new(store, sources, limits, interrupt.clone())?;
            (procedures, errors) = load::load(&mut made, sources)?;
            state = Some(made);
        }
        let (store, sources) = (Arc::clone(store), sources.clone());
        let dropped = store.databases_dropped();
        Ok((Self { state, procedures, store, sources, limits, interrupt, dropped }, errors))
    }

    /// What stops the calls of this VM.
    #[must_use]
    pub fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// What its virtual machine holds, if it has one. Collects its garbage.
    pub fn usage(&mut self) -> Usage {
        self.state.as_mut().map(RubyState::usage).unwrap_or_default()
    }

    /// Calls a method of `Tokaido::Core` for a procedure; one that answers a request is lent that, and its response.
    fn run(
        &mut self,
        procedure: ProcedureId,
        scope: Scope<'_>,
        method: &CStr,
        arguments: &[Value],
        exchange: Option<(&HttpRequest<'_>, &mut HttpResponse)>,
    ) -> Result<Value, CallError> {
        let name = &self.procedures[procedure.index()].name;
        let Some(state) = &mut self.state else { panic!("{name} has a file, so there is a VM") };
        let dropped = self.store.databases_dropped();
        if dropped != self.dropped {
            self.dropped = dropped;
            // Should it fail, then for want of memory, and the call does so, too.
            let _ = state.call(c"forget_databases", &[], 0);
        }
        let mut given: Vec<Item> = vec![items::integer(procedure.index() as i64)];
        arguments.iter().for_each(|argument| items::flatten(argument, &mut given));
        let context = state.context();
        context.procedure.clone_from(name);
        // SAFETY: the caller lends both for the call; they are taken back below, before it returns.
        unsafe { context.begin(scope) };
        if let Some((request, response)) = exchange {
            // SAFETY: as above.
            unsafe { context.exchange.begin(request, response) };
        }
        let result = state.call(method, &given, 1 + arguments.len());
        let context = state.context();
        context.exchange.end();
        let poison = context.end();
        let result = match (result, poison) {
            (Ok(value), None) => return Ok(self.replace_if_worn(value)),
            (Ok(_), Some(message)) => Failure::Raised { message, traceback: String::new() },
            (Err(failure), _) => failure,
        };
        let (name, limits) = (name.clone(), self.limits);
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
        self.limits
    }

    /// One without procedures.
    pub(crate) fn new_state(&self) -> Result<RubyState, RuntimeError> {
        RubyState::new(&self.store, &self.sources, self.limits, self.interrupt.clone())
    }

    /// After it was refused memory a VM may be in a state that nobody tested; a new one is cheap.
    pub(crate) fn replace_state(&mut self) {
        let replaced = self.new_state().and_then(|mut state| {
            let (procedures, _) = load::load(&mut state, &self.sources)?;
            Ok((state, procedures))
        });
        let names = |procedures: &[Procedure]| -> Vec<String> {
            procedures.iter().map(|procedure| procedure.name.clone()).collect()
        };
        match replaced {
            // A file may load differently the second time; then the old state keeps the numbers of procedures true.
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
        self.run(procedure, scope, c"call", arguments, None)
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
        let result = self.run(procedure, scope, c"dispatch", &[], Some((request, &mut *response)));
        if result.is_err() {
            response.clear();
        }
        result.map(|_| ())
    }
}
