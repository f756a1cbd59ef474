//! Procedures where they run: a program together with the runtime that its ids belong to.

use std::sync::Arc;

use tokaido_script::{
    CallError, HttpRequest, HttpResponse, Mode, Procedure, ProcedureId, Runtime, RuntimeError,
    Scope, Timer, Transaction, Value,
};

use crate::{
    Shared,
    faults::{self, LastFault},
    program::Program,
    redis::ThreadScripts,
    service::Service,
    watch::{Heartbeat, Role},
};

/// A call failed.
#[derive(Debug)]
pub(crate) struct CallFailure {
    pub(crate) error: CallError,
    /// The id of its log line, unless the procedure refused deliberately.
    pub(crate) request_id: Option<String>,
}

impl CallFailure {
    /// Whether the writes of the procedure are kept all the same; the caller then commits.
    pub(crate) fn is_kept(&self) -> bool {
        self.error.is_kept()
    }
}

/// The means by which requests call procedures. Names, routes and ids all belong to the same
/// program, whose runtime this is: what was found here is called here.
pub struct Procedures<'p> {
    program: &'p Program,
    runtime: &'p mut dyn Runtime,
    /// Scripts of clients: those of the thread, or else made on demand.
    scripts: Scripts<'p>,
    /// The thread's heartbeat, if the thread is watched.
    heartbeat: Option<&'p Heartbeat>,
    /// The last fault of a caller that calls repeatedly.
    last_fault: Option<LastFault>,
}

enum Scripts<'p> {
    OfThread(&'p mut ThreadScripts),
    Own(ThreadScripts),
}

impl<'p> Procedures<'p> {
    /// `runtime` must have the procedures of `program`, in that order.
    pub fn new(program: &'p Program, runtime: &'p mut dyn Runtime) -> Self {
        let scripts = Scripts::Own(ThreadScripts::default());
        Self { program, runtime, scripts, heartbeat: None, last_fault: None }
    }

    /// From now on, a fault is not logged again if the previous call had the same one.
    pub(crate) fn log_once(&mut self, last_fault: LastFault) {
        self.last_fault = Some(last_fault);
    }

    /// Runs something with the scripts of clients.
    pub(crate) fn with_scripts<T>(&mut self, run: impl FnOnce(&mut ThreadScripts) -> T) -> T {
        let _running = self.heartbeat.map(Heartbeat::begin_procedure);
        match &mut self.scripts {
            Scripts::OfThread(scripts) => run(scripts),
            Scripts::Own(scripts) => run(scripts),
        }
    }

