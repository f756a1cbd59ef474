//! Commands about the connection itself: PING, ECHO, AUTH, HELLO, SELECT, RESET, QUIT.

use tokaido_store::parse_integer;
use tokaido_wire::resp::{ReplyWriter, Version};

use super::{call::Call, client, execute::Step, failure::Failure};
use crate::shared::REDIS_VERSION;

/// The only user there is.
pub(super) const USER: &str = "default";

pub(super) fn ping(call: &mut Call<'_, '_>) -> Result<Step, Failure> {
    match call.len() {
        1 => call.reply.simple("PONG"),
        2 => call.reply.bulk(call.arg(1)),
        _ => return Err(call.wrong_arity("ping")),
    }
    Ok(Step::Done)
}

pub(super) fn echo(call: &mut Call<'_, '_>) -> Result<Step, Failure> {
    call.reply.bulk(call.arg(1));
    Ok(Step::Done)
}

pub(super) fn quit(call: &mut Call<'_, '_>) -> Result<Step, Failure> {
    call.reply.ok();
    Ok(Step::Close)
}

pub(super) fn reset(call: &mut Call<'_, '_>) -> Result<Step, Failure> {
    call.session.reset();
    call.reply.set_version(call.session.version());
    call.reply.simple("RESET");
    Ok(Step::Done)
}

pub(super) fn select(call: &mut Call<'_, '_>) -> Result<Step, Failure> {
    let database = call.database_at(1)?;
    call.session.select(database);
    call.reply.ok();
    Ok(Step::Done)
}

pub(super) fn auth(call: &mut Call<'_, '_>) -> Result<Step, Failure> {
    match call.len() {
        2 if !call.shared.needs_password() => {
            return Err(Failure::other(
                "AUTH <password> called without any password configured for the default user. \
                 Are you sure your configuration is correct?",
            ));
        }
        2 => authenticate(call, USER.as_bytes(), call.arg(1))?,
        3 => authenticate(call, call.arg(1), call.arg(2))?,
        _ => return Err(Failure::Syntax),
    }
    call.reply.ok();
    Ok(Step::Done)
}

/// Without a configured password, any will do, as Redis has it.
fn authenticate(call: &mut Call<'_, '_>, user: &[u8], password: &[u8]) -> Result<(), Failure> {
    let right = !call.shared.needs_password() || call.shared.is_password(password);
    if right && user == USER.as_bytes() {
        call.session.authenticated = true;
        Ok(())
    } else {
        Err(Failure::WrongPassword)
    }
}

pub(super) fn hello(call: &mut Call<'_, '_>) -> Result<Step, Failure> {
    let version = match call.request.get(1) {
        None => call.session.version(),
        Some(text) => match parse_integer(text) {
            Some(2) => Version::Resp2,
            Some(3) => Version::Resp3,
            Some(_) => return Err(Failure::Protocol),
            None => {
                return Err(Failure::other("Protocol version is not an integer or out of range"));
            }
        },
    };
    let mut name = None;
    let mut next = 2;
    while next < call.len() {
        let left = call.len() - next - 1;
        if call.is_word(next, "AUTH") && left >= 2 {
            authenticate(call, call.arg(next + 1), call.arg(next + 2))?;
            next += 3;
        } else if call.is_word(next, "SETNAME") && left >= 1 {
            name = Some(client::check_name(call.arg(next + 1))?);
            next += 2;
        } else {
            let option = String::from_utf8_lossy(call.arg(next));
            return Err(Failure::other(format!("Syntax error in HELLO option '{option}'")));
        }
    }
    if !call.session.authenticated {
        return Err(Failure::HelloNotAuthenticated);
    }
    if let Some(name) = name {
        call.session.client().change_names(|names| names.connection = name);
    }
    call.session.speak(version);
    call.reply.set_version(version);
    greet(call);
    Ok(Step::Done)
}

/// Clients decide by `server` and `version` what they may send.
fn greet(call: &mut Call<'_, '_>) {
    let id = call.session.id() as i64;
    let proto = match call.session.version() {
        Version::Resp2 => 2,
        Version::Resp3 => 3,
    };
    let reply = &mut call.reply;
    let text = |reply: &mut ReplyWriter<'_>, field: &str, value: &str| {
        reply.bulk(field.as_bytes());
        reply.bulk(value.as_bytes());
    };
    reply.map(7);
    text(reply, "server", "redis");
    text(reply, "version", REDIS_VERSION);
    reply.bulk(b"proto");
    reply.integer(proto);
    reply.bulk(b"id");
    reply.integer(id);
    text(reply, "mode", "standalone");
    text(reply, "role", "master");
    reply.bulk(b"modules");
    reply.array(0);
}
