//! COMMAND, and HELP of every container: the contents of the table, for clients.

use tokaido_wire::resp::Request;

use super::{
    call::Call,
    command::{Command, KeyPositions, rows},
    failure::Failure,
    glob,
    reply::Reply,
    syntax::{self, Argument},
    table,
    uses::key_places,
};

pub(super) const COMMANDS: &[Command] = rows! {
"command" -1 Container(Some(all)), NO_KEY [] Server "2.8.13"
    ""
    "Describes every command.";
"command|count" 2 Server(count), NO_KEY [] Server "2.8.13"
    ""
    "Returns the number of commands.";
"command|docs" -2 Server(docs), NO_KEY [] Server "7.0.0"
    "[command-name [command-name ...]]"
    "Returns documentation about commands.";
"command|getkeys" -3 Server(get_keys), NO_KEY [] Server "2.8.13"
    "command [arg [arg ...]]"
    "Returns the keys that a command with these arguments would use.";
"command|getkeysandflags" -4 Server(get_keys_and_flags), NO_KEY [] Server "7.0.0"
    "command [arg [arg ...]]"
    "Returns the keys that a command with these arguments would use, and whether it reads or writes them.";
"command|help" 2 Server(help), NO_KEY [] Server "5.0.0"
    ""
    "Lists the subcommands.";
"command|info" -2 Server(info), NO_KEY [] Server "2.8.13"
    "[command-name [command-name ...]]"
    "Describes commands.";
"command|list" -2 Server(list), NO_KEY [] Server "7.0.0"
    "[FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]"
    "Lists the names of the commands and of their subcommands.";
};

/// The commands without subcommands, which are reported with their container.
fn commands() -> impl Iterator<Item = &'static Command> {
    table::COMMANDS.iter().filter(|command| command.container().is_none())
}

fn subcommands(container: &Command) -> Vec<&'static Command> {
    table::COMMANDS.iter().filter(|command| command.container() == Some(container.name)).collect()
}

/// Finds a command by its name in COMMAND INFO: `get`, or `client|id`.
fn by_name(name: &[u8]) -> Option<&'static Command> {
    table::find(name, None)
}

fn count(call: &mut Call<'_>) -> Result<(), Failure> {
    call.reply.integer(commands().count() as i64);
    Ok(())
}

fn all(call: &mut Call<'_>) -> Result<(), Failure> {
    call.reply.array(commands().count());
    for command in commands() {
        describe(call.reply, command);
    }
    Ok(())
}

fn info(call: &mut Call<'_>) -> Result<(), Failure> {
    if call.len() == 2 {
        return all(call);
    }
    call.reply.array(call.len() - 2);
    for name in call.request.arguments_from(2) {
        match by_name(name) {
            Some(command) => describe(call.reply, command),
            None => call.reply.null_array(),
        }
    }
    Ok(())
}

/// The ten fields of COMMAND INFO.
fn describe(reply: &mut dyn Reply, command: &Command) {
    reply.array(10);
    reply.bulk(command.name.as_bytes());
    reply.integer(i64::from(command.arity));
    let flags: Vec<_> = command.flag_names().collect();
    reply.set(flags.len());
    for flag in flags {
        reply.simple(flag);
    }
    let KeyPositions { first, last, step } = command.keys;
    for position in [first, last, step] {
        reply.integer(i64::from(position));
    }
    let categories: Vec<_> = command.categories().collect();
    reply.set(categories.len());
    for category in categories {
        reply.simple(category);
    }
    // Redis puts hints for clusters here.
    reply.set(0);
    describe_keys(reply, command);
    let subcommands = subcommands(command);
    reply.array(subcommands.len());
    for command in subcommands {
        describe(reply, command);
    }
}

/// The key specification, by which clients of several servers choose the right one.
fn describe_keys(reply: &mut dyn Reply, command: &Command) {
    let KeyPositions { first, last, step } = command.keys;
    let (counted, word) = (command.key_count_place(), command.key_word());
    if first == 0 && counted.is_none() && word.is_none() {
        reply.set(0);
        return;
    }
    reply.set(1);
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(1);
    reply.simple(if command.flag_names().any(|flag| flag == "readonly") { "RO" } else { "RW" });
    if let Some((word, start)) = word {
        reply.bulk(b"begin_search");
        describe_search_of_word(reply, word, start as i64);
        reply.bulk(b"find_keys");
        // Only the first half of what follows are keys; the rest belongs to them.
        return describe_step(reply, "range", &[("lastkey", -1), ("keystep", 1), ("limit", 2)]);
    }
    let (index, kind, fields) = if let Some(place) = counted {
        (place as i8, "keynum", [("keynumidx", 0), ("firstkey", 1), ("keystep", 1)])
    } else {
        // Redis counts the last key relative to the first here.
        let last = if last < 0 { last } else { last - first };
        (first, "range", [("lastkey", last), ("keystep", step), ("limit", 0)])
    };
    reply.bulk(b"begin_search");
    describe_step(reply, "index", &[("index", index)]);
    reply.bulk(b"find_keys");
    describe_step(reply, kind, &fields);
}

fn describe_search_of_word(reply: &mut dyn Reply, word: &str, start: i64) {
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(b"keyword");
    reply.bulk(b"spec");
    reply.map(2);
    reply.bulk(b"keyword");
    reply.bulk(word.as_bytes());
    reply.bulk(b"startfrom");
    reply.integer(start);
}

fn describe_step(reply: &mut dyn Reply, kind: &str, fields: &[(&str, i8)]) {
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(kind.as_bytes());
    reply.bulk(b"spec");
    reply.map(fields.len());
    for (name, value) in fields {
        reply.bulk(name.as_bytes());
        reply.integer(i64::from(*value));
    }
}

