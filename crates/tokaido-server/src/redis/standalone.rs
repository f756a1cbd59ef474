//! Commands for operators of Redis that make sense here: saving, replication, modules, and shutdown.

use super::{
    call::Call,
    command::{Command, rows},
    execute::Step,
    failure::Failure,
    introspection,
    session::Session,
};
use crate::shared::wall_clock_us;

pub(super) const COMMANDS: &[Command] = rows! {
"bgrewriteaof" 1 Server(bgrewriteaof), NO_KEY [ADMIN DANGEROUS NO_SCRIPT] Server "1.0.0"
    ""
    "Does nothing: checkpoints shorten the log automatically.";
"bgsave" -1 Server(bgsave), NO_KEY [ADMIN DANGEROUS NO_SCRIPT] Server "1.0.0"
    "[SCHEDULE]"
    "Does nothing: every acknowledged write is already stored.";
"failover" -1 Server(failover), NO_KEY [ADMIN DANGEROUS NO_SCRIPT] Server "6.2.0"
    "[TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds]"
    "Returns an error: there are no replicas.";
"lastsave" 1 Server(lastsave), NO_KEY [FAST ADMIN DANGEROUS] Server "1.0.0"
    ""
    "Returns the current time in seconds since 1970: every acknowledged write is already stored.";
"module" -2 Container(None), NO_KEY [] Server "4.0.0"
    ""
    "Commands about modules.";
"module|help" 2 Server(introspection::help), NO_KEY [] Server "5.0.0"
    ""
    "Lists the subcommands.";
"module|list" 2 Server(no_modules), NO_KEY [ADMIN DANGEROUS NO_SCRIPT] Server "4.0.0"
    ""
    "Returns an empty list: there are no modules.";
"replicaof" 3 Server(replicaof), NO_KEY [ADMIN DANGEROUS NO_SCRIPT] Server "5.0.0"
    "host port"
    "Accepts only NO ONE: a server is never a replica.";
"save" 1 Server(save), NO_KEY [ADMIN DANGEROUS NO_SCRIPT NO_MULTI] Server "1.0.0"
    ""
    "Does nothing: every acknowledged write is already stored.";
"shutdown" -1 Connection(shutdown), NO_KEY [ADMIN DANGEROUS NO_SCRIPT NO_MULTI] Server "1.0.0"
    "[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]"
    "Stops the server as SIGTERM does, once it has answered the requests that it has accepted.";
"slaveof" 3 Server(replicaof), NO_KEY [ADMIN DANGEROUS NO_SCRIPT] Server "1.0.0"
    "host port"
    "Accepts only NO ONE: a server is never a replica.";
};

fn save(call: &mut Call<'_>) -> Result<(), Failure> {
    call.reply.ok();
    Ok(())
}

fn bgsave(call: &mut Call<'_>) -> Result<(), Failure> {
    match call.len() {
        1 => {}
        2 if call.is_word(1, "SCHEDULE") => {}
        _ => return Err(Failure::Syntax),
    }
    call.reply.simple("Background saving started");
    Ok(())
}

fn bgrewriteaof(call: &mut Call<'_>) -> Result<(), Failure> {
    call.reply.simple("Background append only file rewriting started");
    Ok(())
}

/// Scripts wait until this is later than it was before BGSAVE.
fn lastsave(call: &mut Call<'_>) -> Result<(), Failure> {
    call.reply.integer((wall_clock_us() / 1_000_000) as i64);
    Ok(())
}

fn failover(call: &mut Call<'_>) -> Result<(), Failure> {
    if call.len() == 2 && call.is_word(1, "ABORT") {
        return Err(Failure::other("No failover in progress."));
    }
    Err(Failure::other("FAILOVER requires connected replicas."))
}

fn replicaof(call: &mut Call<'_>) -> Result<(), Failure> {
    if !call.is_word(1, "NO") || !call.is_word(2, "ONE") {
        return Err(Failure::other(
            "this server is nobody's replica; `tokaido backup` copies a store while it is used",
        ));
    }
    call.reply.ok();
    Ok(())
}

fn no_modules(call: &mut Call<'_>) -> Result<(), Failure> {
    call.reply.array(0);
    Ok(())
}

/// Sends no reply to the caller: the connection closes.
fn shutdown(call: &mut Call<'_>, _: &mut Session) -> Result<Step, Failure> {
    let words = ["NOSAVE", "SAVE", "NOW", "FORCE", "ABORT"];
    let given: Vec<Option<usize>> = (1..call.len())
        .map(|index| words.iter().position(|word| call.is_word(index, word)))
        .collect();
    let has = |word| given.contains(&words.iter().position(|known| *known == word));
    if given.contains(&None) || has("NOSAVE") && has("SAVE") || has("ABORT") && given.len() > 1 {
        return Err(Failure::Syntax);
    }
    if has("ABORT") {
        return Err(Failure::other("No shutdown in progress."));
    }
    if !call.shared.stopping.ask() {
        let message = "this server is a part of another program, which alone can stop it";
        return Err(Failure::other(message));
    }
    Ok(Step::Close)
}
