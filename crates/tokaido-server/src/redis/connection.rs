//! Commands about the connection itself: PING, ECHO, AUTH, HELLO, SELECT, RESET, QUIT.

use tokaido_wire::resp::Version;

use super::{
    call::Call,
    client,
    command::{Command, rows},
    execute::Step,
    failure::Failure,
    number::parse_integer,
    reply::Reply,
    session::Session,
};
use crate::{
    access::{self, DEFAULT, Permission},
    shared::REDIS_VERSION,
};

pub(super) const COMMANDS: &[Command] = rows! {
"auth" -2 Connection(auth), NO_KEY [FAST NO_AUTH] Connection "1.0.0"
    "[username] password"
    "Authenticates the connection.";
"echo" 2 Server(echo), NO_KEY [FAST] Connection "1.0.0"
    "message"
    "Returns the message.";
"hello" -1 Connection(hello), NO_KEY [FAST NO_AUTH NO_MULTI] Connection "6.0.0"
    "[protover [AUTH username password] [SETNAME clientname]]"
    "Selects the version of the protocol and returns information about the server.";
"ping" -1 Server(ping), NO_KEY [FAST] Connection "1.0.0"
    "[message]"
    "Returns PONG, or the message if there is one.";
"quit" -1 Connection(quit), NO_KEY [FAST NO_AUTH UNQUEUED WHILE_SUBSCRIBED] Connection "1.0.0"
    ""
    "Closes the connection.";
"reset" 1 Connection(reset), NO_KEY [FAST NO_AUTH UNQUEUED WHILE_SUBSCRIBED] Connection "6.2.0"
    ""
    "Resets the connection to the state in which it was opened.";
"select" 2 Connection(select), NO_KEY [FAST] Connection "1.0.0"
    "index"
    "Selects a database by its number or its name.";
};

fn ping(call: &mut Call<'_>) -> Result<(), Failure> {
    match call.len() {
        1 => call.reply.simple("PONG"),
        2 => call.reply.bulk(call.arg(1)),
        _ => return Err(call.wrong_arity("ping")),
    }
    Ok(())
}

fn echo(call: &mut Call<'_>) -> Result<(), Failure> {
    call.reply.bulk(call.arg(1));
    Ok(())
}

fn quit(call: &mut Call<'_>, _: &mut Session) -> Result<Step, Failure> {
    call.reply.ok();
    Ok(Step::Close)
}

fn reset(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    session.reset();
    call.reply.set_version(session.version());
    call.reply.simple("RESET");
    Ok(Step::Done)
}

fn select(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    let database = call.database_at(1)?;
    session.select(database);
    call.reply.ok();
    Ok(Step::Done)
}

fn auth(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    match call.len() {
        2 if call.shared.users().default_needs_no_password() => {
            return Err(Failure::other(
                "AUTH <password> called without any password configured for the default user. \
                 Are you sure your configuration is correct?",
            ));
        }
        2 => authenticate(call, session, DEFAULT.as_bytes(), call.arg(1))?,
        3 => authenticate(call, session, call.arg(1), call.arg(2))?,
        _ => return Err(Failure::Syntax),
    }
    call.reply.ok();
    Ok(Step::Done)
}

/// As in Redis, any password is accepted for a user that needs none.
fn authenticate(
    call: &Call<'_>,
    session: &mut Session,
    user: &[u8],
    password: &[u8],
) -> Result<(), Failure> {
    let users = call.shared.users();
    let Some(principal) = users.authenticate(user, password) else {
        let client = client::describe(session.client()).trim_end().to_owned();
        users.note_wrong_password(user, call.arg(0), client);
        return Err(Failure::WrongPassword);
    };
    session.become_user(principal);
    Ok(())
}

fn hello(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    let version = match call.request.get(1) {
        None => session.version(),
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
            authenticate(call, session, call.arg(next + 1), call.arg(next + 2))?;
            next += 3;
        } else if call.is_word(next, "SETNAME") && left >= 1 {
            name = Some(client::check_name(call.arg(next + 1))?);
            next += 2;
        } else {
            let option = String::from_utf8_lossy(call.arg(next));
            return Err(Failure::other(format!("Syntax error in HELLO option '{option}'")));
        }
    }
    access::allow(&session.principal, Permission::Session)
        .map_err(|_| Failure::HelloNotAuthenticated)?;
    if let Some(name) = name {
        session.client().change_names(|names| names.connection = name);
    }
    session.speak(version);
    call.reply.set_version(version);
    greet(call.reply, session);
    Ok(Step::Done)
}

/// Clients decide by `server` and `version` which commands they may send.
fn greet(reply: &mut dyn Reply, session: &Session) {
    let id = session.id() as i64;
    let proto = match session.version() {
        Version::Resp2 => 2,
        Version::Resp3 => 3,
    };
    let text = |reply: &mut dyn Reply, field: &str, value: &str| {
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