fn docs(call: &mut Call<'_>) -> Result<(), Failure> {
    let wanted: Vec<&Command> = if call.len() == 2 {
        commands().collect()
    } else {
        call.request.arguments_from(2).filter_map(by_name).collect()
    };
    call.reply.map(wanted.len());
    for command in wanted {
        document(call.reply, command);
    }
    Ok(())
}

fn document(reply: &mut dyn Reply, command: &Command) {
    let subcommands = subcommands(command);
    let arguments = syntax::parse(command.syntax);
    reply.bulk(command.name.as_bytes());
    reply.map(3 + usize::from(!arguments.is_empty()) + usize::from(!subcommands.is_empty()));
    for (field, value) in
        [("summary", command.summary), ("since", command.since), ("group", command.group.name())]
    {
        reply.bulk(field.as_bytes());
        reply.bulk(value.as_bytes());
    }
    if !arguments.is_empty() {
        reply.bulk(b"arguments");
        document_arguments(reply, &arguments);
    }
    if !subcommands.is_empty() {
        reply.bulk(b"subcommands");
        reply.map(subcommands.len());
        for command in subcommands {
            document(reply, command);
        }
    }
}

fn document_arguments(reply: &mut dyn Reply, arguments: &[Argument]) {
    reply.array(arguments.len());
    for argument in arguments {
        let Argument { name, kind, token, is_optional, is_repeated, parts } = argument;
        let flags: Vec<_> = [(is_optional, "optional"), (is_repeated, "multiple")]
            .into_iter()
            .filter_map(|(is_set, flag)| is_set.then_some(flag))
            .collect();
        let has = [token.is_some(), !flags.is_empty(), !parts.is_empty()];
        reply.map(3 + has.into_iter().filter(|has| *has).count());
        for (field, value) in [("name", name.as_str()), ("type", kind.name())] {
            reply.bulk(field.as_bytes());
            reply.bulk(value.as_bytes());
        }
        if let Some(token) = token {
            reply.bulk(b"token");
            reply.bulk(token.as_bytes());
        }
        reply.bulk(b"display_text");
        reply.bulk(name.as_bytes());
        if !flags.is_empty() {
            reply.bulk(b"flags");
            reply.array(flags.len());
            for flag in flags {
                reply.simple(flag);
            }
        }
        if !parts.is_empty() {
            reply.bulk(b"arguments");
            document_arguments(reply, parts);
        }
    }
}

fn list(call: &mut Call<'_>) -> Result<(), Failure> {
    let wanted: Vec<&Command> = match call.len() {
        2 => table::COMMANDS.iter().collect(),
        5 if call.is_word(2, "FILTERBY") => {
            let argument = call.arg(4).to_ascii_lowercase();
            let category = [b"@", &argument[..]].concat();
            if call.is_word(3, "PATTERN") {
                table::COMMANDS
                    .iter()
                    .filter(|c| glob::matches(&argument, c.name.as_bytes()))
                    .collect()
            } else if call.is_word(3, "ACLCAT") {
                table::COMMANDS
                    .iter()
                    .filter(|c| c.categories().any(|x| x.as_bytes() == category))
                    .collect()
            } else if call.is_word(3, "MODULE") {
                Vec::new()
            } else {
                return Err(Failure::Syntax);
            }
        }
        _ => return Err(Failure::Syntax),
    };
    call.reply.array(wanted.len());
    for command in wanted {
        call.reply.bulk(command.name.as_bytes());
    }
    Ok(())
}

fn get_keys(call: &mut Call<'_>) -> Result<(), Failure> {
    let arguments: Vec<&[u8]> = call.request.arguments_from(2).collect();
    let (_, keys) = keys_of(Request::from_arguments(&arguments))?;
    call.reply.array(keys.len());
    keys.iter().for_each(|key| call.reply.bulk(key));
    Ok(())
}

fn get_keys_and_flags(call: &mut Call<'_>) -> Result<(), Failure> {
    let arguments: Vec<&[u8]> = call.request.arguments_from(2).collect();
    let (command, keys) = keys_of(Request::from_arguments(&arguments))?;
    let is_read = command.flag_names().any(|flag| flag == "readonly");
    let flags = if is_read { ["RO", "access"] } else { ["RW", "update"] };
    call.reply.array(keys.len());
    for key in keys {
        call.reply.array(2);
        call.reply.bulk(key);
        call.reply.set(flags.len());
        flags.iter().for_each(|flag| call.reply.simple(flag));
    }
    Ok(())
}

/// The command that a request names, and its keys.
fn keys_of(request: Request<'_>) -> Result<(&'static Command, Vec<&[u8]>), Failure> {
    let command = table::resolve(request)
        .ok()
        .flatten()
        .ok_or_else(|| Failure::other("Invalid command specified"))?;
    if !command.accepts(request.len()) {
        return Err(Failure::other("Invalid number of arguments specified for command"));
    }
    let places = key_places(command, request)?.into_iter();
    Ok((command, places.map(|place| request.get(place).unwrap_or_default()).collect()))
}

pub(super) fn help(call: &mut Call<'_>) -> Result<(), Failure> {
    let Some(container) = by_name(call.arg(0)) else { return Err(Failure::Syntax) };
    let name = container.name.to_uppercase();
    let mut lines =
        vec![format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")];
    for command in subcommands(container) {
        let usage = command.usage();
        lines.push(usage.strip_prefix(&name).unwrap_or(&usage).trim_start().to_owned());
        lines.push(format!("    {}", command.summary));
    }
    call.reply.array(lines.len());
    for line in &lines {
        call.reply.simple(line);
    }
    Ok(())
}
