//! CLIENT: what connections say about themselves, and what is told about them.

use std::{fmt::Write, sync::atomic::Ordering};

use tokaido_store::parse_integer;

use super::{
    call::Call,
    clients::{Client, Names},
    connection::USER,
    execute::Step,
    failure::Failure,
    session::ReplyMode,
};
use crate::{Shared, shared::wall_clock_us};

/// Longest name that a client may give itself or its library, in bytes.
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

pub(super) fn set_name(call: &mut Call<'_, '_>) -> Result<Step, Failure> {
    let name = check_name(call.arg(2))?;
    call.session.client().change_names(|names| names.connection = name);
    call.reply.ok();
    Ok(Step::Done)
}

pub(super) fn get_name(call: &mut Call<'_, '_>) -> Result<Step, Failure> {
    let name = call.session.client().names().connection;
    call.reply.bulk_or_null(Some(name.as_bytes()).filter(|name| !name.is_empty()));
    Ok(Step::Done)
}

pub(super) fn set_info(call: &mut Call<'_, '_>) -> Result<Step, Failure> {
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
    call.session.client().change_names(|names| {
        *(if is_name { &mut names.library } else { &mut names.library_version }) = value;
    });
    call.reply.ok();
    Ok(Step::Done)
}

pub(super) fn id(call: &mut Call<'_, '_>) -> Result<Step, Failure> {
    call.reply.integer(call.session.id() as i64);
    Ok(Step::Done)
}

/// NO-EVICT and NO-TOUCH: there is nothing to turn on or off, and either is true.
pub(super) fn on_or_off(call: &mut Call<'_, '_>) -> Result<Step, Failure> {
    if !call.is_word(2, "ON") && !call.is_word(2, "OFF") {
        return Err(Failure::Syntax);
    }
    call.reply.ok();
    Ok(Step::Done)
}

pub(super) fn tracking(call: &mut Call<'_, '_>) -> Result<Step, Failure> {
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
pub(super) fn reply(call: &mut Call<'_, '_>) -> Result<Step, Failure> {
    if call.is_word(2, "ON") {
        call.session.reply_mode = ReplyMode::On;
        call.reply.ok();
    } else if call.is_word(2, "OFF") {
        call.session.reply_mode = ReplyMode::Off;
    } else if !call.is_word(2, "SKIP") {
        return Err(Failure::Syntax);
    } else if call.session.reply_mode != ReplyMode::Off {
        call.session.reply_mode = ReplyMode::SkipNext;
    }
    Ok(Step::Done)
}

pub(super) fn info(call: &mut Call<'_, '_>) -> Result<Step, Failure> {
    let line = describe(call.session.client(), call.shared);
    call.reply.verbatim("txt", &line);
    Ok(Step::Done)
}

pub(super) fn list(call: &mut Call<'_, '_>) -> Result<Step, Failure> {
    let mut clients = call.shared.clients.list();
    if call.len() == 4 && call.is_word(2, "TYPE") {
        if !["master", "replica", "slave", "pubsub"].iter().any(|kind| call.is_word(3, kind)) {
            if !call.is_word(3, "normal") {
                let kind = String::from_utf8_lossy(call.arg(3));
                return Err(Failure::other(format!("Unknown client type '{kind}'")));
            }
        } else {
            clients.clear();
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
    let lines: String = clients.iter().map(|client| describe(client, call.shared)).collect();
    call.reply.verbatim("txt", &lines);
    Ok(Step::Done)
}

/// One line of CLIENT LIST, in the fields that clients read.
fn describe(client: &Client, shared: &Shared) -> String {
    let now_ms = wall_clock_us() / 1000;
    let seconds_since = |ms: u64| now_ms.saturating_sub(ms) / 1000;
    let index = usize::from(client.database.load(Ordering::Relaxed));
    let databases = shared.store().databases();
    let database = match databases.iter().find(|(id, _)| id.index() == index) {
        Some((id, _)) if *id == shared.main() => "0",
        Some((_, name)) => name,
        None => "?",
    };
    let Names { connection, library, library_version } = client.names();
    let queued = client.queued.load(Ordering::Relaxed);
    let mut line = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        line,
        "id={} addr={} laddr={} fd=-1 name={connection} age={} idle={} flags={} db={database} \
         sub=0 psub=0 ssub=0 multi={queued} cmd={} user={USER} lib-name={library} \
         lib-ver={library_version} redir=-1 resp={}",
        client.id,
        client.peer,
        client.local,
        seconds_since(client.opened_at_ms),
        seconds_since(client.active_at_ms.load(Ordering::Relaxed)),
        if queued < 0 { 'N' } else { 'x' },
        client.last_command(),
        if client.is_resp3.load(Ordering::Relaxed) { 3 } else { 2 },
    );
    line
}
