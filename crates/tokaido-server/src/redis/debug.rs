//! DEBUG: what test suites need to look inside a server or to disturb it. It is refused unless the
//! configuration allows it.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use tokaido_store::{NewRecord, ReadTransaction, WriteTransaction};
use tokaido_wire::resp::Request;

use super::{
    call::Call,
    command::{Command, rows},
    dump,
    execute::Step,
    failure::Failure,
    introspection,
    keys::encoding,
    number::parse_double,
    session::Session,
};
use crate::{Shared, config::DebugCommand};

pub(super) const COMMANDS: &[Command] = rows! {
"debug" -2 Container(None), NO_KEY [ADMIN DANGEROUS NO_SCRIPT] Server "1.0.0"
    ""
    "Commands for test suites, enabled by the option debug_command.";
"debug|error" 3 Server(error), NO_KEY [ADMIN DANGEROUS NO_SCRIPT] Server "1.0.0"
    "message"
    "Returns an error with the given message.";
"debug|help" 2 Server(introspection::help), NO_KEY [ADMIN DANGEROUS NO_SCRIPT] Server "1.0.0"
    ""
    "Lists the subcommands.";
"debug|loadaof" 2 Server(reload), NO_KEY [ADMIN DANGEROUS NO_SCRIPT] Server "1.0.0"
    ""
    "Does nothing: every acknowledged write is already stored, and a restart would find it.";
"debug|object" 3 Read(object), SUBKEY [ADMIN DANGEROUS NO_SCRIPT] Server "1.0.0"
    "key"
    "Returns the encoding of a value, and its length as serialized by DUMP.";
"debug|populate" -3 Write(populate), NO_KEY [ADMIN DANGEROUS DENYOOM NO_SCRIPT] Server "1.0.0"
    "count [prefix] [size]"
    "Creates the given number of keys (key:0, key:1, ...), skipping those that exist.";
"debug|protocol" 3 Server(protocol), NO_KEY [ADMIN DANGEROUS NO_SCRIPT] Server "1.0.0"
    "type"
    "Returns a reply of the type: string, integer, double, null, array, set, map, verbatim, true, false or bignum.";
"debug|reload" 2 Server(reload), NO_KEY [ADMIN DANGEROUS NO_SCRIPT] Server "1.0.0"
    ""
    "Does nothing: every acknowledged write is already stored, and a restart would find it.";
"debug|set-active-expire" 3 Server(set_active_expire), NO_KEY [ADMIN DANGEROUS NO_SCRIPT] Server "1.0.0"
    "<0 | 1>"
    "Suspends (0) or resumes (1) the removal of expired records. They are invisible either way.";
"debug|sleep" 3 Connection(sleep), NO_KEY [ADMIN DANGEROUS NO_MULTI NO_SCRIPT] Server "1.0.0"
    "seconds"
    "Replies after a number of seconds, without holding up other connections.";
};

/// Whether a command is DEBUG or one of its subcommands.
pub(super) fn is_of_debug(command: &Command) -> bool {
    command.name == "debug" || command.container() == Some("debug")
}

/// Refuses DEBUG if the configuration does not allow it to this client.
pub(super) fn check(
    session: &Session,
    request: Request<'_>,
    shared: &Shared,
) -> Result<(), Failure> {
    let is_allowed = match shared.debug_command() {
        DebugCommand::No => false,
        DebugCommand::Local => is_local(&session.client().peer),
        DebugCommand::Yes => true,
    };
    if is_allowed || request.len() < 2 || !request.name().eq_ignore_ascii_case(b"debug") {
        return Ok(());
    }
    Err(Failure::other(
        "DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can \
         run it from a local connection, otherwise you need to set this option in the configuration \
         file, and then restart the server.",
    ))
}

/// Whether a peer is on this machine. For a UNIX socket, `peer` is a path, not an address.
fn is_local(peer: &str) -> bool {
    peer.parse::<SocketAddr>().map_or(true, |address| address.ip().to_canonical().is_loopback())
}

