//! Arguments as shown to an operator: without passwords, and limited in length.

use tokaido_wire::resp::Request;

use crate::redis::command::Command;

/// Replaces a secret.
const REDACTED: &[u8] = b"(redacted)";

/// Whether the argument at `index` is a secret.
pub(super) fn is_secret(command: &Command, request: Request<'_>, index: usize) -> bool {
    let is_word = |at: usize, word: &str| {
        request.get(at).is_some_and(|argument| argument.eq_ignore_ascii_case(word.as_bytes()))
    };
    match command.name {
        "auth" => index > 0,
        "hello" => {
            (2..request.len()).any(|at| is_word(at, "AUTH") && (at + 1..=at + 2).contains(&index))
        }
        "acl|setuser" => index > 1,
        _ => false,
    }
}

/// The argument at `index`, or a placeholder if it is a secret.
pub(super) fn argument<'r>(command: &Command, request: Request<'r>, index: usize) -> &'r [u8] {
    match is_secret(command, request, index) {
        true => REDACTED,
        false => request.get(index).unwrap_or_default(),
    }
}