    pub(crate) fn program(&self) -> &'p Program {
        self.program
    }

    /// The procedure of that name.
    pub(crate) fn find(&self, name: &[u8]) -> Option<ProcedureId> {
        self.program.find(name)
    }

    pub(crate) fn get(&self, id: ProcedureId) -> &'p Procedure {
        self.program.get(id)
    }

    /// Whether it may be called in the transaction: a procedure that writes needs more than a snapshot.
    pub(crate) fn fits(&self, id: ProcedureId, transaction: &Transaction<'_>) -> bool {
        self.get(id).mode == Mode::Read || matches!(transaction, Transaction::Write(_))
    }

    /// Calls a procedure by name.
    pub(crate) fn call(
        &mut self,
        id: ProcedureId,
        scope: Scope<'_>,
        arguments: &[Value],
    ) -> Result<Value, CallFailure> {
        let scope = self.narrowed(id, scope);
        let _running = self.heartbeat.map(Heartbeat::begin_procedure);
        let result = self.program.timed(id, || self.runtime.call(id, scope, arguments));
        result.map_err(|error| self.failed(id, error))
    }

    /// Calls the handler of a route. If it fails, it may have sent something already.
    pub(crate) fn call_http(
        &mut self,
        id: ProcedureId,
        scope: Scope<'_>,
        request: &HttpRequest<'_>,
    ) -> Result<HttpResponse, (CallFailure, Option<Box<HttpResponse>>)> {
        let scope = self.narrowed(id, scope);
        let mut response = HttpResponse::default();
        let _running = self.heartbeat.map(Heartbeat::begin_procedure);
        let result =
            self.program.timed(id, || self.runtime.call_http(id, scope, request, &mut response));
        self.answered(id, result, response)
    }

    /// Gives up a waiting handler.
    pub(crate) fn abandon_http(&mut self, id: ProcedureId, slot: u64) {
        self.runtime.abandon_http(id, slot);
    }

    /// Goes on with a waiting handler.
    pub(crate) fn resume_http(
        &mut self,
        id: ProcedureId,
        slot: u64,
        scope: Scope<'_>,
        request: &HttpRequest<'_>,
        mut response: HttpResponse,
    ) -> Result<HttpResponse, (CallFailure, Option<Box<HttpResponse>>)> {
        let scope = self.narrowed(id, scope);
        let _running = self.heartbeat.map(Heartbeat::begin_procedure);
        let result = self
            .program
            .timed_again(id, || self.runtime.resume_http(id, slot, scope, request, &mut response));
        self.answered(id, result, response)
    }

    /// Runs the function of a timer, or goes on with it where it waits. Errors are logged.
    pub(crate) fn run_timer(
        &mut self,
        timer: &Timer,
        slot: Option<u64>,
        scope: Scope<'_>,
        request: &HttpRequest<'_>,
        response: &mut HttpResponse,
    ) {
        // A virtual machine that has replaced another one has none of its timers.
        if !self.runtime.has_timer(timer.number) {
            response.clear();
            return;
        }
        let _running = self.heartbeat.map(Heartbeat::begin_procedure);
        let result = self.runtime.run_timer(timer, slot, scope, request, response);
        let Err(error) = result else { return };
        match timer.maker.as_ref().and_then(|maker| self.find(maker.as_bytes())) {
            Some(id) => drop(self.failed(id, error)),
            None => drop(log_fault(timer.name(), &error, None)),
        }
    }

    /// Gives up a timer.
    pub(crate) fn abandon_timer(&mut self, timer: u64, slot: Option<u64>) {
        self.runtime.abandon_timer(timer, slot);
    }

    fn answered(
        &self,
        id: ProcedureId,
        result: Result<(), CallError>,
        response: HttpResponse,
    ) -> Result<HttpResponse, (CallFailure, Option<Box<HttpResponse>>)> {
        match result {
            Ok(()) => Ok(response),
            Err(error) => {
                let sent = response.is_sent.then(|| Box::new(response));
                Err((self.failed(id, error), sent))
            }
        }
    }

    /// Counts a call that failed, and returns what callers are told of it. A refusal is the
    /// procedure's answer, and nobody's fault; everything else is in the log for the operator.
    pub(crate) fn failed(&self, id: ProcedureId, error: CallError) -> CallFailure {
        let procedure = &self.get(id).name;
        let request_id = log_fault(procedure, &error, self.last_fault.as_ref());
        self.program.count_failure(id, request_id.is_none());
        CallFailure { error, request_id }
    }

    /// Restricts a procedure that reads to reading, even in a transaction that may write.
    fn narrowed<'t>(&self, id: ProcedureId, scope: Scope<'t>) -> Scope<'t> {
        match scope.transaction {
            Transaction::Write(tx) if self.get(id).mode == Mode::Read => {
                Scope { transaction: Transaction::Read(tx), host: scope.host }
            }
            transaction => Scope { transaction, host: scope.host },
        }
    }
}

/// Logs what has gone wrong in a procedure, unless it is `last_fault` again, and returns the id of
/// that log line; nothing, if the procedure refused.
fn log_fault(procedure: &str, error: &CallError, last_fault: Option<&LastFault>) -> Option<String> {
    let log = |message: &str, traceback: &str| match last_fault {
        Some(last_fault) => last_fault.log(procedure, message, traceback),
        None => faults::log(procedure, message, traceback),
    };
    match error {
        CallError::Refused { .. } => None,
        CallError::Raised { message, traceback } => Some(log(message, traceback)),
        other => Some(log(&other.to_string(), "")),
    }
}

/// A program in which nothing new is begun.
struct Retired {
    program: Arc<Program>,
    runtime: Box<dyn Runtime>,
    waiting: usize,
}

/// The program as one thread has it, with the thread's own runtime.
pub(crate) struct LocalProgram {
    /// The source of newer programs.
    service: Option<Arc<Service>>,
    program: Arc<Program>,
    runtime: Box<dyn Runtime>,
    scripts: ThreadScripts,
    /// The number of its handlers and timers that wait.
    waiting: usize,
    /// Replaced programs, some of whose handlers or timers still wait.
    retired: Vec<Retired>,
    /// The newest generation that was looked at. If it has no runtime here, it is not tried again.
    seen: u64,
    heartbeat: Arc<Heartbeat>,
}

impl LocalProgram {
    /// The program that serves now, and later those that replace it.
    pub(crate) fn new(service: &Arc<Service>, role: Role) -> Result<Self, RuntimeError> {
        let program = service.shared.program.get();
        let runtime = service.loader.runtime(&program)?;
        let seen = program.generation();
        let heartbeat = service.watch.this_thread(role);
        let (service, scripts) = (Some(service.clone()), ThreadScripts::default());
        let (waiting, retired) = (0, Vec::new());
        Ok(Self { service, program, runtime, scripts, waiting, retired, seen, heartbeat })
    }

