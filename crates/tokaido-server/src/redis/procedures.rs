//! Procedures as commands: FCALL, FCALL_RO, bare names, and FUNCTION LIST.

use std::{collections::BTreeMap, sync::Arc};

use tokaido_script::{Mode, Procedure, ProcedureId, Transaction, Value};
use tokaido_wire::resp::Version;

use super::{
    call::Call,
    command::{Command, rows},
    eval::{self, Script, ScriptCall},
    execute::{self, Step},
    failure::Failure,
    glob, introspection,
    number::parse_integer,
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
    "procedure numkeys [key [key ...]] [arg [arg ...]]"
    "Calls a procedure with the keys and the arguments.";
"fcall_ro" -3 Procedure(fcall_ro), NO_KEY [MOVABLE_KEYS] Scripting "7.0.0"
    "procedure numkeys [key [key ...]] [arg [arg ...]]"
    "Calls a procedure that only reads.";
"function" -2 Container(None), NO_KEY [] Scripting "7.0.0"
    ""
    "Commands about procedures.";
"function|help" 2 Server(introspection::help), NO_KEY [] Scripting "7.0.0"
    ""
    "Lists the subcommands.";
"function|list" -2 Server(list), NO_KEY [NO_SCRIPT] Scripting "7.0.0"
    "[LIBRARYNAME library-name-pattern]"
    "Lists the installed procedures, a file of them as a library.";
};

/// What is to be run.
pub(crate) enum Invocation {
    /// A procedure, with its arguments.
    Procedure { id: ProcedureId, mode: Mode, arguments: Vec<Value> },
    /// A script of a client.
    Script(ScriptCall),
    /// Nothing: a script is only to be known.
    Load(Arc<Script>),
}

impl Invocation {
    fn mode(&self) -> Mode {
        match self {
            Self::Procedure { mode, .. } => *mode,
            Self::Script(call) => call.mode(),
            Self::Load(_) => Mode::Read,
        }
    }

    fn place(&self, shared: &Shared, program: &Program) -> Place {
        let of_read =
            |runs_inline: bool| Place::of_read(shared.capabilities(shared.main()), !runs_inline);
        match self {
            Self::Procedure { id, .. } => Place::of_procedure(shared, program, *id),
            Self::Script(call) if call.mode() == Mode::Write => Place::Writer,
            Self::Script(call) => of_read(call.runs_inline()),
            Self::Load(_) => of_read(true),
        }
    }
}

/// `hits.count /index`: every argument after the name is one of the procedure's.
pub(super) fn bare(call: &Call<'_>, procedures: &Procedures<'_>) -> Result<Invocation, Failure> {
    prepare(call, procedures, call.arg(0), 1)
}

fn fcall(call: &Call<'_>, procedures: &Procedures<'_>) -> Result<Invocation, Failure> {
    let invocation = prepare(call, procedures, call.arg(1), 3)?;
    check_key_count(call)?;
    Ok(invocation)
}

fn fcall_ro(call: &Call<'_>, procedures: &Procedures<'_>) -> Result<Invocation, Failure> {
    let invocation = fcall(call, procedures)?;
    match invocation.mode() {
        Mode::Read => Ok(invocation),
        Mode::Write => {
            Err(Failure::other("Can not execute a script with write flag using *_ro command."))
        }
    }
}

/// The keys come first, and the procedure gets keys and arguments alike, so their number is only
/// checked.
fn check_key_count(call: &Call<'_>) -> Result<(), Failure> {
    let count =
        parse_integer(call.arg(2)).ok_or_else(|| Failure::other("Bad number of keys provided"))?;
    match usize::try_from(count) {
        Err(_) => Err(Failure::other("Number of keys can't be negative")),
        Ok(count) if count > call.len() - 3 => {
            Err(Failure::other("Number of keys can't be greater than number of args"))
        }
        Ok(_) => Ok(()),
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

/// Runs a procedure in a transaction of its own: where it may, on the snapshot.
pub(super) fn run(
    call: &mut Call<'_>,
    session: &Session,
    context: &mut Context<'_>,
    invocation: &Invocation,
) -> Result<Step, Failure> {
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

/// Runs a procedure in a transaction that is open, and writes its result.
pub(super) fn call_in(
    call: &mut Call<'_>,
    session: &Session,
    procedures: &mut Procedures<'_>,
    transaction: Transaction<'_>,
    invocation: &Invocation,
) -> Result<(), Failure> {
    let (id, arguments) = match invocation {
        Invocation::Procedure { id, arguments, .. } => (*id, arguments),
        Invocation::Script(script) => {
            return eval::call_in(call, session, procedures, transaction, script);
        }
        Invocation::Load(script) => return eval::load(call, procedures, script),
    };
    metrics::add(&session.client().done.procedure_calls, 1);
    let mut commands = ScriptCommands::new(call.shared, session.principal, session.selected());
    let scope = commands.in_transaction(transaction);
    let value = procedures.call(id, scope, arguments)?;
    call.messages.append(&mut commands.into_messages());
    write_value(call.reply, session.version(), &value);
    Ok(())
}

/// What a value becomes in a reply. Version 2 of the protocol has no booleans: true is 1 and false
/// is null, as in Redis's scripts.
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

/// A file of procedures is shown as a library, each procedure as a function.
fn list(call: &mut Call<'_>) -> Result<(), Failure> {
    let pattern = match call.len() {
        2 => &b"*"[..],
        4 if call.is_word(2, "LIBRARYNAME") => call.arg(3),
        _ => {
            let argument = String::from_utf8_lossy(call.arg(2));
            return Err(Failure::other(format!("Unknown argument {argument}")));
        }
    };
    let mut libraries: BTreeMap<&str, Vec<&Procedure>> = BTreeMap::new();
    let program = call.shared.program.get();
    let named = program.procedures().iter().filter(|procedure| procedure.route.is_none());
    for procedure in named {
        let library = procedure.name.rsplit_once('.').map_or("", |(library, _)| library);
        if glob::matches(pattern, library.as_bytes()) {
            libraries.entry(library).or_default().push(procedure);
        }
    }
    let reply = &mut *call.reply;
    reply.array(libraries.len());
    for (library, procedures) in libraries {
        reply.map(3);
        reply.bulk(b"library_name");
        reply.bulk(library.as_bytes());
        reply.bulk(b"engine");
        reply.bulk(b"LUA");
        reply.bulk(b"functions");
        reply.array(procedures.len());
        for procedure in procedures {
            write_function(reply, procedure);
        }
    }
    Ok(())
}

fn write_function(reply: &mut dyn Reply, procedure: &Procedure) {
    reply.map(3);
    reply.bulk(b"name");
    reply.bulk(procedure.name.as_bytes());
    reply.bulk(b"description");
    reply.null();
    reply.bulk(b"flags");
    match procedure.mode {
        Mode::Read => {
            reply.set(1);
            reply.simple("no-writes");
        }
        Mode::Write => reply.set(0),
    }
}
