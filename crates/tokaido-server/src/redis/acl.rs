//! ACL: there is one user, whose password stands in the configuration.

use std::{fs::File, io::Read};

use super::{
    call::Call,
    command::{Command, rows},
    connection::USER,
    failure::Failure,
    introspection, table,
};
use tokaido_wire::resp::Request;

pub(super) const COMMANDS: &[Command] = rows! {
"acl" -2 Container(None), NO_KEY [] Server "6.0.0"
    ""
    "Commands about users.";
"acl|cat" -2 Server(cat), NO_KEY [NO_SCRIPT] Server "6.0.0"
    "[category]"
    "Gives the categories of commands, or the commands of one.";
"acl|dryrun" -4 Server(dryrun), NO_KEY [ADMIN DANGEROUS NO_SCRIPT] Server "7.0.0"
    "username command [arg [arg ...]]"
    "Tells whether a user may run a command.";
"acl|genpass" -2 Server(genpass), NO_KEY [NO_SCRIPT] Server "6.0.0"
    "[bits]"
    "Gives random hexadecimal digits, to be used as a password.";
"acl|getuser" 3 Server(getuser), NO_KEY [ADMIN DANGEROUS NO_SCRIPT] Server "6.0.0"
    "username"
    "Gives what a user may do.";
"acl|help" 2 Server(introspection::help), NO_KEY [] Server "6.0.0"
    ""
    "Lists the subcommands.";
"acl|list" 2 Server(list), NO_KEY [ADMIN DANGEROUS NO_SCRIPT] Server "6.0.0"
    ""
    "Gives what each user may do.";
"acl|users" 2 Server(users), NO_KEY [ADMIN DANGEROUS NO_SCRIPT] Server "6.0.0"
    ""
    "Gives the names of the users.";
"acl|whoami" 2 Server(whoami), NO_KEY [NO_SCRIPT] Server "6.0.0"
    ""
    "Gives the name of the user of the connection.";
};

/// The categories of commands, in Redis' order.
const CATEGORIES: [&str; 21] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];

fn cat(call: &mut Call<'_>) -> Result<(), Failure> {
    let names: Vec<&str> = match call.len() {
        2 => CATEGORIES.to_vec(),
        3 => {
            let Some(category) = CATEGORIES.iter().find(|name| call.is_word(2, name)) else {
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

/// In the words that Redis has for too many arguments of a subcommand.
fn wrong_arguments(subcommand: &str) -> Failure {
    Failure::other(format!(
        "unknown subcommand or wrong number of arguments for '{subcommand}'. Try ACL HELP."
    ))
}

/// As many bits as are asked for, in whole digits.
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

fn whoami(call: &mut Call<'_>) -> Result<(), Failure> {
    call.reply.bulk(USER.as_bytes());
    Ok(())
}

fn users(call: &mut Call<'_>) -> Result<(), Failure> {
    call.reply.array(1);
    call.reply.bulk(USER.as_bytes());
    Ok(())
}

/// What the user has of a password. The password itself, or a hash of it, is shown to nobody.
fn password_flag(call: &Call<'_>) -> Option<&'static str> {
    (!call.shared.policy().has_password()).then_some("nopass")
}

fn list(call: &mut Call<'_>) -> Result<(), Failure> {
    let flag = password_flag(call).map(|flag| format!(" {flag}")).unwrap_or_default();
    call.reply.array(1);
    call.reply.bulk(format!("user {USER} on{flag} ~* &* +@all").as_bytes());
    Ok(())
}

fn getuser(call: &mut Call<'_>) -> Result<(), Failure> {
    if call.arg(2) != USER.as_bytes() {
        call.reply.null();
        return Ok(());
    }
    let flags: Vec<&str> = ["on"].into_iter().chain(password_flag(call)).collect();
    call.reply.map(6);
    call.reply.bulk(b"flags");
    call.reply.set(flags.len());
    flags.iter().for_each(|flag| call.reply.bulk(flag.as_bytes()));
    call.reply.bulk(b"passwords");
    call.reply.array(0);
    for (field, value) in [("commands", "+@all"), ("keys", "~*"), ("channels", "&*")] {
        call.reply.bulk(field.as_bytes());
        call.reply.bulk(value.as_bytes());
    }
    call.reply.bulk(b"selectors");
    call.reply.array(0);
    Ok(())
}

fn dryrun(call: &mut Call<'_>) -> Result<(), Failure> {
    if call.arg(2) != USER.as_bytes() {
        let name = String::from_utf8_lossy(call.arg(2));
        return Err(Failure::other(format!("User '{name}' not found")));
    }
    let arguments: Vec<&[u8]> = call.request.arguments_from(3).collect();
    let request = Request::from_arguments(&arguments);
    let Some(command) = table::resolve(request).ok().flatten() else {
        let name = String::from_utf8_lossy(request.name());
        return Err(Failure::other(format!("Command '{name}' not found")));
    };
    if !command.accepts(request.len()) {
        return Err(call.wrong_arity(command.name));
    }
    call.reply.ok();
    Ok(())
}
