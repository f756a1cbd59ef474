//! ACL: users, and what they may do.

use std::{fs::File, io::Read};

use super::{
    admission::{self, Refused, denied_option},
    call::Call,
    categories,
    command::{Command, rows},
    execute::Step,
    failure::Failure,
    introspection,
    pubsub::Names,
    session::Session,
    table,
};
use crate::{
    Shared,
    access::{
        DEFAULT, Denied, LogEntry, Permission, Principal, RuleError, Rules, Unloaded, User,
        has_blank, merge_selectors,
    },
    shared::wall_clock_us,
};
use tokaido_wire::resp::Request;

pub(super) const COMMANDS: &[Command] = rows! {
"acl" -2 Container(None), NO_KEY [] Server "6.0.0"
    ""
    "Commands about users.";
"acl|cat" -2 Server(cat), NO_KEY [NO_SCRIPT] Server "6.0.0"
    "[category]"
    "Lists the categories of commands, or the commands in one category.";
"acl|deluser" -3 Connection(deluser), NO_KEY [ADMIN DANGEROUS NO_SCRIPT] Server "6.0.0"
    "username [username ...]"
    "Deletes users and closes their connections.";
"acl|dryrun" -4 Server(dryrun), NO_KEY [ADMIN DANGEROUS NO_SCRIPT] Server "7.0.0"
    "username command [arg [arg ...]]"
    "Checks whether a user may run a command, without running it.";
"acl|genpass" -2 Server(genpass), NO_KEY [NO_SCRIPT] Server "6.0.0"
    "[bits]"
    "Returns random hexadecimal digits for use as a password.";
"acl|getuser" 3 Server(getuser), NO_KEY [ADMIN DANGEROUS NO_SCRIPT] Server "6.0.0"
    "username"
    "Returns what a user may do.";
"acl|help" 2 Server(introspection::help), NO_KEY [] Server "6.0.0"
    ""
    "Lists the subcommands.";
"acl|list" 2 Server(list), NO_KEY [ADMIN DANGEROUS NO_SCRIPT] Server "6.0.0"
    ""
    "Lists what each user may do, as lines of an ACL file.";
"acl|load" 2 Connection(load), NO_KEY [ADMIN DANGEROUS NO_SCRIPT] Server "6.0.0"
    ""
    "Reloads the ACL file and closes the connections of the users that this changes, except `default`.";
"acl|log" -2 Server(log), NO_KEY [ADMIN DANGEROUS NO_SCRIPT] Server "6.0.0"
    "[count | RESET]"
    "Returns the latest denied requests, or clears the list of them.";
"acl|save" 2 Server(save), NO_KEY [ADMIN DANGEROUS NO_SCRIPT] Server "6.0.0"
    ""
    "Writes the users to the ACL file.";
"acl|setuser" -3 Server(setuser), NO_KEY [ADMIN DANGEROUS NO_SCRIPT] Server "6.0.0"
    "username [rule [rule ...]]"
    "Creates a user, or changes what an existing one may do.";
"acl|users" 2 Server(users), NO_KEY [ADMIN DANGEROUS NO_SCRIPT] Server "6.0.0"
    ""
    "Lists the names of the users.";
"acl|whoami" 2 Connection(whoami), NO_KEY [NO_SCRIPT] Server "6.0.0"
    ""
    "Returns the name of the user that the connection is authenticated as.";
};

fn cat(call: &mut Call<'_>) -> Result<(), Failure> {
    let names: Vec<&str> = match call.len() {
        2 => categories::ALL.to_vec(),
        3 => {
            let Some(category) = categories::ALL.iter().find(|name| call.is_word(2, name)) else {
                let given = String::from_utf8_lossy(call.arg(2));
                return Err(Failure::other(format!("Unknown category '{given}'")));
            };
            let is_of = |c: &&Command| c.categories().any(|name| &name[1..] == *category);
            table::COMMANDS.iter().filter(is_of).map(|command| command.name).collect()
        }
        _ => return Err(wrong_arguments("CAT")),
    };
    call.reply.array(names.len());
    names.iter().for_each(|name| call.reply.bulk(name.as_bytes()));
    Ok(())
}

/// Uses Redis's wording for too many arguments of a subcommand.
fn wrong_arguments(subcommand: &str) -> Failure {
    Failure::other(format!(
        "unknown subcommand or wrong number of arguments for '{subcommand}'. Try ACL HELP."
    ))
}

