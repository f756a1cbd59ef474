//! What the server needs of a language: procedures that can be listed and called.

use std::sync::Arc;

use tokaido_store::Store;

use crate::{
    CallError, HttpRequest, HttpResponse, Interrupt, Limits, LoadError, Procedure, ProcedureId,
    Scope, Sources, Timer, Value,
};

/// The procedures of some sources, ready to be called. It belongs to one thread.
pub trait Runtime {
    /// Every procedure; a [`ProcedureId`] is an index into them.
    fn procedures(&self) -> &[Procedure];

    /// The procedure of that name, if it may be called.
    fn find(&self, name: &[u8]) -> Option<ProcedureId> {
        let is_meant = |p: &Procedure| p.name.as_bytes() == name && p.hook.is_none();
        let found = self.procedures().iter().position(is_meant);
        found.map(ProcedureId::from_index)
    }

    /// What stops its calls: one interrupt for each virtual machine.
    fn interrupts(&self) -> Vec<Interrupt> {
        Vec::new()
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

    /// Resumes a handler that waits; [`HttpResponse::waiting`] has given its slot. Request and response are those
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

    /// Abandons a handler that waits.
    fn abandon_http(&mut self, _procedure: ProcedureId, _slot: u64) {}

    /// The timers that were made since the last call.
    fn take_timers(&mut self) -> Vec<Timer> {
        Vec::new()
    }

    /// Whether a timer has yet to run, or has not finished.
    fn has_timer(&self, _timer: u64) -> bool {
        false
    }

    /// Runs the function of a timer that is due, or resumes it where it waits; then
    /// [`HttpResponse::waiting`] has given the slot. It answers nobody, so the response holds nothing else.
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

    /// Abandons a timer, and its function if that waits.
    fn abandon_timer(&mut self, _timer: u64, _slot: Option<u64>) {}

    /// Tells the runtime that nothing new begins in it any more. Timers that run from here on are told that they
    /// are premature.
    fn retire(&mut self) {}
}

/// A language that procedures are written in.
pub trait Language: Send + Sync {
    /// The extension of its files, without the dot.
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
