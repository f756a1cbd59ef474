//! What the server needs of a language: procedures that can be listed and called.

use std::sync::Arc;

use tokaido_store::Store;

use crate::{
    CallError, HttpRequest, HttpResponse, Limits, LoadError, Procedure, ProcedureId, Scope,
    Sources, Timer, Value,
};

/// The procedures of some sources, ready to be called. It belongs to one thread.
pub trait Runtime {
    /// Every procedure; a [`ProcedureId`] is a place among them.
    fn procedures(&self) -> &[Procedure];

    /// The procedure of that name, if it may be called.
    fn find(&self, name: &[u8]) -> Option<ProcedureId> {
        let is_meant = |p: &Procedure| p.name.as_bytes() == name && p.hook.is_none();
        let found = self.procedures().iter().position(is_meant);
        found.map(ProcedureId::from_index)
    }

    /// Calls a procedure, and gives its first result. On `Err` the transaction must be rolled back.
    ///
    /// # Errors
    /// See [`CallError`].
    ///
    /// # Panics
    /// If there is no such procedure.
    fn call(
        &mut self,
        procedure: ProcedureId,
        scope: Scope<'_>,
        arguments: &[Value],
    ) -> Result<Value, CallError>;

    /// Calls a procedure that has a route, and fills `response`, which is empty on `Err`.
    ///
    /// # Errors
    /// See [`CallError`].
    ///
    /// # Panics
    /// If there is no such procedure, or it has no route.
    fn call_http(
        &mut self,
        procedure: ProcedureId,
        scope: Scope<'_>,
        request: &HttpRequest<'_>,
        response: &mut HttpResponse,
    ) -> Result<(), CallError>;

    /// Goes on with a handler that waits: [`HttpResponse::waiting`] has told its slot. Request and response are those
    /// that it was called with.
    ///
    /// # Errors
    /// See [`CallError`].
    fn resume_http(
        &mut self,
        procedure: ProcedureId,
        _slot: u64,
        _scope: Scope<'_>,
        _request: &HttpRequest<'_>,
        _response: &mut HttpResponse,
    ) -> Result<(), CallError> {
        panic!("no handler of this runtime waits, so {procedure:?} does not")
    }

    /// Gives up a handler that waits.
    fn abandon_http(&mut self, _procedure: ProcedureId, _slot: u64) {}

    /// The timers that were made since this was called the last time.
    fn take_timers(&mut self) -> Vec<Timer> {
        Vec::new()
    }

    /// Whether a timer is still to be run, or is not done.
    fn has_timer(&self, _timer: u64) -> bool {
        false
    }

    /// Runs the function of a timer whose time is over, or goes on with it where it waits: then
    /// [`HttpResponse::waiting`] has told the slot. It answers nobody, so the response has nothing else.
    ///
    /// # Errors
    /// See [`CallError`].
    fn run_timer(
        &mut self,
        timer: &Timer,
        _slot: Option<u64>,
        _scope: Scope<'_>,
        _request: &HttpRequest<'_>,
        _response: &mut HttpResponse,
    ) -> Result<(), CallError> {
        panic!("this runtime has no timers, so it has not made {timer:?}")
    }

    /// Gives up a timer, and its function if that waits.
    fn abandon_timer(&mut self, _timer: u64, _slot: Option<u64>) {}

    /// Tells it that nothing new is begun in it any more. The timers that are run from here on are told that their
    /// time is not over.
    fn retire(&mut self) {}
}

/// A language that procedures are written in.
pub trait Language: Send + Sync {
    /// How the names of its files end, without the dot.
    fn extension(&self) -> &'static str;

    /// Makes a runtime of the files of this language. Files with errors are left out and reported;
    /// the others serve.
    ///
    /// # Errors
    /// If the language itself cannot start.
    fn start(
        &self,
        store: &Arc<dyn Store>,
        sources: &Sources,
        limits: Limits,
    ) -> Result<(Box<dyn Runtime>, Vec<LoadError>), RuntimeError>;
}

/// A runtime could not be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot start {language}: {message}")]
pub struct RuntimeError {
    /// The language.
    pub language: &'static str,
    /// What went wrong.
    pub message: String,
}

