//! The table of commands. The decoders look commands up in it; the server's access rights and
//! the documentation page are derived from it, too.

/// What a command of the text protocol asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are named as their commands, which the table describes")]
pub enum Verb {
    Get,
    Gets,
    Gat,
    Gats,
    Store(Mode),
    Delete,
    Incr,
    Decr,
    Touch,
    FlushAll,
    Stats,
    Version,
    Verbosity,
    Quit,
    MetaGet,
    MetaSet,
    MetaDelete,
    MetaArithmetic,
    MetaNoop,
    MetaDebug,
}

/// When a value is stored, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Always.
    Set,
    /// If there is no value yet.
    Add,
    /// If there is one already.
    Replace,
    /// Appended to the existing value.
    Append,
    /// Prepended to the existing value.
    Prepend,
    /// If the existing value has a certain cas.
    Cas,
}

/// What a command does, which decides who may use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It is open to clients that have not authenticated, too.
    Open,
    /// It concerns only the connection.
    Session,
    /// It reads data.
    Read,
    /// It writes data.
    Write,
    /// It inspects the server.
    Administer,
}

/// A command of the text protocol: a row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// Its name, in lower case.
    pub name: &'static str,
    /// What it asks for.
    pub verb: Verb,
    /// What it does.
    pub effect: Effect,
    /// What follows the name.
    pub arguments: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
}

/// Makes the rows; to be called with braces, so that rustfmt leaves the columns as they are.
macro_rules! rows {
    ($($name:literal $verb:expr, $effect:ident $arguments:literal $summary:literal;)*) => {
        &[$(Command {
            name: $name,
            verb: $verb,
            effect: Effect::$effect,
            arguments: $arguments,
            summary: $summary,
        }),*]
    };
}

/// Every command of the text protocol, the commonest first.
pub static COMMANDS: &[Command] = rows! {
"get" Verb::Get, Read
    "<key>*" "Returns the values of keys.";
"set" Verb::Store(Mode::Set), Write
    "<key> <flags> <exptime> <bytes> [noreply]" "Stores a value.";
"mg" Verb::MetaGet, Write
    "<key> <flags>*" "Returns a record, or the requested parts of it; can also change its expiry, or create it if it is missing.";
"ms" Verb::MetaSet, Write
    "<key> <bytes> <flags>*" "Stores a value in one of the modes of set, add, replace, append, prepend and cas.";
"md" Verb::MetaDelete, Write
    "<key> <flags>*" "Deletes a record, or marks it as stale.";
"ma" Verb::MetaArithmetic, Write
    "<key> <flags>*" "Increments or decrements a counter; can create it if it is missing.";
"mn" Verb::MetaNoop, Session
    "" "Replies `MN`, after all replies to earlier requests.";
"me" Verb::MetaDebug, Read
    "<key> [b]" "Returns metadata of a record.";
"gets" Verb::Gets, Read
    "<key>*" "Returns the values of keys, each with its cas.";
"gat" Verb::Gat, Write
    "<exptime> <key>*" "Returns the values of keys and sets a new expiry for them.";
"gats" Verb::Gats, Write
    "<exptime> <key>*" "Like gat, but each value comes with its cas.";
"add" Verb::Store(Mode::Add), Write
    "<key> <flags> <exptime> <bytes> [noreply]" "Stores a value if the key does not exist.";
"replace" Verb::Store(Mode::Replace), Write
    "<key> <flags> <exptime> <bytes> [noreply]" "Stores a value if the key exists.";
"append" Verb::Store(Mode::Append), Write
    "<key> <flags> <exptime> <bytes> [noreply]" "Appends to a value; flags and expiry do not change.";
"prepend" Verb::Store(Mode::Prepend), Write
    "<key> <flags> <exptime> <bytes> [noreply]" "Prepends to a value; flags and expiry do not change.";
"cas" Verb::Store(Mode::Cas), Write
    "<key> <flags> <exptime> <bytes> <cas> [noreply]" "Stores a value if the current one has the given cas.";
"delete" Verb::Delete, Write
    "<key> [0] [noreply]" "Deletes a record.";
"incr" Verb::Incr, Write
    "<key> <number> [noreply]" "Increments a counter, which wraps around at 2^64.";
"decr" Verb::Decr, Write
    "<key> <number> [noreply]" "Decrements a counter, which stops at 0.";
"touch" Verb::Touch, Write
    "<key> <exptime> [noreply]" "Sets a new expiry for a record.";
"flush_all" Verb::FlushAll, Write
    "[delay] [noreply]" "Deletes all records, immediately or after the given number of seconds.";
"stats" Verb::Stats, Administer
    "[items | slabs | sizes | settings | conns | reset]" "Returns statistics of the server, or resets them.";
"version" Verb::Version, Session
    "" "Returns the version of the server.";
"verbosity" Verb::Verbosity, Administer
    "<level> [noreply]" "Sets the level that `stats settings` reports; what is logged does not change.";
"quit" Verb::Quit, Session
    "" "Closes the connection.";
};

/// Looks up a command by name.
#[must_use]
pub fn find(name: &[u8]) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name.as_bytes() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_by_its_name_alone() {
        for command in COMMANDS {
            assert_eq!(find(command.name.as_bytes()).map(|c| c.verb), Some(command.verb));
            assert!(find(command.name.to_uppercase().as_bytes()).is_none());
            assert!(command.summary.ends_with('.'), "{}", command.name);
        }
    }
}
