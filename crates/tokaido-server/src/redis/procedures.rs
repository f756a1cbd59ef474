//! Procedures as commands: FCALL, FCALL_RO, bare names, and FUNCTION LIST.

use std::collections::BTreeMap;

use tokaido_script::{CallError, Mode, Procedure, ProcedureId, Transaction, Value, Vm};
use tokaido_store::parse_integer;
use tokaido_wire::resp::{ReplyWriter, Version};

use super::{
    call::Call,
    execute::{self, Context, Step, Target},
    failure::Failure,
    glob,
};
use crate::Counters;

/// A procedure and what it is called with.
pub(crate) struct Invocation {
    id: ProcedureId,
    mode: Mode,
    arguments: Vec<Value>,
}

/// `hits.count /index`: every argument after the name is one of the procedure's.
pub(super) fn bare(call: &Call<'_, '_>, vm: &Vm) -> Result<Invocation, Failure> {
    prepare(call, vm, call.arg(0), 1)
}

pub(super) fn fcall(call: &Call<'_, '_>, vm: &Vm) -> Result<Invocation, Failure> {
    let invocation = prepare(call, vm, call.arg(1), 3)?;
    check_key_count(call)?;
    Ok(invocation)
}

pub(super) fn fcall_ro(call: &Call<'_, '_>, vm: &Vm) -> Result<Invocation, Failure> {
    let invocation = fcall(call, vm)?;
    match invocation.mode {
        Mode::Read => Ok(invocation),
        Mode::Write => {
            Err(Failure::other("Can not execute a script with write flag using *_ro command."))
        }
    }
}

/// The keys come first, and the procedure gets keys and arguments alike, so their number is only
/// checked.
fn check_key_count(call: &Call<'_, '_>) -> Result<(), Failure> {
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
    call: &Call<'_, '_>,
    vm: &Vm,
    name: &[u8],
    first_argument: usize,
) -> Result<Invocation, Failure> {
    let id = vm.find(name).ok_or_else(|| Failure::other("Function not found"))?;
    let known = call.shared.procedures.get(id);
    let procedure = known.ok_or_else(|| Failure::other("Function not found"))?;
    if let Some(route) = &procedure.route {
        return Err(Failure::other(format!(
            "{} answers {} {} over HTTP and cannot be called by name",
            procedure.name, route.method, route.pattern
        )));
    }
    let arguments = call.request.arguments_from(first_argument);
    let arguments = arguments.map(|argument| Value::String(argument.to_vec())).collect();
    Ok(Invocation { id, mode: procedure.mode, arguments })
}

/// Runs a procedure in a transaction of its own: where it may, on the snapshot.
pub(super) fn run(
    call: &mut Call<'_, '_>,
    context: &mut Context<'_>,
    invocation: &Invocation,
) -> Result<Step, Failure> {
    let is_short = call.shared.procedures.runs_inline(invocation.id);
    if invocation.mode == Mode::Read && !is_short && !context.may_take_long {
        return Ok(Step::NeedsPool);
    }
    let vm = &mut *context.vm;
    match (invocation.mode, &mut context.target) {
        (Mode::Read, Target::Snapshot(snapshot)) => {
            call_in(call, vm, Transaction::Read(*snapshot), invocation)?;
        }
        (Mode::Read, Target::Writer(writer)) => {
            execute::read(*writer, |tx| call_in(call, vm, Transaction::Read(tx), invocation))?;
        }
        (Mode::Write, Target::Snapshot(_)) => return Ok(Step::NeedsWriter),
        (Mode::Write, Target::Writer(writer)) => {
            execute::write(call, *writer, |call, tx| {
                call_in(call, vm, Transaction::Write(tx), invocation)
            })?;
        }
    }
    Ok(Step::Done)
}

/// Runs a procedure in a transaction that is open, and writes its result.
pub(super) fn call_in(
    call: &mut Call<'_, '_>,
    vm: &mut Vm,
    transaction: Transaction<'_>,
    invocation: &Invocation,
) -> Result<(), Failure> {
    Counters::add(&call.shared.counters.procedure_calls);
    let result = call
        .shared
        .procedures
        .timed(invocation.id, || vm.call(invocation.id, transaction, &invocation.arguments));
    match result {
        Ok(value) => {
            write_value(call.reply, &value);
            Ok(())
        }
        Err(error) => {
            log(&error);
            Err(error.into())
        }
    }
}

/// The client gets one line; whoever runs the server can see the rest.
fn log(error: &CallError) {
    match error {
        CallError::Raised { message, traceback } => {
            tracing::debug!(message, traceback, "a procedure raised an error");
        }
        other => tracing::warn!(%other, "a procedure was stopped"),
    }
}

/// What a value becomes in a reply. Version 2 of the protocol has no booleans: true is 1 and false
/// is null, as in Redis's scripts.
fn write_value(reply: &mut ReplyWriter<'_>, value: &Value) {
    match value {
        Value::Nil => reply.null(),
        Value::Boolean(false) if reply.version() == Version::Resp2 => reply.null(),
        Value::Boolean(value) => reply.boolean(*value),
        Value::Integer(value) => reply.integer(*value),
        Value::Number(value) => reply.double(*value),
        Value::String(value) => reply.bulk(value),
        Value::Array(values) => {
            reply.array(values.len());
            for value in values {
                write_value(reply, value);
            }
        }
        Value::Map(pairs) => {
            reply.map(pairs.len());
            for (key, value) in pairs {
                write_value(reply, key);
                write_value(reply, value);
            }
        }
    }
}

/// A file of procedures is shown as a library, each procedure as a function.
pub(super) fn list(call: &mut Call<'_, '_>) -> Result<Step, Failure> {
    let pattern = match call.len() {
        2 => &b"*"[..],
        4 if call.is_word(2, "LIBRARYNAME") => call.arg(3),
        _ => {
            let argument = String::from_utf8_lossy(call.arg(2));
            return Err(Failure::other(format!("Unknown argument {argument}")));
        }
    };
    let mut libraries: BTreeMap<&str, Vec<&Procedure>> = BTreeMap::new();
    let named = call.shared.procedures.list().iter().filter(|procedure| procedure.route.is_none());
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
    Ok(Step::Done)
}

fn write_function(reply: &mut ReplyWriter<'_>, procedure: &Procedure) {
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
