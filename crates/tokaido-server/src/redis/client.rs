//! CLIENT: what connections say about themselves, and what is told about them.

use std::{fmt::Write, sync::atomic::Ordering};

use super::{
    blocking::Unblocked,
    call::Call,
    clients::{Client, Names},
    command::{Command, rows},
    connection::USER,
    execute::Step,
    failure::Failure,
    introspection,
    number::parse_integer,
    session::{ReplyMode, Session},
};
use crate::shared::{MAIN, wall_clock_us};

pub(super) const COMMANDS: &[Command] = rows! {
"client" -2 Container(None), NO_KEY [] Connection "2.4.0"
    ""
    "Commands about connections.";
"client|getname" 2 Connection(get_name), NO_KEY [] Connection "2.6.9"
    ""
    "Gives the name of the connection.";
"client|help" 2 Server(introspection::help), NO_KEY [] Connection "5.0.0"
    ""
    "Lists the subcommands.";
"client|id" 2 Connection(id), NO_KEY [] Connection "5.0.0"
    ""
    "Gives the id of the connection.";
"client|info" 2 Connection(info), NO_KEY [] Connection "6.2.0"
    ""
    "Tells about this connection.";
"client|list" -2 Connection(list), NO_KEY [ADMIN DANGEROUS] Connection "2.4.0"
    "[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]]"
    "Tells about the open connections.";
"client|no-evict" 3 Connection(on_or_off), NO_KEY [ADMIN DANGEROUS] Connection "7.0.0"
    "<ON | OFF>"
    "Does nothing: no connection is closed to save memory.";
"client|no-touch" 3 Connection(on_or_off), NO_KEY [] Connection "7.2.0"
    "<ON | OFF>"
    "Does nothing: reading never changes what is evicted.";
"client|reply" 3 Connection(reply), NO_KEY [NO_MULTI] Connection "3.2.0"
    "<ON | OFF | SKIP>"
    "Turns replies on or off, or leaves out the next one.";
"client|setinfo" 4 Connection(set_info), NO_KEY [] Connection "7.2.0"
    "<LIB-NAME libname | LIB-VER libver>"
    "Notes the name or the version of the client library.";
"client|setname" 3 Connection(set_name), NO_KEY [] Connection "2.6.9"
    "connection-name"
    "Names the connection.";
"client|tracking" -3 Connection(tracking), NO_KEY [] Connection "6.0.0"
    "<ON | OFF>"
    "Turns tracking of keys off. It cannot be turned on.";
"client|unblock" -3 Server(unblock), NO_KEY [ADMIN DANGEROUS] Connection "5.0.0"
    "client-id [TIMEOUT | ERROR]"
    "Ends the waiting of a client, as if its time were over, or with an error.";
};

/// Maximum length of the name of a client or of its library, in bytes.
const NAME_LEN_MAX: usize = 1024;

fn is_plain(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_graphic)
}

/// A name that may stand in CLIENT LIST, where spaces separate the fields.
pub(super) fn check_name(name: &[u8]) -> Result<String, Failure> {
    if !is_plain(name) {
        return Err(Failure::other(
            "Client names cannot contain spaces, newlines or special characters.",
        ));
    }
    limit_name(name)
}

fn limit_name(name: &[u8]) -> Result<String, Failure> {
    if name.len() > NAME_LEN_MAX {
        return Err(Failure::other(format!("a name has at most {NAME_LEN_MAX} bytes")));
    }
    Ok(String::from_utf8_lossy(name).into_owned())
}

fn set_name(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    let name = check_name(call.arg(2))?;
    session.client().change_names(|names| names.connection = name);
    call.reply.ok();
    Ok(Step::Done)
}

fn get_name(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    let name = session.client().names().connection;
    call.reply.bulk_or_null(Some(name.as_bytes()).filter(|name| !name.is_empty()));
    Ok(Step::Done)
}

fn set_info(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    let (is_name, is_version) = (call.is_word(2, "LIB-NAME"), call.is_word(2, "LIB-VER"));
    let option = String::from_utf8_lossy(call.arg(2));
    if !is_name && !is_version {
        return Err(Failure::other(format!("Unrecognized option '{option}'")));
    }
    if !is_plain(call.arg(3)) {
        let option = option.to_lowercase();
        return Err(Failure::other(format!(
            "{option} cannot contain spaces, newlines or special characters."
        )));
    }
    let value = limit_name(call.arg(3))?;
    session.client().change_names(|names| {
        *(if is_name { &mut names.library } else { &mut names.library_version }) = value;
    });
    call.reply.ok();
    Ok(Step::Done)
}

fn id(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    call.reply.integer(session.id() as i64);
    Ok(Step::Done)
}

/// NO-EVICT and NO-TOUCH, which change nothing: no client is evicted, and reads touch no record.
fn on_or_off(call: &mut Call<'_>, _: &mut Session) -> Result<Step, Failure> {
    if !call.is_word(2, "ON") && !call.is_word(2, "OFF") {
        return Err(Failure::Syntax);
    }
    call.reply.ok();
    Ok(Step::Done)
}

