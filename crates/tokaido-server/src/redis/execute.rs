//! From a request to its reply: look-up, rights, transaction, and what happens when it fails.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

use tokaido_script::Vm;
use tokaido_store::{
    CommitError, Engine, ReadTransaction, Snapshot, WriteError, WriteTransaction, Writer, limits,
};
use tokaido_wire::resp::{ReplyWriter, Request};

use super::{
    call::Call,
    command::{Command, Flags, Handler, WriteFn},
    failure::Failure,
    procedures::{self, Invocation},
    session::{ReplyMode, Session},
    table, transactions,
};
use crate::{Counters, Shared, shared::wall_clock_us};

/// What the caller does after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The reply is written (or there is none); go on with the next request.
    Done,
    /// The request must run on the writer. Nothing was written and nothing has changed.
    NeedsWriter,
    /// The request may take long, and must run where it holds up nobody else. Nothing has changed.
    NeedsPool,
    /// The reply is written; close the connection once it is sent.
    Close,
}

/// What a request runs on.
pub enum Target<'c> {
    /// A view for reading.
    Snapshot(&'c mut dyn Snapshot),
    /// The right to write, with no transaction open.
    Writer(&'c mut dyn Writer),
}

/// What requests run with: one for a whole batch.
pub struct Context<'c> {
    /// The server.
    pub shared: &'c Shared,
    /// The procedures.
    pub vm: &'c mut Vm,
    /// The data.
    pub target: Target<'c>,
    /// Whether reads that may take long run here. If not they end in [`Step::NeedsPool`].
    pub may_take_long: bool,
}

