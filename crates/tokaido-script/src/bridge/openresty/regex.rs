//! Regular expressions: compiling, and the matches that need more than `tokaido_regex_run`.

use super::super::context::{Context, Fault, NO, YES};
use crate::{openresty::regex::Dollar, watchdog};

/// Compiles an expression. Reply: its number; the addresses of what is run (the integer) and of the offsets
/// (the key); how many groups (the flags) and bytes (the expiry) it has; and as data the names of groups,
/// each as `1 name` and a line feed. `NO` if it cannot be compiled, with the reason as data.
pub(crate) fn regex_compile(
    context: &mut Context,
    pattern: &[u8],
    flags: &[u8],
) -> Result<i32, Fault> {
    compile_regex(context, pattern, flags, Dollar::EndOrLineFeed)
}

/// The same, with a given meaning for `$`.
pub(crate) fn compile_regex(
    context: &mut Context,
    pattern: &[u8],
    flags: &[u8],
    dollar: Dollar,
) -> Result<i32, Fault> {
    let (number, compiled) = match context.regexes.compile(pattern, flags, dollar) {
        Ok(compiled) => compiled,
        Err(error) => {
            context.answer(|out| out.extend_from_slice(error.to_string().as_bytes()));
            return Ok(NO);
        }
    };
    context.reply.integer = compiled.address() as i64;
    context.reply.key = compiled.offsets();
    context.reply.flags = f64::from(compiled.groups);
    let names = compiled.names();
    context.reply.number = number as f64;
    Ok(context.answer(|out| {
        for (number, name) in names {
            out.extend_from_slice(number.to_string().as_bytes());
            out.push(b' ');
            out.extend_from_slice(&name);
            out.push(b'\n');
        }
    }))
}

/// Sets how many bytes of stack matches may use from here on.
pub(crate) fn regex_set_stack(context: &mut Context, bytes_max: f64) -> Result<i32, Fault> {
    context.regexes.set_stack(bytes_max as usize);
    Ok(YES)
}

/// Retries a match that ran out of stack; PCRE2's result is the reply's number.
pub(crate) fn regex_deep(
    context: &mut Context,
    number: i32,
    subject: &[u8],
    start: i32,
) -> Result<i32, Fault> {
    let found = context.regexes.run_deep(number as usize, subject, start as usize);
    let found = found.ok_or_else(|| Fault::refused("there is no memory for the match's stack"))?;
    context.reply.number = f64::from(found);
    Ok(YES)
}

/// Matches with a DFA; PCRE2's result is the reply's number.
pub(crate) fn regex_dfa(
    context: &mut Context,
    number: i32,
    subject: &[u8],
    start: i32,
) -> Result<i32, Fault> {
    let found =
        context.regexes.run_dfa(number as usize, subject, start as usize, watchdog::is_stopping);
    context.reply.number = f64::from(found.map_err(Fault::Refused)?);
    Ok(YES)
}
