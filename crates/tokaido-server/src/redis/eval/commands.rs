//! EVAL, EVALSHA, and SCRIPT.

use tokaido_script::Mode;

use super::run::ScriptCall;
use crate::{
    Procedures,
    redis::{
        call::Call,
        command::{Command, rows},
        failure::Failure,
        introspection,
        number::parse_integer,
        procedures::Invocation,
    },
};

pub(in crate::redis) const COMMANDS: &[Command] = rows! {
"eval" -3 Procedure(eval), NO_KEY [MOVABLE_KEYS NO_SCRIPT] Scripting "2.6.0"
    "script numkeys [key [key ...]] [arg [arg ...]]"
    "Runs a script as one transaction. If it fails, none of its changes are kept.";
"eval_ro" -3 Procedure(eval_ro), NO_KEY [MOVABLE_KEYS NO_SCRIPT] Scripting "7.0.0"
    "script numkeys [key [key ...]] [arg [arg ...]]"
    "Runs a script that only reads.";
"evalsha" -3 Procedure(evalsha), NO_KEY [MOVABLE_KEYS NO_SCRIPT] Scripting "2.6.0"
    "sha1 numkeys [key [key ...]] [arg [arg ...]]"
    "Runs a cached script, named by the SHA-1 of its text.";
"evalsha_ro" -3 Procedure(evalsha_ro), NO_KEY [MOVABLE_KEYS NO_SCRIPT] Scripting "7.0.0"
    "sha1 numkeys [key [key ...]] [arg [arg ...]]"
    "Runs a cached script that only reads.";
"script" -2 Container(None), NO_KEY [NO_SCRIPT] Scripting "2.6.0"
    ""
    "Commands about scripts.";
"script|exists" -3 Server(exists), NO_KEY [NO_SCRIPT] Scripting "2.6.0"
    "sha1 [sha1 ...]"
    "Returns for each script whether it is cached.";
"script|flush" -2 Server(flush), NO_KEY [NO_SCRIPT] Scripting "2.6.0"
    "[ASYNC | SYNC]"
    "Removes all scripts from the cache.";
"script|help" 2 Server(introspection::help), NO_KEY [NO_SCRIPT] Scripting "5.0.0"
    ""
    "Lists the subcommands.";
"script|kill" 2 Server(kill), NO_KEY [NO_SCRIPT] Scripting "2.6.0"
    ""
    "Stops the running scripts; none of their changes are kept.";
"script|load" 3 Procedure(load), NO_KEY [NO_SCRIPT] Scripting "2.6.0"
    "script"
    "Caches a script without running it.";
};

fn eval(call: &Call<'_>, _: &Procedures<'_>) -> Result<Invocation, Failure> {
    by_text(call, false)
}

fn eval_ro(call: &Call<'_>, _: &Procedures<'_>) -> Result<Invocation, Failure> {
    by_text(call, true)
}

fn evalsha(call: &Call<'_>, _: &Procedures<'_>) -> Result<Invocation, Failure> {
    by_name(call, false)
}

fn evalsha_ro(call: &Call<'_>, _: &Procedures<'_>) -> Result<Invocation, Failure> {
    by_name(call, true)
}

fn by_text(call: &Call<'_>, only_reads: bool) -> Result<Invocation, Failure> {
    let keys = key_count(call)?;
    let script = call.shared.scripts.of_text(call.arg(1), call.shared.limits())?;
    prepare(script, keys, only_reads)
}

fn by_name(call: &Call<'_>, only_reads: bool) -> Result<Invocation, Failure> {
    let keys = key_count(call)?;
    let script = call.shared.scripts.find(call.arg(1)).ok_or(Failure::NoScript)?;
    prepare(script, keys, only_reads)
}

fn prepare(
    script: std::sync::Arc<super::cache::Script>,
    keys: usize,
    only_reads: bool,
) -> Result<Invocation, Failure> {
    let flags = script.flags;
    if only_reads && flags.is_declared && !flags.no_writes {
        let message = "Can not execute a script with write flag using *_ro command.";
        return Err(Failure::other(message));
    }
    let mode = if only_reads || flags.no_writes { Mode::Read } else { Mode::Write };
    Ok(Invocation::Script(ScriptCall { script, mode, keys }))
}

fn key_count(call: &Call<'_>) -> Result<usize, Failure> {
    let count = parse_integer(call.arg(2)).ok_or(Failure::NotAnInteger)?;
    match usize::try_from(count) {
        Err(_) => Err(Failure::other("Number of keys can't be negative")),
        Ok(count) if count > call.len() - 3 => {
            Err(Failure::other("Number of keys can't be greater than number of args"))
        }
        Ok(count) => Ok(count),
    }
}

fn load(call: &Call<'_>, _: &Procedures<'_>) -> Result<Invocation, Failure> {
    let script = call.shared.scripts.of_text(call.arg(2), call.shared.limits())?;
    Ok(Invocation::Load(script))
}

fn exists(call: &mut Call<'_>) -> Result<(), Failure> {
    call.reply.array(call.len() - 2);
    for name in call.request.arguments_from(2) {
        call.reply.integer(i64::from(call.shared.scripts.find(name).is_some()));
    }
    Ok(())
}

fn flush(call: &mut Call<'_>) -> Result<(), Failure> {
    let is_option =
        call.len() == 2 || call.len() == 3 && (call.is_word(2, "ASYNC") || call.is_word(2, "SYNC"));
    if !is_option {
        return Err(Failure::other("SCRIPT FLUSH only support SYNC|ASYNC option"));
    }
    call.shared.scripts.flush();
    call.reply.ok();
    Ok(())
}

fn kill(call: &mut Call<'_>) -> Result<(), Failure> {
    if !call.shared.scripts.slots.kill() {
        return Err(Failure::NotBusy);
    }
    call.reply.ok();
    Ok(())
}
