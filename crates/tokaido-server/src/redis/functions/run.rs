//! Calls functions and changes libraries, each in the transaction that it is given.

use std::sync::Arc;

use tokaido_script::{CallError, Mode, Transaction};
use tokaido_store::{ReadTransaction, WriteTransaction};

use super::{
    library::{Function, Libraries, Library},
    metadata,
    payload::{self, Policy},
};
use crate::{
    Procedures,
    redis::{call::Call, eval, failure::Failure, number::parse_integer, session::Session},
};

/// A function to call, and how it is called, without the arguments themselves.
pub(crate) struct FunctionCall {
    library: Arc<Library>,
    place: usize,
    keys: usize,
    mode: Mode,
}

impl FunctionCall {
    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether a worker may run it itself if it only reads.
    pub(in crate::redis) fn runs_inline(&self) -> bool {
        self.function().statistics.is_short()
    }

    fn function(&self) -> &Function {
        &self.library.functions[self.place]
    }
}

/// A change of the libraries.
pub(crate) enum LibraryChange {
    /// Add a library, or replace one.
    Load { replaces: bool },
    /// Restore the libraries of a payload.
    Restore(Policy),
}

/// The function that FCALL or FCALL_RO names, as the transaction sees it.
pub(in crate::redis) fn wanted(
    call: &Call<'_>,
    procedures: &mut Procedures<'_>,
    tx: &mut dyn ReadTransaction,
    only_reads: bool,
) -> Result<FunctionCall, Failure> {
    let shared = call.shared;
    let libraries = procedures.with_scripts(|scripts| scripts.functions.libraries(shared, tx))?;
    let name = call.arg(1);
    let (library, place) = libraries.find(name).ok_or_else(|| {
        let why = shared.program.loading().why_missing(name);
        Failure::other(why.unwrap_or_else(|| "Function not found".to_owned()))
    })?;
    let keys = key_count(call)?;
    let no_writes = library.functions[place].registered.flags.no_writes();
    if only_reads && !no_writes {
        let message = "Can not execute a script with write flag using *_ro command.";
        return Err(Failure::other(message));
    }
    let mode = if no_writes { Mode::Read } else { Mode::Write };
    Ok(FunctionCall { library, place, keys, mode })
}

/// The number of keys that FCALL declares.
pub(in crate::redis) fn key_count(call: &Call<'_>) -> Result<usize, Failure> {
    let count =
        parse_integer(call.arg(2)).ok_or_else(|| Failure::other("Bad number of keys provided"))?;
    match usize::try_from(count) {
        Err(_) => Err(Failure::other("Number of keys can't be negative")),
        Ok(count) if count > call.len() - 3 => {
            Err(Failure::other("Number of keys can't be greater than number of args"))
        }
        Ok(count) => Ok(count),
    }
}

/// Calls a function in an open transaction, and writes its result.
pub(in crate::redis) fn call_in(
    call: &mut Call<'_>,
    session: &Session,
    procedures: &mut Procedures<'_>,
    transaction: Transaction<'_>,
    wanted: &FunctionCall,
) -> Result<(), Failure> {
    let Function { registered, statistics } = wanted.function();
    let (shared, request, library) = (call.shared, call.request, &*wanted.library);
    let how = (wanted.mode, wanted.keys, statistics);
    let (version, called) = eval::run_lua(
        call,
        session,
        procedures,
        transaction,
        how,
        |scripts, (keys, arguments), scope| {
            let name = registered.name.as_str();
            let call = tokaido_script::FunctionCall { library: &library.id, name, keys, arguments };
            scripts.functions.call(shared, library, call, request, scope)
        },
    )?;
    match called {
        Ok(value) => eval::write_result(call.reply, version, &value),
        // The error is a reply like any other, and the transaction is committed.
        Err(CallError::Raised { message, .. }) if shared.keeps_failed_scripts() => {
            call.reply.error(&message);
        }
        Err(error) => return Err(failure(&registered.name, error)),
    }
    call.check_reply()
}

/// The error that the client gets for a failed function.
fn failure(name: &str, error: CallError) -> Failure {
    match error {
        CallError::Raised { message, .. } => Failure::Script(message),
        CallError::Interrupted => {
            Failure::Script(format!("ERR Script killed by user with FUNCTION KILL. script: {name}"))
        }
        other => Failure::other(format!("function {other}")),
    }
}

/// Changes the libraries in an open transaction, and replies.
pub(in crate::redis) fn change_in(
    call: &mut Call<'_>,
    procedures: &mut Procedures<'_>,
    transaction: Transaction<'_>,
    change: &LibraryChange,
) -> Result<(), Failure> {
    let Transaction::Write(tx) = transaction else { return Err(Failure::ReadOnlyScript) };
    let shared = call.shared;
    let libraries = procedures.with_scripts(|scripts| scripts.functions.libraries(shared, tx))?;
    let mut libraries = (*libraries).clone();
    match change {
        LibraryChange::Load { replaces } => {
            let code = call.arg(call.len() - 1);
            let name = add(call, procedures, &mut libraries, code, *replaces)?;
            write(call, tx, &libraries)?;
            call.reply.bulk(name.as_bytes());
        }
        LibraryChange::Restore(policy) => {
            if *policy == Policy::Flush {
                libraries = Libraries::default();
            }
            for code in payload::libraries(call)? {
                let name = metadata::library_name(&code)?;
                if *policy != Policy::Replace && libraries.has(&name) {
                    return Err(Failure::other(format!("Library {name} already exists")));
                }
                add(call, procedures, &mut libraries, &code, true)?;
            }
            write(call, tx, &libraries)?;
            call.reply.ok();
        }
    }
    Ok(())
}

fn write(
    call: &Call<'_>,
    tx: &mut dyn WriteTransaction,
    libraries: &Libraries,
) -> Result<(), Failure> {
    call.shared.functions.write(tx, libraries, call.shared.limits())
}

/// Adds the library with this code. Returns its name.
fn add(
    call: &Call<'_>,
    procedures: &mut Procedures<'_>,
    libraries: &mut Libraries,
    code: &[u8],
    replaces: bool,
) -> Result<String, Failure> {
    let max = call.shared.limits().redis_script_bytes_max;
    if code.len() > max {
        let message = format!("a library has at most {max} bytes (redis_script_bytes_max)");
        return Err(Failure::other(message));
    }
    let name = metadata::library_name(code)?;
    if libraries.has(&name) && !replaces {
        return Err(Failure::other(format!("Library '{name}' already exists")));
    }
    let functions = procedures.with_scripts(|scripts| scripts.functions.load(call.shared, code))?;
    let of_procedure =
        functions.iter().find(|function| procedures.find(function.name.as_bytes()).is_some());
    if let Some(function) = of_procedure {
        return Err(Failure::other(format!(
            "Function {} already exists, as a procedure of the server",
            function.name
        )));
    }
    libraries.add(&name, Library::new(code, functions))?;
    Ok(name)
}