fn tracking(call: &mut Call<'_>, _: &mut Session) -> Result<Step, Failure> {
    if call.is_word(2, "ON") {
        return Err(Failure::other("this server does not track keys for client-side caches"));
    }
    if !call.is_word(2, "OFF") || call.len() > 3 {
        return Err(Failure::Syntax);
    }
    call.reply.ok();
    Ok(Step::Done)
}

/// OFF and SKIP are not answered: that is what they ask for.
fn reply(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    if call.is_word(2, "ON") {
        session.reply_mode = ReplyMode::On;
        call.reply.ok();
    } else if call.is_word(2, "OFF") {
        session.reply_mode = ReplyMode::Off;
    } else if !call.is_word(2, "SKIP") {
        return Err(Failure::Syntax);
    } else if session.reply_mode != ReplyMode::Off {
        session.reply_mode = ReplyMode::SkipNext;
    }
    Ok(Step::Done)
}

fn info(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    let line = describe(session.client());
    call.reply.verbatim("txt", &line);
    Ok(Step::Done)
}

fn list(call: &mut Call<'_>, _: &mut Session) -> Result<Step, Failure> {
    let mut clients = call.shared.clients.list();
    if call.len() == 4 && call.is_word(2, "TYPE") {
        let (is_normal, is_pubsub) = (call.is_word(3, "normal"), call.is_word(3, "pubsub"));
        if is_normal || is_pubsub {
            clients.retain(|client| client.is_subscribed() == is_pubsub);
        } else if ["master", "replica", "slave"].iter().any(|kind| call.is_word(3, kind)) {
            clients.clear();
        } else {
            let kind = String::from_utf8_lossy(call.arg(3));
            return Err(Failure::other(format!("Unknown client type '{kind}'")));
        }
    } else if call.len() > 3 && call.is_word(2, "ID") {
        let mut ids = Vec::with_capacity(call.len() - 3);
        for argument in call.request.arguments_from(3) {
            let id = parse_integer(argument).filter(|&id| id > 0);
            ids.push(id.ok_or_else(|| Failure::other("Invalid client ID"))? as u64);
        }
        clients.retain(|client| ids.contains(&client.id));
    } else if call.len() != 2 {
        return Err(Failure::Syntax);
    }
    let lines: String = clients.iter().map(|client| describe(client)).collect();
    call.reply.verbatim("txt", &lines);
    Ok(Step::Done)
}

fn unblock(call: &mut Call<'_>) -> Result<(), Failure> {
    let how = match call.len() {
        3 => Unblocked::Timeout,
        4 if call.is_word(3, "TIMEOUT") => Unblocked::Timeout,
        4 if call.is_word(3, "ERROR") => Unblocked::Error,
        _ => return Err(Failure::other("CLIENT UNBLOCK reason should be TIMEOUT or ERROR")),
    };
    let was_waiting = u64::try_from(call.integer(2)?)
        .is_ok_and(|session| call.shared.waiters.unblock(session, how));
    call.reply.integer(i64::from(was_waiting));
    Ok(())
}

/// What a client is in the middle of, a letter each.
fn flags(client: &Client) -> String {
    let is_in_multi = client.queued.load(Ordering::Relaxed) >= 0;
    let is_blocked = client.is_blocked.load(Ordering::Relaxed);
    let is_monitor = client.is_monitor.load(Ordering::Relaxed);
    let flags =
        [(client.is_subscribed(), 'P'), (is_in_multi, 'x'), (is_blocked, 'b'), (is_monitor, 'O')];
    let flags: String =
        flags.into_iter().filter_map(|(is_so, flag)| is_so.then_some(flag)).collect();
    if flags.is_empty() { "N".to_owned() } else { flags }
}

/// One line of CLIENT LIST, in the fields that clients read.
fn describe(client: &Client) -> String {
    let now_ms = wall_clock_us() / 1000;
    let seconds_since = |ms: u64| now_ms.saturating_sub(ms) / 1000;
    let Names { database, connection, library, library_version } = client.names();
    let database = if *database == *MAIN { "0" } else { &*database };
    let queued = client.queued.load(Ordering::Relaxed);
    let [sub, psub, ssub] = client.subscriptions();
    let mut line = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        line,
        "id={} addr={} laddr={} fd=-1 name={connection} age={} idle={} flags={} db={database} \
         sub={sub} psub={psub} ssub={ssub} multi={queued} qbuf=0 qbuf-free=0 argv-mem=0 \
         multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r cmd={} user={USER} \
         lib-name={library} lib-ver={library_version} redir=-1 resp={}",
        client.id,
        client.peer,
        client.local,
        seconds_since(client.opened_at_ms),
        seconds_since(client.active_at_ms.load(Ordering::Relaxed)),
        flags(client),
        client.last_command(),
        if client.is_resp3.load(Ordering::Relaxed) { 3 } else { 2 },
    );
    line
}
