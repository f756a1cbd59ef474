//! Several runtimes as one: procedures of each may call those of the others.

use std::sync::Arc;

use tokaido_store::Store;

use crate::{
    CallError, CommandError, CommandReply, Host, HttpRequest, HttpResponse, Interrupt, Language,
    Limits, LoadError, MiscCall, Mode, NestedError, Procedure, ProcedureId, Runtime, RuntimeError,
    Scope, ServerFigures, Sockets, Sources, Timer, Transaction, Value,
};

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

/// Several runtimes, whose procedures are numbered one after the other.
struct Together {
    runtimes: Vec<Box<dyn Runtime>>,
    procedures: Vec<Procedure>,
}

impl Together {
    /// The index of a procedure's runtime, and the procedure's index there.
    fn locate(&self, procedure: ProcedureId) -> (usize, ProcedureId) {
        let mut index = procedure.index();
        for (place, runtime) in self.runtimes.iter().enumerate() {
            let count = runtime.procedures().len();
            if index < count {
                return (place, ProcedureId::from_index(index));
            }
            index -= count;
        }
        panic!("no procedure {procedure:?}");
    }

    /// Makes a runtime do something in a scope from which the other runtimes can be called.
    fn within<T>(
        &mut self,
        place: usize,
        scope: Scope<'_>,
        run: impl FnOnce(&mut dyn Runtime, Scope<'_>) -> T,
    ) -> T {
        let Scope { transaction, host } = scope;
        let (before, running, after) = split(&mut self.runtimes, place);
        let host = host.map(|host| host as _);
        let mut others = Neighbours { before, after, all: &self.procedures, host };
        run(running, Scope::of(transaction, &mut others))
    }
}

impl Runtime for Together {
    fn procedures(&self) -> &[Procedure] {
        &self.procedures
    }

    fn interrupts(&self) -> Vec<Interrupt> {
        self.runtimes.iter().flat_map(|runtime| runtime.interrupts()).collect()
    }

    fn call(
        &mut self,
        procedure: ProcedureId,
        scope: Scope<'_>,
        arguments: &[Value],
    ) -> Result<Value, CallError> {
        let (place, procedure) = self.locate(procedure);
        self.within(place, scope, |runtime, scope| runtime.call(procedure, scope, arguments))
    }

    fn call_http(
        &mut self,
        procedure: ProcedureId,
        scope: Scope<'_>,
        request: &HttpRequest<'_>,
        response: &mut HttpResponse,
    ) -> Result<(), CallError> {
        let (place, procedure) = self.locate(procedure);
        self.within(place, scope, |runtime, scope| {
            runtime.call_http(procedure, scope, request, response)
        })
    }

    fn resume_http(
        &mut self,
        procedure: ProcedureId,
        slot: u64,
        scope: Scope<'_>,
        request: &HttpRequest<'_>,
        response: &mut HttpResponse,
    ) -> Result<(), CallError> {
        let (place, procedure) = self.locate(procedure);
        self.within(place, scope, |runtime, scope| {
            runtime.resume_http(procedure, slot, scope, request, response)
        })
    }