/// What a request asks for.
#[derive(Clone, Copy)]
pub(crate) enum Wanted {
    /// A command of the table.
    Command(&'static Command),
    /// A procedure by its bare name.
    Procedure,
}

/// Runs one request and writes its reply.
///
/// On [`Target::Writer`] a write command, or write procedure, is one transaction: committed if it
/// succeeds, rolled back on any error. The caller makes a batch durable with [`Writer::flush`] and
/// sends the replies only after that; if flushing fails, it sends that error in place of them.
/// Reads on the writer run in a transaction of their own, so that a pipeline sees its own writes.
///
/// A panic within the command is caught, rolled back, and answered as an internal error.
pub fn execute(
    session: &mut Session,
    request: Request<'_>,
    context: &mut Context<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Step {
    let start = reply.len();
    let mode = session.reply_mode;
    let ran = catch_unwind(AssertUnwindSafe(|| run(session, request, context, reply)));
    let result = ran.unwrap_or_else(|panic| Err(recover(&*panic, context)));
    let step = match result {
        Ok(step @ (Step::NeedsWriter | Step::NeedsPool)) => {
            reply.truncate(start);
            return step;
        }
        Ok(step) => step,
        Err(failure) => {
            Counters::add(&context.shared.counters.errors);
            reply.truncate(start);
            reply.error(&failure.to_string());
            Step::Done
        }
    };
    Counters::add(&context.shared.counters.commands);
    if mode != ReplyMode::On || session.reply_mode != ReplyMode::On {
        withhold(session, mode, reply, start);
    }
    step
}

/// What CLIENT REPLY asked for. `before` is the mode that the request came in.
fn withhold(session: &mut Session, before: ReplyMode, reply: &mut ReplyWriter<'_>, start: usize) {
    if session.reply_mode != ReplyMode::On || before == ReplyMode::SkipNext {
        reply.truncate(start);
    }
    if before == ReplyMode::SkipNext && session.reply_mode == ReplyMode::SkipNext {
        session.reply_mode = ReplyMode::On;
    }
}

/// After a panic: nothing of the transaction remains, and the client is told.
fn recover(panic: &(dyn Any + Send), context: &mut Context<'_>) -> Failure {
    let what = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message");
    tracing::error!(what, "a command panicked; this is a bug");
    if let Target::Writer(writer) = &mut context.target
        && let Err(error) = writer.rollback()
    {
        return error.into();
    }
    Failure::other(format!("internal error: {what}; nothing was written, please report this"))
}

fn run(
    session: &mut Session,
    request: Request<'_>,
    context: &mut Context<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Step, Failure> {
    if request.is_empty() {
        return Ok(Step::Done);
    }
    let wanted = match admit(session, request, context.vm) {
        Ok(wanted) => wanted,
        Err(failure) => {
            if let Some(queue) = &mut session.queue {
                queue.spoil();
            }
            return Err(failure);
        }
    };
    if session.queue.is_some() && !wanted.has(Flags::UNQUEUED) {
        transactions::enqueue(session, wanted, request, context.shared.limits())?;
        reply.simple("QUEUED");
        return Ok(Step::Done);
    }
    let mut call = Call { session, shared: context.shared, request, reply };
    dispatch(wanted, &mut call, context)
}

impl Wanted {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Command(command) => command.name,
            Self::Procedure => "a procedure",
        }
    }

    fn has(self, flag: Flags) -> bool {
        matches!(self, Self::Command(command) if command.flags.has(flag))
    }
}

/// Decides whether the request may run at all, before anything of it does.
fn admit(session: &Session, request: Request<'_>, vm: &Vm) -> Result<Wanted, Failure> {
    let wanted = look_up(request, vm);
    if !session.authenticated && !wanted.as_ref().is_ok_and(|w| w.has(Flags::NO_AUTH)) {
        // Whoever is not authenticated must not learn the names of procedures either.
        return Err(Failure::NotAuthenticated);
    }
    let wanted = wanted?;
    if session.queue.is_some() && wanted.has(Flags::NO_MULTI) {
        return Err(Failure::other("Command not allowed inside a transaction"));
    }
    Ok(wanted)
}

/// Finds the command or procedure, and checks the number of arguments.
fn look_up(request: Request<'_>, vm: &Vm) -> Result<Wanted, Failure> {
    let command = match table::resolve(request) {
        Ok(Some(command)) => command,
        Ok(None) if vm.find(request.name()).is_some() => return Ok(Wanted::Procedure),
        Ok(None) => return Err(unknown(request)),
        Err(failure) => return Err(failure),
    };
    if command.accepts(request.len()) {
        Ok(Wanted::Command(command))
    } else {
        Err(Failure::Arity { command: command.name.to_owned() })
    }
}

/// Redis's own words, which clients look for.
fn unknown(request: Request<'_>) -> Failure {
    /// How much of the name, and of the arguments together, is repeated.
    const LEN_MAX: usize = 128;
    let shown = |text: &[u8]| {
        String::from_utf8_lossy(&text[..text.len().min(LEN_MAX)]).replace(['\r', '\n'], " ")
    };
    let mut arguments = String::new();
    for argument in request.arguments() {
        if arguments.len() >= LEN_MAX {
            break;
        }
        let rest = LEN_MAX - arguments.len();
        let argument = &argument[..argument.len().min(rest)];
        arguments.push_str(&format!("'{}' ", shown(argument)));
    }
    Failure::other(format!(
        "unknown command '{}', with args beginning with: {arguments}",
        shown(request.name())
    ))
}

fn dispatch(
    wanted: Wanted,
    call: &mut Call<'_, '_>,
    context: &mut Context<'_>,
) -> Result<Step, Failure> {
    let command = match wanted {
        Wanted::Command(command) => command,
        Wanted::Procedure => {
            let invocation = procedures::bare(call, context.vm)?;
            return procedures::run(call, context, &invocation);
        }
    };
    let vm = &mut *context.vm;
    match (command.handler, &mut context.target) {
        (Handler::Container(None), _) => Err(Failure::Syntax),
        (Handler::Container(Some(run)) | Handler::Connection(run), _) => {
            call.session.client().note(command, wall_clock_us() / 1000);
            run(call)
        }
        (Handler::Read(_), Target::Snapshot(_))
            if command.flags.has(Flags::LONG) && !context.may_take_long =>
        {
            Ok(Step::NeedsPool)
        }
        (Handler::Read(run), Target::Snapshot(snapshot)) => {
            call.session.client().note(command, snapshot.now_ms());
            run(call, *snapshot).map(|()| Step::Done)
        }
        (Handler::Read(run), Target::Writer(writer)) => {
            read(*writer, |tx| {
                call.session.client().note(command, tx.now_ms());
                run(call, tx)
            })?;
            Ok(Step::Done)
        }
        (Handler::Write(run), _) if is_mounted(command, call) => {
            call.session.client().note(command, wall_clock_us() / 1000);
            write_mounted(call, run).map(|()| Step::Done)
        }
        (Handler::Write(_) | Handler::Exec, Target::Snapshot(_)) => Ok(Step::NeedsWriter),
        (Handler::Write(run), Target::Writer(writer)) => {
            write(call, *writer, |call, tx| {
                call.session.client().note(command, tx.now_ms());
                run(call, tx)
            })?;
            Ok(Step::Done)
        }
        (Handler::Exec, Target::Writer(writer)) => {
            transactions::exec(call, vm, *writer).map(|()| Step::Done)
        }
        (Handler::Procedure(prepare), _) => {
            let invocation: Invocation = prepare(call, vm)?;
            procedures::run(call, context, &invocation)
        }
    }
}

/// Runs `body` on the writer's view, which has what the batch has committed so far.
pub(super) fn read<T>(
    writer: &mut dyn Writer,
    body: impl FnOnce(&mut dyn ReadTransaction) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let result = body(writer.begin()?);
    writer.rollback()?;
    result
}

/// Whether the command writes to a cache or a constant database, and to nothing else: then it needs
/// no writer.
pub(super) fn is_mounted(command: &Command, call: &Call<'_, '_>) -> bool {
    call.database().mount().is_some() && !command.flags.has(Flags::SPANS)
}

/// Runs a write command on the cache that is selected: at once, on whichever thread this is. If
/// others come in between of its reading and its writing it runs again, with the reply taken back.
pub(super) fn write_mounted(call: &mut Call<'_, '_>, run: WriteFn) -> Result<(), Failure> {
    let Engine::Cache(cache) = call.engine() else { return Err(WriteError::ReadOnly.into()) };
    let (database, start) = (call.database(), call.reply.len());
    cache.transact(database, |tx| {
        call.reply.truncate(start);
        run(call, tx)
    })
}

/// Runs `body` as one transaction. After a conflict it runs again, with the reply taken back.
pub(super) fn write<'c, 'o, T>(
    call: &mut Call<'c, 'o>,
    writer: &mut dyn Writer,
    mut body: impl FnMut(&mut Call<'c, 'o>, &mut dyn WriteTransaction) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let start = call.reply.len();
    let mut attempt = 1;
    loop {
        let result = match body(call, writer.begin()?) {
            Ok(result) => result,
            Err(failure) => {
                writer.rollback()?;
                return Err(failure);
            }
        };
        match writer.commit() {
            Ok(_) => return Ok(result),
            Err(CommitError::Conflict) if attempt < limits::CONFLICT_ATTEMPTS_MAX => {
                attempt += 1;
                call.reply.truncate(start);
            }
            Err(error) => return Err(error.into()),
        }
    }
}