/// Gives as many random bits as requested, rounded up to whole hexadecimal digits.
fn genpass(call: &mut Call<'_>) -> Result<(), Failure> {
    const BITS_DEFAULT: i64 = 256;
    const BITS_MAX: i64 = 4096;
    let bits = match call.len() {
        2 => BITS_DEFAULT,
        3 => call.integer(2)?,
        _ => return Err(wrong_arguments("GENPASS")),
    };
    if !(1..=BITS_MAX).contains(&bits) {
        return Err(Failure::other(
            "ACL GENPASS argument must be the number of bits for the output password, a positive \
             number up to 4096",
        ));
    }
    let digits = (bits as usize).div_ceil(4);
    let mut bytes = vec![0; digits.div_ceil(2)];
    let read = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
    read.map_err(|error| Failure::other(format!("the system gives no random numbers: {error}")))?;
    let mut text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    text.truncate(digits);
    call.reply.bulk(text.as_bytes());
    Ok(())
}

fn whoami(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    call.reply.bulk(session.principal.name().unwrap_or(DEFAULT).as_bytes());
    Ok(Step::Done)
}

fn users(call: &mut Call<'_>) -> Result<(), Failure> {
    let users = call.shared.users().list();
    call.reply.array(users.len());
    users.iter().for_each(|user| call.reply.bulk(user.name().as_bytes()));
    Ok(())
}

fn list(call: &mut Call<'_>) -> Result<(), Failure> {
    let users = call.shared.users().list();
    call.reply.array(users.len());
    users.iter().for_each(|user| call.reply.bulk(&user.rules().describe(user.name())));
    Ok(())
}

/// The user named by an argument.
fn user_at(call: &Call<'_>, index: usize) -> Option<std::sync::Arc<User>> {
    let name = std::str::from_utf8(call.arg(index)).ok()?;
    call.shared.users().find(name)
}

fn getuser(call: &mut Call<'_>) -> Result<(), Failure> {
    let Some(user) = user_at(call, 2) else {
        call.reply.null();
        return Ok(());
    };
    let rules = user.rules();
    let reply = &mut *call.reply;
    reply.map(6);
    reply.bulk(b"flags");
    let flags: Vec<&str> = rules.flags().collect();
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"passwords");
    let passwords = rules.passwords();
    reply.array(passwords.len());
    passwords.for_each(|digits| reply.bulk(digits.as_bytes()));
    let selectors = rules.selectors();
    let others = selectors.len() - 1;
    for (place, (commands, keys, channels)) in selectors.enumerate() {
        if place > 0 {
            reply.map(3);
        }
        for (field, value) in
            [("commands", commands.as_bytes()), ("keys", &keys), ("channels", &channels)]
        {
            reply.bulk(field.as_bytes());
            reply.bulk(value);
        }
        if place == 0 {
            reply.bulk(b"selectors");
            reply.array(others);
        }
    }
    Ok(())
}

fn setuser(call: &mut Call<'_>) -> Result<(), Failure> {
    if call.arg(2).is_empty() {
        return Err(Failure::other("Usernames can't be empty"));
    }
    let name = std::str::from_utf8(call.arg(2)).ok().filter(|name| !has_blank(name.as_bytes()));
    let name =
        name.ok_or_else(|| Failure::other("Usernames can't contain spaces or null characters"))?;
    let words: Vec<&[u8]> = call.request.arguments_from(3).collect();
    let merged = merge_selectors(&words).map_err(|open| {
        let open = String::from_utf8_lossy(open);
        Failure::other(format!("Unmatched parenthesis in acl selector starting at '{open}'."))
    })?;
    let apply = |rules: &mut Rules| {
        merged
            .iter()
            .try_for_each(|rule| rules.apply(rule).map_err(|error| wrong_rule(rule, error)))
    };
    let (old, new) = call.shared.users().change(name, apply)?;
    if old != new {
        end_subscriptions(call.shared, name, &new);
    }
    call.reply.ok();
    Ok(())
}

fn wrong_rule(rule: &[u8], error: RuleError) -> Failure {
    let rule = String::from_utf8_lossy(rule);
    Failure::other(format!("Error in ACL SETUSER modifier '{rule}': {error}"))
}

/// Closes a user's connections that listen to channels it may no longer listen to.
fn end_subscriptions(shared: &Shared, user: &str, rules: &Rules) {
    shared.channels.disconnect(|name, names, channel| {
        name == user && !rules.allow_channel(channel, names == Names::Patterns)
    });
}

/// Closes the connections of users that have changed or are gone. The caller's own ends after the reply.
fn end_connections(call: &Call<'_>, session: &Session, users: &[String]) -> Step {
    let mut step = Step::Done;
    for client in call.shared.clients.list() {
        if !users.contains(&client.names().user) {
            continue;
        }
        if client.id == session.id() {
            step = Step::Close;
        } else {
            client.kill();
        }
    }
    step
}