/// Starts every language, and makes one runtime of them.
///
/// # Errors
/// See [`Language::start`].
pub fn start(
    languages: &[Arc<dyn Language>],
    store: &Arc<dyn Store>,
    sources: &Sources,
    limits: Limits,
) -> Result<(Box<dyn Runtime>, Vec<LoadError>), RuntimeError> {
    if let [language] = languages {
        return language.start(store, sources, limits);
    }
    let (mut runtimes, mut errors) = (Vec::new(), Vec::new());
    for language in languages {
        let (runtime, failed) = language.start(store, sources, limits)?;
        runtimes.push(runtime);
        errors.extend(failed);
    }
    Ok((together(runtimes), errors))
}

/// One runtime made of several.
#[must_use]
pub fn together(mut runtimes: Vec<Box<dyn Runtime>>) -> Box<dyn Runtime> {
    if runtimes.len() == 1
        && let Some(runtime) = runtimes.pop()
    {
        return runtime;
    }
    let procedures = runtimes.iter().flat_map(|runtime| runtime.procedures()).cloned().collect();
    Box::new(Together { runtimes, procedures })
}

/// Several runtimes, whose procedures stand one behind the other.
struct Together {
    runtimes: Vec<Box<dyn Runtime>>,
    procedures: Vec<Procedure>,
}

impl Together {
    /// The runtime of a procedure, and its place there.
    fn locate(&mut self, procedure: ProcedureId) -> (&mut dyn Runtime, ProcedureId) {
        let mut index = procedure.index();
        for runtime in &mut self.runtimes {
            let count = runtime.procedures().len();
            if index < count {
                return (&mut **runtime, ProcedureId::from_index(index));
            }
            index -= count;
        }
        panic!("no procedure {procedure:?}");
    }
}

impl Runtime for Together {
    fn procedures(&self) -> &[Procedure] {
        &self.procedures
    }

    fn call(
        &mut self,
        procedure: ProcedureId,
        scope: Scope<'_>,
        arguments: &[Value],
    ) -> Result<Value, CallError> {
        let (runtime, procedure) = self.locate(procedure);
        runtime.call(procedure, scope, arguments)
    }

    fn call_http(
        &mut self,
        procedure: ProcedureId,
        scope: Scope<'_>,
        request: &HttpRequest<'_>,
        response: &mut HttpResponse,
    ) -> Result<(), CallError> {
        let (runtime, procedure) = self.locate(procedure);
        runtime.call_http(procedure, scope, request, response)
    }

    fn resume_http(
        &mut self,
        procedure: ProcedureId,
        slot: u64,
        scope: Scope<'_>,
        request: &HttpRequest<'_>,
        response: &mut HttpResponse,
    ) -> Result<(), CallError> {
        let (runtime, procedure) = self.locate(procedure);
        runtime.resume_http(procedure, slot, scope, request, response)
    }

    fn abandon_http(&mut self, procedure: ProcedureId, slot: u64) {
        let (runtime, procedure) = self.locate(procedure);
        runtime.abandon_http(procedure, slot);
    }

    fn take_timers(&mut self) -> Vec<Timer> {
        let mut timers = Vec::new();
        for runtime in &mut self.runtimes {
            timers.append(&mut runtime.take_timers());
        }
        timers
    }

    fn has_timer(&self, timer: u64) -> bool {
        self.runtimes.iter().any(|runtime| runtime.has_timer(timer))
    }

    fn run_timer(
        &mut self,
        timer: &Timer,
        slot: Option<u64>,
        scope: Scope<'_>,
        request: &HttpRequest<'_>,
        response: &mut HttpResponse,
    ) -> Result<(), CallError> {
        let mut runtimes = self.runtimes.iter_mut();
        match runtimes.find(|runtime| runtime.has_timer(timer.number)) {
            Some(runtime) => runtime.run_timer(timer, slot, scope, request, response),
            None => panic!("no runtime has {timer:?}"),
        }
    }

    fn abandon_timer(&mut self, timer: u64, slot: Option<u64>) {
        if let Some(runtime) = self.runtimes.iter_mut().find(|runtime| runtime.has_timer(timer)) {
            runtime.abandon_timer(timer, slot);
        }
    }

    fn retire(&mut self) {
        self.runtimes.iter_mut().for_each(|runtime| runtime.retire());
    }
}
