//! Runs one request: finds the command, checks that the session may run it, opens the transaction,
//! and writes the reply, or an error.

use std::{
    any::Any,
    borrow::Borrow,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Instant,
};

use tokaido_script::Transaction;
use tokaido_store::{DatabaseId, ReadTransaction, WriteTransaction, Writer, transact_in_place};
use tokaido_wire::resp::Request;

use super::{
    admission, blocking,
    call::Call,
    command::{Command, Flags, Handler, WriteFn},
    debug,
    failure::Failure,
    instead,
    operator::Ran,
    pausing,
    procedures::{self, Invocation},
    pubsub,
    reply::Reply,
    session::{ReplyMode, Session},
    table, tracking, transactions,
};
use crate::{
    Procedures, Shared,
    access::{Permission, Where},
    metrics,
    placement::Place,
    protocol::{Context, Target},
    selected::Selected,
    shared::wall_clock_us,
};

/// What the caller does after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The reply is written (or there is none); continue with the next request.
    Done,
    /// The request must run on the writer. Nothing was written and nothing has changed.
    NeedsWriter,
    /// The request may take long, and must run in the pool. Nothing was written and nothing has changed.
    NeedsPool,
    /// The request waits. It runs again when it is woken, or at the deadline. Nothing was written.
    Block {
        /// The deadline.
        until: Option<Instant>,
    },
    /// The reply is written; close the connection once it is sent.
    Close,
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
/// On [`Target::Writer`], a write command or write procedure is one transaction: committed if it
/// succeeds, rolled back on any error. The caller makes a batch durable with [`Writer::flush`] and
/// sends the replies only after that; if flushing fails, it sends that error in place of them.
/// Reads on the writer run in their own transaction, so that a pipeline sees its own writes.
///
/// A panic within the command is caught, rolled back, and answered as an internal error.
pub fn execute(
    session: &mut Session,
    request: Request<'_>,
    context: &mut Context<'_>,
    reply: &mut dyn Reply,
) -> Step {
    let start = reply.mark();
    reply.limit(context.shared.limits().reply_bytes_max);
    let mode = session.reply_mode;
    if mode == ReplyMode::SkipNext {
        session.reply_mode = ReplyMode::SkipThis;
    }
    let ran = catch_unwind(AssertUnwindSafe(|| run(session, request, context, reply)));
    let result = ran.unwrap_or_else(|panic| Err(recover(&*panic, context)));
    let step = match result {
        Ok(step @ (Step::NeedsWriter | Step::NeedsPool | Step::Block { .. })) => {
            reply.truncate(start);
            session.reply_mode = mode;
            return step;
        }
        Ok(step) => step,
        Err(failure) => {
            metrics::add(&session.client().done.errors, 1);
            reply.truncate(start);
            reply.limit(usize::MAX);
            reply.error(&failure.to_string());
            Step::Done
        }
    };
    metrics::add(&session.client().done.commands, 1);
    if session.reply_mode != ReplyMode::On {
        reply.truncate(start);
    }
    if session.reply_mode == ReplyMode::SkipThis {
        session.reply_mode = ReplyMode::On;
    }
    step
}