    /// A program of Lua files that is never replaced.
    #[cfg(test)]
    pub(crate) fn of(
        store: &Arc<dyn tokaido_store::Store>,
        sources: tokaido_script::Sources,
    ) -> Self {
        let loader = crate::program::Loader::of_lua(store);
        let (program, errors) = loader.load(sources).expect("a runtime");
        assert!(errors.is_empty(), "{errors:?}");
        let runtime = loader.runtime(&program).expect("a runtime");
        let (scripts, heartbeat) = (ThreadScripts::default(), Arc::default());
        let (waiting, retired) = (0, Vec::new());
        let (service, program, seen) = (None, Arc::new(program), 0);
        Self { service, program, runtime, scripts, waiting, retired, seen, heartbeat }
    }

    /// Whether there is a newer program to switch to.
    pub(crate) fn is_outdated(&self) -> bool {
        let newest = self.service.as_ref().map(|service| service.shared.program.generation());
        newest.is_some_and(|newest| newest != self.seen)
    }

    /// What the server shares, if there is a server.
    pub(crate) fn shared(&self) -> Option<Arc<Shared>> {
        self.service.as_ref().map(|service| Arc::clone(&service.shared))
    }

    /// Switches to a newer program. To be called only between requests, since what a request has
    /// found in the old program means nothing in the new one.
    pub(crate) fn update(&mut self) {
        let Some(service) = self.service.as_ref().filter(|_| self.is_outdated()) else { return };
        let program = service.shared.program.get();
        self.seen = program.generation();
        let _loading = self.heartbeat.begin_loading();
        match service.loader.runtime(&program) {
            Ok(runtime) => {
                let program = std::mem::replace(&mut self.program, program);
                let mut runtime = std::mem::replace(&mut self.runtime, runtime);
                let waiting = std::mem::take(&mut self.waiting);
                if waiting > 0 {
                    runtime.retire();
                    self.retired.push(Retired { program, runtime, waiting });
                }
            }
            Err(error) => {
                let generation = program.generation();
                tracing::error!(%error, generation, "a thread goes on with the old program");
            }
        }
    }

    /// The heartbeat of the thread that has it.
    pub(crate) fn heartbeat(&self) -> &Heartbeat {
        &self.heartbeat
    }

    pub(crate) fn program(&self) -> &Arc<Program> {
        &self.program
    }

    pub(crate) fn procedures(&mut self) -> Procedures<'_> {
        let heartbeat = Some(&*self.heartbeat);
        let scripts = Scripts::OfThread(&mut self.scripts);
        let (program, runtime) = (&self.program, &mut *self.runtime);
        Procedures { program, runtime, scripts, heartbeat, last_fault: None }
    }

    /// Notes that a handler of the program that serves now begins to wait.
    pub(crate) fn begin_wait(&mut self) {
        self.waiting += 1;
    }

    /// Takes the timers made in the program of that generation, which wait from now on.
    pub(crate) fn take_timers(&mut self, generation: u64) -> Vec<Timer> {
        let is_meant = |retired: &&mut Retired| retired.program.generation() == generation;
        let (runtime, waiting) = match self.retired.iter_mut().find(is_meant) {
            Some(retired) => (&mut retired.runtime, &mut retired.waiting),
            None => (&mut self.runtime, &mut self.waiting),
        };
        let timers = runtime.take_timers();
        *waiting += timers.len();
        timers
    }

    /// Begins nothing new in any program, since the server is stopping.
    pub(crate) fn retire(&mut self) {
        self.runtime.retire();
    }

    /// Notes that a handler or timer of that generation waits no more. A retired program goes with its last one.
    pub(crate) fn end_wait(&mut self, generation: u64) {
        if self.program.generation() == generation {
            self.waiting -= 1;
            return;
        }
        for retired in &mut self.retired {
            if retired.program.generation() == generation {
                retired.waiting -= 1;
            }
        }
        self.retired.retain(|retired| retired.waiting > 0);
    }

    /// The procedures of the program of that generation, in which a handler or timer waits.
    pub(crate) fn waiting_procedures(&mut self, generation: u64) -> Procedures<'_> {
        let of_generation = |retired: &&mut Retired| retired.program.generation() == generation;
        let (program, runtime) = match self.retired.iter_mut().find(of_generation) {
            Some(retired) => (&*retired.program, &mut *retired.runtime),
            None => (&*self.program, &mut *self.runtime),
        };
        let heartbeat = Some(&*self.heartbeat);
        let scripts = Scripts::OfThread(&mut self.scripts);
        Procedures { program, runtime, scripts, heartbeat, last_fault: None }
    }
}
