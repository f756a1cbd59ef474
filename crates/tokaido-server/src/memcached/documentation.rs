//! The page `docs/memcached-commands.md`, written from the table.

use std::fmt::Write;

use tokaido_wire::memcached::{COMMANDS, Command, Effect, OPERATIONS};

const HEAD: &str = "\
# memcached commands

<!-- Written from the table of commands by `cargo xtask docs`. Do not edit. -->

The commands of the memcached protocol that Tokaido supports, with memcached's semantics and error
texts; [memcached.md](memcached.md) describes how to set it up, and what differs. *Right* is the right that a client
needs: `none` means that anyone may run the command; `session` requires only authentication; `read` and `write` apply to the
protocol's database; `administer` applies to the server.
";

/// The page, in Markdown.
#[must_use]
pub fn documentation() -> String {
    let mut page = HEAD.to_owned();
    let is_meta = |command: &&Command| command.name.len() == 2;
    let parts: [(&str, Vec<&Command>); 2] = [
        ("Text", COMMANDS.iter().filter(|command| !is_meta(command)).collect()),
        ("Meta", COMMANDS.iter().filter(is_meta).collect()),
    ];
    for (title, commands) in parts {
        // Writing to a string cannot fail.
        let _ = write!(page, "\n## {title}\n\n| command | what it does | right |\n|---|---|---|\n");
        for command in commands {
            let usage = format!("{} {}", command.name, command.arguments);
            let usage = usage.trim_end().replace('|', "\\|");
            let _ =
                writeln!(page, "| `{usage}` | {} | {} |", command.summary, right(command.effect));
        }
    }
    page.push_str(
        "\n## Binary\n\n| opcode | operation | what it does | right |\n|---|---|---|---|\n",
    );
    for operation in OPERATIONS {
        let (opcode, name, right) = (operation.opcode, operation.name, right(operation.effect));
        let _ = writeln!(page, "| `0x{opcode:02x}` | {name} | {} | {right} |", operation.summary);
    }
    page
}

/// What a client needs for a command with this effect.
fn right(effect: Effect) -> &'static str {
    match effect {
        Effect::Open => "none",
        Effect::Session => "session",
        Effect::Read => "read",
        Effect::Write => "write",
        Effect::Administer => "administer",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_fresh() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/memcached-commands.md");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(path, documentation()).unwrap();
        }
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(page == documentation(), "{path} is not what the table says: cargo xtask docs");
    }
}
