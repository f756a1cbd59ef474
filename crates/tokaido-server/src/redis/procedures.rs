//! Procedures as commands: FCALL, FCALL_RO, and bare names.

use std::sync::Arc;

use tokaido_script::{Mode, ProcedureId, Transaction, Value};
use tokaido_store::ReadTransaction;
use tokaido_wire::resp::Version;

use super::{
    call::Call,
    command::{Command, rows},
    eval::{self, Script, ScriptCall},
    execute::{self, Step},
    failure::Failure,
    functions::{self, FunctionCall, LibraryChange},
    reply::Reply,
    script::ScriptCommands,
    session::Session,
};
use crate::{
    Procedures, Shared, metrics,
    placement::Place,
    program::Program,
    protocol::{Context, Target},
};

pub(super) const COMMANDS: &[Command] = rows! {
"fcall" -3 Procedure(fcall), NO_KEY [MOVABLE_KEYS] Scripting "7.0.0"
    "function numkeys [key [key ...]] [arg [arg ...]]"
    "Calls a function or a procedure with the keys and the arguments.";
"fcall_ro" -3 Procedure(fcall_ro), NO_KEY [MOVABLE_KEYS] Scripting "7.0.0"
    "function numkeys [key [key ...]] [arg [arg ...]]"
    "Calls a function or a procedure that only reads.";
"procedure" -2 Procedure(by_name), NO_KEY [] Scripting "7.2.0"
    "name [arg [arg ...]]"
    "Calls a procedure with the arguments, like calling it by its bare name.";
};

/// What to run.
pub(crate) enum Invocation {
    /// A procedure, with its arguments.
    Procedure { id: ProcedureId, mode: Mode, arguments: Vec<Value> },
    /// A script sent by a client.
    Script(ScriptCall),
    /// Nothing: a script is only to be cached.
    Load(Arc<Script>),
    /// A function of a library that a client has loaded, by name. The transaction tells which one that is.
    Named { only_reads: bool },
    /// A function found by its name.
    Function(FunctionCall),
    /// A change of the function libraries.
    Libraries(LibraryChange),
}

impl Invocation {
    fn mode(&self) -> Mode {
        match self {
            Self::Procedure { mode, .. } => *mode,
            Self::Script(call) => call.mode(),
            Self::Function(call) => call.mode(),
            Self::Load(_) => Mode::Read,
            Self::Named { .. } | Self::Libraries(_) => Mode::Write,
        }
    }

    /// Whether its recent calls were short, so that a worker may run it in the writer's place.
    fn is_brief(&self, program: &Program) -> bool {
        match self {
            Self::Procedure { id, .. } => program.runs_inline(*id),
            Self::Script(call) => call.runs_inline(),
            Self::Function(call) => call.runs_inline(),
            Self::Load(_) | Self::Named { .. } | Self::Libraries(_) => false,
        }
    }

    fn place(&self, shared: &Shared, program: &Program) -> Place {
        let of_read =
            |runs_inline: bool| Place::of_read(shared.capabilities(shared.main()), !runs_inline);
        match self {
            Self::Procedure { id, .. } => Place::of_procedure(shared, program, *id),
            _ if self.mode() == Mode::Write => Place::Writer,
            Self::Script(call) => of_read(call.runs_inline()),
            Self::Function(call) => of_read(call.runs_inline()),
            Self::Named { .. } | Self::Libraries(_) => Place::Writer,
            Self::Load(_) => of_read(true),
        }
    }
}

/// `hits.count /index`: every argument after the name is an argument of the procedure.
pub(super) fn bare(call: &Call<'_>, procedures: &Procedures<'_>) -> Result<Invocation, Failure> {
    prepare(call, procedures, call.arg(0), 1)
}

/// `PROCEDURE hits.count /index`: the same, for a name that is also a Redis command.
fn by_name(call: &Call<'_>, procedures: &Procedures<'_>) -> Result<Invocation, Failure> {
    prepare(call, procedures, call.arg(1), 2)
}

fn fcall(call: &Call<'_>, procedures: &Procedures<'_>) -> Result<Invocation, Failure> {
    if procedures.find(call.arg(1)).is_none() {
        return Ok(Invocation::Named { only_reads: false });
    }
    let invocation = prepare(call, procedures, call.arg(1), 3)?;
    // A procedure does not distinguish keys from arguments, so the number of keys is only checked.
    functions::key_count(call)?;
    Ok(invocation)
}

fn fcall_ro(call: &Call<'_>, procedures: &Procedures<'_>) -> Result<Invocation, Failure> {
    let invocation = fcall(call, procedures)?;
    if let Invocation::Named { .. } = invocation {
        return Ok(Invocation::Named { only_reads: true });
    }
    match invocation.mode() {
        Mode::Read => Ok(invocation),
        Mode::Write => {
            Err(Failure::other("Can not execute a script with write flag using *_ro command."))
        }
    }
}