/// Parks the request, like one that waits for an element: no thread sleeps.
fn sleep(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    /// Maximum sleep: a day.
    const SECONDS_MAX: f64 = 24.0 * 3600.0;
    let now = Instant::now();
    let until = match session.sleeps_until {
        Some(until) => until,
        None => {
            let seconds = parse_double(call.arg(2)).filter(|s| (0.0..=SECONDS_MAX).contains(s));
            let message = "the time is no number of seconds from 0 to 86400";
            let seconds = seconds.ok_or_else(|| Failure::other(message))?;
            now + Duration::from_secs_f64(seconds)
        }
    };
    if until > now {
        session.sleeps_until = Some(until);
        return Ok(Step::Block { until: Some(until) });
    }
    session.sleeps_until = None;
    call.reply.ok();
    Ok(Step::Done)
}

fn error(call: &mut Call<'_>) -> Result<(), Failure> {
    call.reply.error(&String::from_utf8_lossy(call.arg(2)));
    Ok(())
}

fn reload(call: &mut Call<'_>) -> Result<(), Failure> {
    call.reply.ok();
    Ok(())
}

fn object(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    /// What DUMP adds to a value: its type, the format version, and a checksum.
    const AROUND_LEN: usize = 1 + 2 + 8;
    let key = call.arg(2);
    let encoding = tx.get(call.database, key)?.map(encoding).ok_or(Failure::NoSuchKey)?;
    let payload = dump::payload(call, tx, key)?.ok_or(Failure::NoSuchKey)?;
    let encoding = String::from_utf8_lossy(encoding);
    let len = payload.len().saturating_sub(AROUND_LEN);
    call.reply.simple(&format!(
        "Value at:0x0 refcount:1 encoding:{encoding} serializedlength:{len} lru:0 lru_seconds_idle:0"
    ));
    Ok(())
}

fn set_active_expire(call: &mut Call<'_>) -> Result<(), Failure> {
    call.shared.pause.keep_expired(call.integer(2)? == 0);
    call.reply.ok();
    Ok(())
}

fn populate(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    if call.len() > 5 {
        return Err(Failure::Syntax);
    }
    let count = call.positive(2)?;
    let prefix = call.request.get(3).unwrap_or(b"key");
    let size = if call.len() > 4 { Some(call.positive(4)?) } else { None };
    let value_bytes_max = call.shared.limits().value_bytes_max;
    let size = size.map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    if size.is_some_and(|size| size > value_bytes_max) {
        return Err(Failure::other(format!("a value has at most {value_bytes_max} bytes")));
    }
    for number in 0..count {
        let key = [prefix, format!(":{number}").as_bytes()].concat();
        if tx.get(call.database, &key)?.is_none() {
            let mut value = format!("value:{number}").into_bytes();
            value.resize(size.unwrap_or(value.len()), 0);
            tx.put(call.database, &key, NewRecord::of(&value))?;
        }
    }
    call.reply.ok();
    Ok(())
}

fn protocol(call: &mut Call<'_>) -> Result<(), Failure> {
    let kind = call.arg(2).to_ascii_lowercase();
    let reply = &mut *call.reply;
    match &kind[..] {
        b"string" => reply.bulk(b"Hello World"),
        b"integer" => reply.integer(12345),
        // 3.141, as in Redis.
        b"double" => reply.double(3141.0 / 1000.0),
        b"null" => reply.null(),
        b"array" => {
            reply.array(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        b"set" => {
            reply.set(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        b"map" => {
            reply.map(3);
            for number in 0..3 {
                reply.integer(number);
                reply.boolean(number == 1);
            }
        }
        b"verbatim" => reply.verbatim("txt", "This is a verbatim\nstring"),
        b"true" => reply.boolean(true),
        b"false" => reply.boolean(false),
        b"bignum" => reply.big_number("1234567999999999999999999999999999999"),
        _ => {
            return Err(Failure::other(
                "Wrong protocol type name. Please use one of the following: string|integer|double|\
                 null|array|set|map|verbatim|true|false|bignum",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_on_this_machine_is_local() {
        for (peer, expected) in [
            ("127.0.0.1:5000", true),
            ("127.9.9.9:1", true),
            ("[::1]:5000", true),
            ("[::ffff:127.0.0.1]:5000", true),
            ("/run/t.sock:0", true),
            ("10.0.0.1:5000", false),
            ("[2001:db8::1]:5000", false),
        ] {
            assert_eq!(is_local(peer), expected, "{peer}");
        }
    }
}