/// Rolls back after a panic, and returns the error for the client.
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
    reply: &mut dyn Reply,
) -> Result<Step, Failure> {
    if request.is_empty() {
        return Ok(Step::Done);
    }
    session.look_for_database();
    let wanted = match admit(session, request, context.shared, &context.procedures) {
        Ok(wanted) => wanted,
        Err(Failure::Arity { command }) if command == "exec" => {
            session.take_queue();
            session.watched.clear();
            return Err(Failure::ExecArity);
        }
        Err(failure) => {
            if let Some(queue) = &mut session.queue {
                queue.spoil();
            }
            if let Ok(Some(command)) = table::resolve(request) {
                context.shared.instruments.statistics.reject(command);
            }
            return Err(failure);
        }
    };
    if session.queue.is_some() && !wanted.has(Flags::UNQUEUED) {
        transactions::enqueue(session, wanted, request, context.shared.limits())?;
        reply.simple("QUEUED");
        return Ok(Step::Done);
    }
    // The request is already on the writer's thread, where no other client's reads wait.
    let is_with_writer = matches!(context.target, Target::Writer(_)) && !context.is_brief;
    let (shared, may_take_long) = (context.shared, context.may_take_long || is_with_writer);
    let reader = tracking::begin(session, &mut context.target)?;
    let (database, messages, committed) = (session.database(), Vec::new(), None);
    let mut call =
        Call { shared, database, request, reply, may_take_long, messages, reader, committed };
    if session.is_confined() && !wanted.has(Flags::WHILE_SUBSCRIBED) {
        return answer_confined(wanted, &mut call);
    }
    if context.is_brief && !may_be_brief(wanted, &call) {
        return Ok(Step::NeedsWriter);
    }
    let started = context.previous_ended.take().unwrap_or_else(Instant::now);
    let result = dispatch(wanted, &mut call, session, context);
    match result.and_then(|step| call.check_reply().map(|()| step)) {
        Err(Failure::TakesLong) if context.is_brief => Ok(Step::NeedsWriter),
        Err(Failure::TakesLong) => Ok(Step::NeedsPool),
        result => {
            if let (Wanted::Command(command), Ok(Step::Done | Step::Close) | Err(_)) =
                (wanted, &result)
            {
                let ended = Instant::now();
                context.previous_ended = Some(ended);
                let (took, has_failed) = (ended - started, result.is_err());
                let ran = Ran { command, request, client: session.client(), took, has_failed };
                shared.instruments.note(&ran);
            }
            if result.is_ok() {
                session.messages.append(&mut call.messages);
            }
            tracking::end(session, &call, wanted, &result);
            result
        }
    }
}

/// Replies to a command not meant for sessions with subscriptions in version 2 of the protocol: only PING runs.
fn answer_confined(wanted: Wanted, call: &mut Call<'_>) -> Result<Step, Failure> {
    match wanted.name() {
        "ping" => pubsub::pong(call),
        command => Err(Failure::Confined { command }),
    }
}

impl Wanted {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Command(command) => command.name,
            Self::Procedure => "a procedure",
        }
    }

    /// The permission that the request needs.
    pub(crate) fn permission(self, request: Request<'_>) -> Permission<'_> {
        match self {
            Self::Command(command) => Permission::Command(command, request),
            Self::Procedure => Permission::Call(request.name()),
        }
    }

    fn has(self, flag: Flags) -> bool {
        matches!(self, Self::Command(command) if command.flags.has(flag))
    }
}

/// Checks that the session may make the request now, before any of it runs.
fn admit(
    session: &Session,
    request: Request<'_>,
    shared: &Shared,
    procedures: &Procedures<'_>,
) -> Result<Wanted, Failure> {
    let wanted = look_up(request, shared, procedures);
    // An anonymous client must not even learn which commands and procedures exist.
    let permission = wanted.as_ref().map_or(Permission::Session, |w| w.permission(request));
    let place = if session.queue.is_some() { Where::Multi } else { Where::TopLevel };
    admission::admit(session, permission, place)?;
    debug::check(session, request, shared)?;
    let wanted = wanted?;
    if session.queue.is_some() && wanted.has(Flags::NO_MULTI) {
        return Err(Failure::other("Command not allowed inside a transaction"));
    }
    Ok(wanted)
}

/// Finds the command or procedure.
fn look_up(
    request: Request<'_>,
    shared: &Shared,
    procedures: &Procedures<'_>,
) -> Result<Wanted, Failure> {
    match find_command(request)? {
        Some(command) => Ok(Wanted::Command(command)),
        None if procedures.find(request.name()).is_some() => Ok(Wanted::Procedure),
        None => Err(instead::unknown(shared, request)),
    }
}

