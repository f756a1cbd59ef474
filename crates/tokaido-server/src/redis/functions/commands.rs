//! The subcommands of FUNCTION.

use std::sync::Arc;

use tokaido_store::{ReadTransaction, WriteTransaction};

use super::{describe, library::Libraries, payload, run::LibraryChange};
use crate::{
    Procedures,
    redis::{
        call::Call,
        command::{Command, rows},
        failure::Failure,
        introspection,
        procedures::Invocation,
    },
};

pub(in crate::redis) const COMMANDS: &[Command] = rows! {
"function" -2 Container(None), NO_KEY [] Scripting "7.0.0"
    ""
    "Commands about functions.";
"function|delete" 3 Write(delete), NO_KEY [NO_SCRIPT SPANS] Scripting "7.0.0"
    "library-name"
    "Deletes a library and its functions.";
"function|dump" 2 Read(dump), NO_KEY [NO_SCRIPT] Scripting "7.0.0"
    ""
    "Returns all libraries as a payload for FUNCTION RESTORE, in Redis' own format.";
"function|flush" -2 Write(flush), NO_KEY [NO_SCRIPT SPANS] Scripting "7.0.0"
    "[ASYNC | SYNC]"
    "Deletes all libraries.";
"function|help" 2 Server(introspection::help), NO_KEY [] Scripting "7.0.0"
    ""
    "Lists the subcommands.";
"function|kill" 2 Server(kill), NO_KEY [NO_SCRIPT] Scripting "7.0.0"
    ""
    "Stops the running functions; none of their changes are kept.";
"function|list" -2 Read(describe::list), NO_KEY [NO_SCRIPT] Scripting "7.0.0"
    "[LIBRARYNAME library-name-pattern] [WITHCODE]"
    "Lists the libraries with their functions. A file of installed procedures is listed as a library, too.";
"function|load" -3 Procedure(load), NO_KEY [NO_SCRIPT] Scripting "7.0.0"
    "[REPLACE] function-code"
    "Loads a library, which is kept until it is deleted.";
"function|restore" -3 Procedure(restore), NO_KEY [NO_SCRIPT] Scripting "7.0.0"
    "serialized-value [FLUSH | APPEND | REPLACE]"
    "Adds the libraries in a payload returned by FUNCTION DUMP.";
"function|stats" 2 Read(describe::stats), NO_KEY [NO_SCRIPT] Scripting "7.0.0"
    ""
    "Returns which function is running, and how many libraries and functions there are.";
};

/// The libraries as the transaction sees them.
pub(super) fn libraries(
    call: &Call<'_>,
    tx: &mut dyn ReadTransaction,
) -> Result<Arc<Libraries>, Failure> {
    call.shared.functions.read(tx, &Arc::default())
}

fn load(call: &Call<'_>, _: &Procedures<'_>) -> Result<Invocation, Failure> {
    let mut replaces = false;
    for place in 2..call.len() - 1 {
        if !call.is_word(place, "REPLACE") {
            let option = String::from_utf8_lossy(call.arg(place));
            return Err(Failure::other(format!("Unknown option given: {option}")));
        }
        replaces = true;
    }
    Ok(Invocation::Libraries(LibraryChange::Load { replaces }))
}

fn restore(call: &Call<'_>, _: &Procedures<'_>) -> Result<Invocation, Failure> {
    payload::policy(call).map(|policy| Invocation::Libraries(LibraryChange::Restore(policy)))
}

fn delete(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let mut libraries = (*libraries(call, tx)?).clone();
    let name = str::from_utf8(call.arg(2)).unwrap_or_default();
    if !libraries.remove(name) {
        return Err(Failure::other("Library not found"));
    }
    call.shared.functions.write(tx, &libraries, call.shared.limits())?;
    call.reply.ok();
    Ok(())
}

fn flush(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    if call.len() > 3 {
        return Err(payload::too_many(call));
    }
    if call.len() == 3 && !call.is_word(2, "ASYNC") && !call.is_word(2, "SYNC") {
        return Err(Failure::other("FUNCTION FLUSH only supports SYNC|ASYNC option"));
    }
    call.shared.functions.write(tx, &Libraries::default(), call.shared.limits())?;
    call.reply.ok();
    Ok(())
}

fn dump(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let libraries = libraries(call, tx)?;
    call.reply.bulk(&payload::dump(&libraries));
    Ok(())
}

fn kill(call: &mut Call<'_>) -> Result<(), Failure> {
    if !call.shared.functions.slots.kill() {
        return Err(Failure::NotBusy);
    }
    call.reply.ok();
    Ok(())
}