fn deluser(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    if call.request.arguments_from(2).any(|name| name == DEFAULT.as_bytes()) {
        return Err(Failure::other("The 'default' user cannot be removed"));
    }
    let names = call.request.arguments_from(2).filter_map(|name| std::str::from_utf8(name).ok());
    let deleted: Vec<String> =
        names.filter(|name| call.shared.users().delete(name)).map(str::to_owned).collect();
    call.reply.integer(deleted.len() as i64);
    Ok(end_connections(call, session, &deleted))
}

fn unloaded(error: Unloaded) -> Failure {
    match error {
        Unloaded::NoFile => Failure::other(
            "This Redis instance is not configured to use an ACL file. Name one as acl_file in the \
             configuration of the server",
        ),
        Unloaded::File(error) => Failure::other(error.to_string()),
    }
}

fn save(call: &mut Call<'_>) -> Result<(), Failure> {
    call.shared.users().save().map_err(|error| {
        if let Unloaded::File(error) = &error {
            tracing::error!(%error, "ACL SAVE has failed");
        }
        unloaded(error)
    })?;
    call.reply.ok();
    Ok(())
}

fn load(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    let mut changed = call.shared.users().load().map_err(unloaded)?;
    // As in Redis, connections that have not authenticated, or only as the default user, stay open, but may
    // listen only to what is still allowed.
    if let Some(place) = changed.iter().position(|name| name == DEFAULT)
        && let Some(user) = call.shared.users().find(DEFAULT)
    {
        changed.remove(place);
        end_subscriptions(call.shared, DEFAULT, &user.rules());
    }
    call.reply.ok();
    Ok(end_connections(call, session, &changed))
}

fn log(call: &mut Call<'_>) -> Result<(), Failure> {
    const COUNT_DEFAULT: usize = 10;
    let count = match call.len() {
        2 => COUNT_DEFAULT,
        3 if call.is_word(2, "RESET") => {
            call.shared.users().reset_log();
            call.reply.ok();
            return Ok(());
        }
        3 => usize::try_from(call.integer(2)?.max(0)).unwrap_or(usize::MAX),
        _ => return Err(wrong_arguments("LOG")),
    };
    let entries = call.shared.users().log(count);
    call.reply.array(entries.len());
    entries.iter().for_each(|entry| tell(call, entry));
    Ok(())
}

fn tell(call: &mut Call<'_>, entry: &LogEntry) {
    let reply = &mut *call.reply;
    let age_ms = (wall_clock_us() / 1000).saturating_sub(entry.created_ms);
    reply.map(10);
    reply.bulk(b"count");
    reply.integer(entry.count as i64);
    for (field, value) in [
        ("reason", entry.reason.name().as_bytes()),
        ("context", entry.place.name().as_bytes()),
        ("object", &entry.object),
        ("username", entry.user.as_bytes()),
    ] {
        reply.bulk(field.as_bytes());
        reply.bulk(value);
    }
    reply.bulk(b"age-seconds");
    reply.double(age_ms as f64 / 1000.0);
    reply.bulk(b"client-info");
    reply.bulk(entry.client.as_bytes());
    for (field, value) in [
        ("entry-id", entry.id),
        ("timestamp-created", entry.created_ms),
        ("timestamp-last-updated", entry.updated_ms),
    ] {
        reply.bulk(field.as_bytes());
        reply.integer(value as i64);
    }
}

fn dryrun(call: &mut Call<'_>) -> Result<(), Failure> {
    let Some(user) = user_at(call, 2) else {
        let name = String::from_utf8_lossy(call.arg(2));
        return Err(Failure::other(format!("User '{name}' not found")));
    };
    let arguments: Vec<&[u8]> = call.request.arguments_from(3).collect();
    let request = Request::from_arguments(&arguments);
    let Some(command) = table::resolve(request).ok().flatten() else {
        let name = String::from_utf8_lossy(request.name());
        return Err(Failure::other(format!("Command '{name}' not found")));
    };
    if !command.accepts(request.len()) {
        return Err(call.wrong_arity(command.name));
    }
    match admission::check(&Principal::User(user), Permission::Command(command, request)) {
        Ok(()) => call.reply.ok(),
        Err(Refused::Denied(Denied::Forbidden(forbidden))) => {
            call.reply.bulk(forbidden.details().as_bytes());
        }
        Err(Refused::Denied(Denied::Unauthenticated)) => return Err(Failure::NotAuthenticated),
        Err(Refused::Option(option)) => call.reply.bulk(denied_option(option).as_bytes()),
    }
    Ok(())
}
