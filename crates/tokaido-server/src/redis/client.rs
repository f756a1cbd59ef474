//! CLIENT: what connections say about themselves, and what is known of them.

use std::{
    fmt::Write,
    sync::{Arc, atomic::Ordering},
};

use super::{
    blocking::Unblocked,
    call::Call,
    clients::{Client, Mark, Names},
    command::{Command, rows},
    execute::Step,
    failure::Failure,
    introspection,
    number::parse_integer,
    session::{ReplyMode, Session},
};
use crate::{
    access::User,
    shared::{MAIN, wall_clock_us},
};

pub(super) const COMMANDS: &[Command] = rows! {
"client" -2 Container(None), NO_KEY [] Connection "2.4.0"
    ""
    "Commands about connections.";
"client|getname" 2 Connection(get_name), NO_KEY [] Connection "2.6.9"
    ""
    "Returns the name of the connection.";
"client|help" 2 Server(introspection::help), NO_KEY [] Connection "5.0.0"
    ""
    "Lists the subcommands.";
"client|id" 2 Connection(id), NO_KEY [] Connection "5.0.0"
    ""
    "Returns the id of the connection.";
"client|info" 2 Connection(info), NO_KEY [] Connection "6.2.0"
    ""
    "Returns information about this connection.";
"client|kill" -3 Connection(kill), NO_KEY [ADMIN DANGEROUS NO_SCRIPT] Connection "2.4.0"
    "<ip:port | <[ID client-id] | [TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] | [USER username] | [ADDR ip:port] | [LADDR ip:port] | [SKIPME <YES | NO>]>>"
    "Closes connections; returns how many, or OK if only an address is given.";
"client|list" -2 Connection(list), NO_KEY [ADMIN DANGEROUS] Connection "2.4.0"
    "[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]]"
    "Returns information about the open connections.";
"client|no-evict" 3 Connection(no_evict), NO_KEY [ADMIN DANGEROUS] Connection "7.0.0"
    "<ON | OFF>"
    "Sets a flag that CLIENT LIST shows, and has no other effect.";
"client|no-touch" 3 Connection(no_touch), NO_KEY [] Connection "7.2.0"
    "<ON | OFF>"
    "Sets a flag that CLIENT LIST shows, and has no other effect.";
"client|reply" 3 Connection(reply), NO_KEY [NO_MULTI] Connection "3.2.0"
    "<ON | OFF | SKIP>"
    "Turns replies on or off, or skips the next one.";
"client|setinfo" 4 Connection(set_info), NO_KEY [] Connection "7.2.0"
    "<LIB-NAME libname | LIB-VER libver>"
    "Sets the name or the version of the client library.";
"client|setname" 3 Connection(set_name), NO_KEY [] Connection "2.6.9"
    "connection-name"
    "Sets the name of the connection.";
"client|unblock" -3 Server(unblock), NO_KEY [ADMIN DANGEROUS] Connection "5.0.0"
    "client-id [TIMEOUT | ERROR]"
    "Unblocks a waiting client as if its timeout had expired, or with an error.";
};

/// Maximum length of the name of a client or of its library, in bytes.
const NAME_LEN_MAX: usize = 1024;

fn is_plain(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_graphic)
}

/// A name that may appear in CLIENT LIST, where spaces separate the fields.
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

fn no_evict(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    set_mark(call, session, Mark::NoEvict)
}

fn no_touch(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    set_mark(call, session, Mark::NoTouch)
}

fn set_mark(call: &mut Call<'_>, session: &mut Session, mark: Mark) -> Result<Step, Failure> {
    let is_on = call.is_word(2, "ON");
    if !is_on && !call.is_word(2, "OFF") {
        return Err(Failure::Syntax);
    }
    session.client().mark(mark, is_on);
    call.reply.ok();
    Ok(Step::Done)
}

/// OFF and SKIP get no reply, which is what they ask for.
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
        let kind = Kind::read(call, 3)?;
        clients.retain(|client| Kind::of(client) == kind);
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

/// Which connections to close: those that match all of the conditions.
#[derive(Default)]
struct Filter<'c> {
    id: Option<u64>,
    kind: Option<Kind>,
    peer: Option<&'c [u8]>,
    local: Option<&'c [u8]>,
    user: Option<Arc<User>>,
    takes_own: bool,
}

/// The client types of CLIENT KILL and CLIENT LIST.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Normal,
    PubSub,
    /// Replication clients, of which there are none.
    Replication,
}

impl Kind {
    fn read(call: &Call<'_>, index: usize) -> Result<Self, Failure> {
        const KINDS: [(&str, Kind); 5] = [
            ("normal", Kind::Normal),
            ("pubsub", Kind::PubSub),
            ("master", Kind::Replication),
            ("replica", Kind::Replication),
            ("slave", Kind::Replication),
        ];
        let found = KINDS.iter().find(|(name, _)| call.is_word(index, name));
        found.map(|(_, kind)| *kind).ok_or_else(|| {
            let kind = String::from_utf8_lossy(call.arg(index));
            Failure::other(format!("Unknown client type '{kind}'"))
        })
    }