/// Finds the command, if the table has it, and checks the number of arguments.
pub(super) fn find_command(request: Request<'_>) -> Result<Option<&'static Command>, Failure> {
    match table::resolve(request)? {
        Some(command) if !command.accepts(request.len()) => {
            Err(Failure::Arity { command: command.name.to_owned() })
        }
        found => Ok(found),
    }
}

fn dispatch(
    wanted: Wanted,
    call: &mut Call<'_>,
    session: &mut Session,
    context: &mut Context<'_>,
) -> Result<Step, Failure> {
    let command = match wanted {
        Wanted::Command(command) => command,
        Wanted::Procedure => {
            let invocation = procedures::bare(call, &context.procedures)?;
            return procedures::run(call, session, context, invocation);
        }
    };
    tracking::note_reads(command, call, &mut context.target)?;
    let procedures = &mut context.procedures;
    match (command.handler, &mut context.target) {
        (
            Handler::Container(_) | Handler::Connection(_) | Handler::Server(_) | Handler::Pause,
            target,
        ) => without_data(command, call, session, matches!(target, Target::Writer(_))),
        (Handler::Read(_) | Handler::StreamRead(_) | Handler::Watch, Target::Snapshot(_))
            if !context.may_take_long && place_of_read(command, call) == Place::Pool =>
        {
            Ok(Step::NeedsPool)
        }
        (Handler::Read(run), target) => read(call, session, target, |call, session, tx| {
            session.client().note(command, tx.now_ms());
            run(call, tx).map(|()| Step::Done)
        }),
        (Handler::Watch, target) => read(call, session, target, |call, session, tx| {
            session.client().note(command, tx.now_ms());
            transactions::watch(call, session, tx).map(|()| Step::Done)
        }),
        (Handler::Write(run), target)
            if is_in_place(command, call)
                && (matches!(target, Target::Writer(_)) || !call.shared.pause.holds_writes()) =>
        {
            session.client().note(command, wall_clock_us() / 1000);
            write_in_place(call, run).map(|()| Step::Done)
        }
        (Handler::Blocking(plan), _) => {
            let plan = plan(call)?;
            blocking::run(call, session, context, command, &plan)
        }
        (Handler::StreamRead(reading) | Handler::GroupRead(reading), _) => {
            let reading = reading(call)?;
            blocking::run_reading(call, session, context, command, &reading)
        }
        (Handler::Write(_) | Handler::Exec, Target::Snapshot(_)) => Ok(Step::NeedsWriter),
        (Handler::Write(run), Target::Writer(writer)) => {
            write(call, *writer, |call, tx| {
                session.client().note(command, tx.now_ms());
                call.database = selected_for(command, session.selected(), tx, call.shared)?;
                run_noted(command, run, call, tx)
            })?;
            Ok(Step::Done)
        }
        (Handler::Exec, Target::Writer(writer)) => {
            transactions::exec(call, session, procedures, *writer).map(|()| Step::Done)
        }
        (Handler::Procedure(prepare), _) => {
            let invocation: Invocation = prepare(call, procedures)?;
            procedures::run(call, session, context, invocation)
        }
    }
}

/// Runs a command that works on the session or the server.
fn without_data(
    command: &'static Command,
    call: &mut Call<'_>,
    session: &mut Session,
    is_on_writer: bool,
) -> Result<Step, Failure> {
    session.client().note(command, wall_clock_us() / 1000);
    match command.handler {
        Handler::Connection(run) => run(call, session),
        Handler::Container(Some(run)) | Handler::Server(run) => run(call).map(|()| Step::Done),
        Handler::Pause => pausing::run(call, is_on_writer),
        _ => Err(Failure::Syntax),
    }
}

/// Runs `body` on the snapshot, or in a transaction of the writer, which sees what the batch has
/// committed so far.
pub(super) fn read<'c, T, S: Borrow<Session>>(
    call: &mut Call<'c>,
    mut session: S,
    target: &mut Target<'_>,
    body: impl FnOnce(&mut Call<'c>, &mut S, &mut dyn ReadTransaction) -> Result<T, Failure>,
) -> Result<T, Failure> {
    match target {
        Target::Snapshot(snapshot) => body(call, &mut session, *snapshot),
        Target::Writer(writer) => {
            let tx = writer.begin()?;
            call.database = session.borrow().selected().find_in(tx);
            let result = body(call, &mut session, tx);
            writer.rollback()?;
            result
        }
    }
}

/// The selected database, for a command in a transaction that may write. A command that also works on other
/// databases does not create the selected one.
pub(super) fn selected_for(
    command: &Command,
    selected: &Selected,
    tx: &mut dyn WriteTransaction,
    shared: &Shared,
) -> Result<DatabaseId, Failure> {
    match command.handler {
        Handler::Write(_) if !command.flags.has(Flags::SPANS) => Ok(selected.open_in(tx, shared)?),
        _ => Ok(selected.find_in(tx)),
    }
}

/// Runs a command in an open transaction. Commands that work on the session, and those that open
/// their own transactions, cannot run this way.
pub(super) fn run_within(
    command: &Command,
    call: &mut Call<'_>,
    transaction: Transaction<'_>,
) -> Result<(), Failure> {
    if let Some(reader) = &call.reader {
        reader.remember_within(command, call);
    }
    let ran = match (command.handler, transaction) {
        (Handler::Container(Some(run)) | Handler::Server(run), _) => run(call),
        (Handler::Read(run), Transaction::Read(tx)) => run(call, tx),
        (Handler::Read(run), Transaction::Write(tx)) => run(call, tx),
        (Handler::Write(run), _) if is_in_place(command, call) => write_in_place(call, run),
        (Handler::Write(run), Transaction::Write(tx)) => run_noted(command, run, call, tx),
        (Handler::Blocking(plan), Transaction::Write(tx)) => {
            let plan = plan(call)?;
            blocking::run_within(call, tx, command, &plan)
        }
        (
            Handler::Write(_) | Handler::Blocking(_) | Handler::GroupRead(_),
            Transaction::Read(_),
        ) => Err(Failure::ReadOnlyScript),
        (Handler::StreamRead(reading) | Handler::GroupRead(reading), transaction) => {
            let reading = reading(call)?;
            blocking::run_reading_within(call, transaction, &reading)
        }
        _ => Err(Failure::NotForScripts),
    };
    ran.and_then(|()| call.check_reply())
}

/// Runs a command that writes, and records its names for its changes.
fn run_noted(
    command: &Command,
    run: WriteFn,
    call: &mut Call<'_>,
    tx: &mut dyn WriteTransaction,
) -> Result<(), Failure> {
    run(call, tx)?;
    call.shared.notifier.note(command, call, tx);
    Ok(())
}

/// Whether a worker may run it in the writer's place. For scripts and procedures, this depends on how long
/// earlier calls took.
fn may_be_brief(wanted: Wanted, call: &Call<'_>) -> bool {
    /// Maximum number of arguments of a brief write.
    const ARGUMENTS_MAX: usize = 64;
    let Wanted::Command(command) = wanted else { return true };
    match command.handler {
        Handler::Read(_) => place_of_read(command, call) == Place::Worker,
        Handler::Write(_) => command.flags.has(Flags::BRIEF) && call.len() <= ARGUMENTS_MAX,
        Handler::Procedure(_) => true,
        _ => false,
    }
}

fn place_of_read(command: &Command, call: &Call<'_>) -> Place {
    Place::of_read(call.capabilities(), command.flags.has(Flags::LONG))
}

/// Whether the command writes only to a database that does not support transactions, and so needs no
/// writer.
fn is_in_place(command: &Command, call: &Call<'_>) -> bool {
    Place::of_write(call.capabilities()) != Place::Writer && !command.flags.has(Flags::SPANS)
}

/// Runs a write command on the selected database, which does not support transactions: immediately,
/// on the current thread. If another write comes between its reads and its writes, the reply is
/// discarded and the command runs again.
fn write_in_place(call: &mut Call<'_>, run: WriteFn) -> Result<(), Failure> {
    let (database, start) = (call.database, call.reply.mark());
    transact_in_place(&**call.shared.store(), database, |tx| {
        call.reply.truncate(start);
        run(call, tx)?;
        call.check_reply()
    })
}

/// Runs `body` as one transaction. After a conflict, discards the reply and runs `body` again.
pub(super) fn write<'c, T>(
    call: &mut Call<'c>,
    writer: &mut dyn Writer,
    mut body: impl FnMut(&mut Call<'c>, &mut dyn WriteTransaction) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let start = call.reply.mark();
    let shared = call.shared;
    let (result, committed) = shared.notifier.transact(writer, |tx| {
        call.reply.truncate(start);
        call.messages.clear();
        let result = body(call, tx)?;
        call.check_reply()?;
        Ok(result)
    })?;
    call.committed = committed;
    Ok(result)
}