fn prepare(
    call: &Call<'_>,
    procedures: &Procedures<'_>,
    name: &[u8],
    first_argument: usize,
) -> Result<Invocation, Failure> {
    let id = procedures.find(name).ok_or_else(|| {
        let why = call.shared.program.loading().why_missing(name);
        Failure::other(why.unwrap_or_else(|| "Function not found".to_owned()))
    })?;
    let procedure = procedures.get(id);
    if let Some(route) = &procedure.route {
        return Err(Failure::other(format!(
            "{} answers {} {} over HTTP and cannot be called by name",
            procedure.name, route.method, route.pattern
        )));
    }
    let arguments = call.request.arguments_from(first_argument);
    let arguments = arguments.map(|argument| Value::String(argument.to_vec())).collect();
    Ok(Invocation::Procedure { id, mode: procedure.mode, arguments })
}

/// Runs a procedure in its own transaction, on the snapshot if possible.
pub(super) fn run(
    call: &mut Call<'_>,
    session: &Session,
    context: &mut Context<'_>,
    invocation: Invocation,
) -> Result<Step, Failure> {
    let invocation = &named(call, session, context, invocation)?;
    if context.is_brief && !invocation.is_brief(context.procedures.program()) {
        return Ok(Step::NeedsWriter);
    }
    let place = invocation.place(call.shared, context.procedures.program());
    if place == Place::Pool && !context.may_take_long {
        return Ok(Step::NeedsPool);
    }
    let procedures = &mut context.procedures;
    match (invocation.mode(), &mut context.target) {
        (Mode::Read, target) => execute::read(call, session, target, |call, session, tx| {
            call_in(call, session, procedures, Transaction::Read(tx), invocation)
        })?,
        (Mode::Write, Target::Snapshot(_)) => return Ok(Step::NeedsWriter),
        (Mode::Write, Target::Writer(writer)) => {
            execute::write(call, *writer, |call, tx| {
                call_in(call, session, procedures, Transaction::Write(tx), invocation)
            })?;
        }
    }
    Ok(Step::Done)
}

/// Finds the function called by name, as seen by the snapshot or writer that it will run on.
fn named(
    call: &mut Call<'_>,
    session: &Session,
    context: &mut Context<'_>,
    invocation: Invocation,
) -> Result<Invocation, Failure> {
    let Invocation::Named { only_reads } = invocation else { return Ok(invocation) };
    let procedures = &mut context.procedures;
    execute::read(call, session, &mut context.target, |call, _, tx| {
        functions::wanted(call, procedures, tx, only_reads).map(Invocation::Function)
    })
}

/// Runs a procedure in an open transaction, and writes its result.
pub(super) fn call_in(
    call: &mut Call<'_>,
    session: &Session,
    procedures: &mut Procedures<'_>,
    transaction: Transaction<'_>,
    invocation: &Invocation,
) -> Result<(), Failure> {
    let (id, mode, arguments) = match invocation {
        Invocation::Procedure { id, mode, arguments } => (*id, *mode, arguments),
        Invocation::Script(script) => {
            return eval::call_in(call, session, procedures, transaction, script);
        }
        Invocation::Load(script) => return eval::load(call, procedures, script),
        Invocation::Function(function) => {
            return functions::call_in(call, session, procedures, transaction, function);
        }
        Invocation::Libraries(change) => {
            return functions::change_in(call, procedures, transaction, change);
        }
        Invocation::Named { only_reads } => {
            let mut transaction = transaction;
            let tx: &mut dyn ReadTransaction = match &mut transaction {
                Transaction::Read(tx) => *tx,
                Transaction::Write(tx) => *tx,
            };
            let function = functions::wanted(call, procedures, tx, *only_reads)?;
            return functions::call_in(call, session, procedures, transaction, &function);
        }
    };
    metrics::add(&session.client().done.procedure_calls, 1);
    // Only the procedure knows what it reads by its own handles. The keys that FCALL names stand for that.
    if let (Some(reader), Mode::Read) = (&call.reader, mode)
        && let Ok(Some(command)) = execute::find_command(call.request)
    {
        reader.remember_named(command, call);
    }
    let (principal, selected) = (&session.principal, session.selected());
    let name = &procedures.get(id).name;
    let commands = ScriptCommands::for_call(call.shared, principal, selected, name)?;
    let mut commands = commands.noted_by(call.reader.clone());
    let scope = commands.in_transaction(transaction);
    let called = match procedures.call(id, scope, arguments) {
        // The error is a reply like any other, and the transaction is committed.
        Err(failure) if failure.is_kept() => Err(Failure::from(failure)),
        called => Ok(called?),
    };
    call.messages.append(&mut commands.into_messages());
    match called {
        Ok(value) => write_value(call.reply, session.version(), &value),
        Err(failure) => call.reply.error(&failure.to_string()),
    }
    Ok(())
}

/// Writes a value as a reply. Version 2 of the protocol has no booleans: true becomes 1 and false
/// null, as in Redis's scripts.
fn write_value(reply: &mut dyn Reply, version: Version, value: &Value) {
    match value {
        Value::Nil => reply.null(),
        Value::Boolean(false) if version == Version::Resp2 => reply.null(),
        Value::Boolean(value) => reply.boolean(*value),
        Value::Integer(value) => reply.integer(*value),
        Value::Number(value) => reply.double(*value),
        Value::String(value) => reply.bulk(value),
        Value::Array(values) => {
            reply.array(values.len());
            for value in values {
                write_value(reply, version, value);
            }
        }
        Value::Map(pairs) => {
            reply.map(pairs.len());
            for (key, value) in pairs {
                write_value(reply, version, key);
                write_value(reply, version, value);
            }
        }
    }
}
