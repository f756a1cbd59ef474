//! What to use instead of commands that Redis has and this server lacks. Callers of them are told.

use tokaido_wire::resp::Request;

use super::failure::Failure;
use crate::Shared;

/// The commands, and what to use instead.
const INSTEAD: &[(&[&str], &str)] = &[
    (&["migrate"], "DUMP and RESTORE move a record, `tokaido dump` and `tokaido load` a database"),
    (&["psync", "replconf", "sync"], "there are no replicas; `tokaido backup` copies a store"),
    (&["pfdebug", "pfselftest"], "GET gives the bytes of a HyperLogLog, which are Redis' own"),
];

/// What to use instead of a command.
fn of(name: &[u8]) -> Option<&'static str> {
    let is_named = |names: &[&str]| names.iter().any(|n| name.eq_ignore_ascii_case(n.as_bytes()));
    INSTEAD.iter().find_map(|&(names, instead)| is_named(names).then_some(instead))
}

/// Why the procedure did not load, or otherwise Redis's own wording, which clients look for.
pub(super) fn unknown(shared: &Shared, request: Request<'_>) -> Failure {
    if let Some(why) = shared.program.loading().why_missing(request.name()) {
        return Failure::other(why);
    }
    /// Maximum length of the repeated name, and of all repeated arguments together, in bytes.
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
    let mut message = format!(
        "unknown command '{}', with args beginning with: {arguments}",
        shown(request.name())
    );
    if let Some(instead) = of(request.name()) {
        message.truncate(message.trim_end().len());
        message.push_str("; ");
        message.push_str(instead);
    }
    Failure::Other(message)
}