    fn of(client: &Client) -> Self {
        if client.is_subscribed() { Self::PubSub } else { Self::Normal }
    }
}

impl<'c> Filter<'c> {
    fn read(call: &Call<'c>) -> Result<Self, Failure> {
        let mut filter = Self::default();
        for at in (2..call.len()).step_by(2) {
            let value = call.request.get(at + 1).ok_or(Failure::Syntax)?;
            if call.is_word(at, "ID") {
                let id = call.number(at + 1, 1, "client-id should be greater than 0")?;
                filter.id = Some(id);
            } else if call.is_word(at, "TYPE") {
                filter.kind = Some(Kind::read(call, at + 1)?);
            } else if call.is_word(at, "USER") {
                let known = std::str::from_utf8(value).ok();
                filter.user = known.and_then(|name| call.shared.users().find(name));
                if filter.user.is_none() {
                    let name = String::from_utf8_lossy(value);
                    return Err(Failure::other(format!("No such user '{name}'")));
                }
            } else if call.is_word(at, "ADDR") {
                filter.peer = Some(value);
            } else if call.is_word(at, "LADDR") {
                filter.local = Some(value);
            } else if call.is_word(at, "SKIPME") && call.is_word(at + 1, "NO") {
                filter.takes_own = true;
            } else if call.is_word(at, "SKIPME") && call.is_word(at + 1, "YES") {
                filter.takes_own = false;
            } else {
                return Err(Failure::Syntax);
            }
        }
        Ok(filter)
    }

    fn admits(&self, client: &Client) -> bool {
        self.id.is_none_or(|id| id == client.id)
            && self.kind.is_none_or(|kind| kind == Kind::of(client))
            && self.peer.is_none_or(|peer| peer == client.peer.as_bytes())
            && self.user.as_ref().is_none_or(|user| user.name() == client.names().user)
            && self.local.is_none_or(|local| local == client.local.as_bytes())
    }
}

/// The caller's own connection is closed after the reply is sent.
fn kill(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    let is_old_form = call.len() == 3;
    let filter = match is_old_form {
        true => Filter { peer: Some(call.arg(2)), takes_own: true, ..Filter::default() },
        false => Filter::read(call)?,
    };
    let (mut killed, mut step) = (0, Step::Done);
    for client in call.shared.clients.list() {
        let is_own = client.id == session.id();
        if !filter.admits(&client) || is_own && !filter.takes_own {
            continue;
        }
        if is_own {
            step = Step::Close;
            killed += 1;
        } else {
            killed += i64::from(client.kill());
        }
    }
    if !is_old_form {
        call.reply.integer(killed);
    } else if killed == 0 {
        return Err(Failure::other("No such client"));
    } else {
        call.reply.ok();
    }
    Ok(step)
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

/// A client's state, one letter for each flag.
fn flags(client: &Client) -> String {
    let is_in_multi = client.queued.load(Ordering::Relaxed) >= 0;
    let is_blocked = client.is_blocked.load(Ordering::Relaxed);
    let is_monitor = client.is_monitor.load(Ordering::Relaxed);
    let flags = [
        (is_monitor, 'O'),
        (client.is_subscribed(), 'P'),
        (is_in_multi, 'x'),
        (is_blocked, 'b'),
        (client.has_mark(Mark::Tracking), 't'),
        (client.has_mark(Mark::BrokenRedirect), 'R'),
        (client.has_mark(Mark::Broadcast), 'B'),
        (client.has_mark(Mark::NoEvict), 'e'),
        (client.has_mark(Mark::NoTouch), 'T'),
    ];
    let flags: String =
        flags.into_iter().filter_map(|(is_so, flag)| is_so.then_some(flag)).collect();
    if flags.is_empty() { "N".to_owned() } else { flags }
}

/// One line of CLIENT LIST, with the fields that clients read.
pub(super) fn describe(client: &Client) -> String {
    let now_ms = wall_clock_us() / 1000;
    let seconds_since = |ms: u64| now_ms.saturating_sub(ms) / 1000;
    let Names { database, connection, user, library, library_version } = client.names();
    let database = if *database == *MAIN { "0" } else { &*database };
    let queued = client.queued.load(Ordering::Relaxed);
    let [sub, psub, ssub] = client.subscriptions();
    let mut line = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        line,
        "id={} addr={} laddr={} fd=-1 name={connection} age={} idle={} flags={} db={database} \
         sub={sub} psub={psub} ssub={ssub} multi={queued} qbuf=0 qbuf-free=0 argv-mem=0 \
         multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r cmd={} user={user} \
         lib-name={library} lib-ver={library_version} redir={} resp={}",
        client.id,
        client.peer,
        client.local,
        seconds_since(client.opened_at_ms),
        seconds_since(client.active_at_ms.load(Ordering::Relaxed)),
        flags(client),
        client.last_command(),
        client.redirect.load(Ordering::Relaxed),
        if client.is_resp3.load(Ordering::Relaxed) { 3 } else { 2 },
    );
    line
}