    fn abandon_http(&mut self, procedure: ProcedureId, slot: u64) {
        let (place, procedure) = self.locate(procedure);
        self.runtimes[place].abandon_http(procedure, slot);
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
        let maker = self.runtimes.iter().position(|runtime| runtime.has_timer(timer.number));
        let Some(place) = maker else { panic!("no runtime has {timer:?}") };
        self.within(place, scope, |runtime, scope| {
            runtime.run_timer(timer, slot, scope, request, response)
        })
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

type Runtimes = [Box<dyn Runtime>];

/// The runtimes before a place, the one at it, and those after it.
fn split(
    runtimes: &mut Runtimes,
    place: usize,
) -> (&mut Runtimes, &mut dyn Runtime, &mut Runtimes) {
    let (before, rest) = runtimes.split_at_mut(place);
    match rest {
        [there, after @ ..] => (before, &mut **there, after),
        [] => panic!("there is no runtime {place}"),
    }
}

/// What a running procedure is lent: the idle runtimes beside its own, and the host around all of them.
struct Neighbours<'n> {
    before: &'n mut Runtimes,
    after: &'n mut Runtimes,
    /// The procedures of all runtimes, busy ones included.
    all: &'n [Procedure],
    host: Option<&'n mut dyn Host>,
}

impl Neighbours<'_> {
    fn host(&mut self) -> Result<&mut dyn Host, CommandError> {
        match &mut self.host {
            Some(host) => Ok(&mut **host),
            None => Err(CommandError::Refused("commands need a server around them".to_owned())),
        }
    }
}

/// The index of the runtime that has a procedure of that name, and its index there. One with a route does not count.
fn find(runtimes: &Runtimes, name: &[u8]) -> Option<(usize, ProcedureId)> {
    runtimes.iter().enumerate().find_map(|(place, runtime)| {
        let procedure = runtime.find(name)?;
        let has_route = runtime.procedures()[procedure.index()].route.is_some();
        (!has_route).then_some((place, procedure))
    })
}

/// Calls a procedure of one of these runtimes. It may in turn call the other ones, and those that `rest` reaches.
fn call(
    runtimes: &mut Runtimes,
    (place, procedure): (usize, ProcedureId),
    rest: &mut Neighbours<'_>,
    transaction: Transaction<'_>,
    arguments: &[Value],
) -> Result<Value, NestedError> {
    let (before, runtime, after) = split(runtimes, place);
    let Procedure { name, mode, .. } = &runtime.procedures()[procedure.index()];
    let transaction = match (mode, transaction) {
        (Mode::Write, Transaction::Read(_)) => {
            let why = format!("{name} writes, and its caller only reads");
            return Err(NestedError::Refused(why));
        }
        (Mode::Write, Transaction::Write(tx)) => Transaction::Write(tx),
        (Mode::Read, Transaction::Write(tx)) => Transaction::Read(tx),
        (Mode::Read, Transaction::Read(tx)) => Transaction::Read(tx),
    };
    let may_have_written = *mode == Mode::Write;
    let all = rest.all;
    let mut others = Neighbours { before, after, all, host: Some(rest) };
    runtime
        .call(procedure, Scope::of(transaction, &mut others), arguments)
        .map_err(|error| NestedError::Failed { error, may_have_written })
}

impl Host for Neighbours<'_> {
    fn command(
        &mut self,
        transaction: Transaction<'_>,
        arguments: &[&[u8]],
    ) -> Result<CommandReply<'_>, CommandError> {
        self.host()?.command(transaction, arguments)
    }

    fn call(
        &mut self,
        transaction: Transaction<'_>,
        name: &[u8],
        arguments: &[Value],
    ) -> Result<Value, NestedError> {
        let Self { before, after, all, host } = self;
        let host = host.as_mut().map(|host| &mut **host as &mut dyn Host);
        if let Some(found) = find(before, name) {
            let mut rest = Neighbours { before: after, after: &mut [], all, host };
            return call(before, found, &mut rest, transaction, arguments);
        }
        if let Some(found) = find(after, name) {
            let mut rest = Neighbours { before, after: &mut [], all, host };
            return call(after, found, &mut rest, transaction, arguments);
        }
        if let Some(there) = all.iter().find(|p| p.name.as_bytes() == name && p.hook.is_none()) {
            return Err(NestedError::Refused(match &there.route {
                Some(route) => there.answers(route),
                None => format!(
                    "{} is of a language that waits for this procedure, and cannot be called from it",
                    there.name
                ),
            }));
        }
        match host {
            Some(host) => host.call(transaction, name, arguments),
            None => Err(NestedError::unknown(name)),
        }
    }

    fn misc(
        &mut self,
        transaction: Transaction<'_>,
        call: MiscCall<'_>,
    ) -> Result<Option<Vec<Vec<u8>>>, CommandError> {
        self.host()?.misc(transaction, call)
    }

    fn sockets(&mut self) -> Option<&mut dyn Sockets> {
        self.host.as_mut()?.sockets()
    }

    fn figures(&mut self) -> Option<ServerFigures> {
        self.host.as_mut()?.figures()
    }

    fn is_table(&mut self) -> bool {
        self.host.as_mut().is_some_and(|host| host.is_table())
    }

    fn speak(&mut self, version: i32) {
        if let Some(host) = &mut self.host {
            host.speak(version);
        }
    }

    fn may_run(&mut self, arguments: &[&[u8]]) -> Option<bool> {
        self.host.as_mut()?.may_run(arguments)
    }
}
