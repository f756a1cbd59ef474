//! The page `docs/tokyo-tyrant-commands.md`, written from the tables.

use std::fmt::Write;

use tokaido_wire::tyrant::{COMMANDS, Effect};

use super::{
    misc::{FUNCTIONS, Misc},
    tables,
};

const HEAD: &str = "\
# Tokyo Tyrant's commands

<!-- Written from the tables of commands by `cargo xtask docs`. Do not edit. -->

The commands of the binary protocol; [tokyo-tyrant.md](tokyo-tyrant.md) describes how to set it up, and what
differs. A reply is the code 0 followed by the outputs, or the code 1 if the command failed. *Right* is the right that a
client needs if there is a password; masking a group (`allread`, `allwrite`, `allmanage`) masks each of its commands.

| command | number | inputs | outputs | what it does | right |
|---|---|---|---|---|---|
";

const MISC: &str = "
## misc

The functions of `misc`, which take a list and return a list. Arguments in brackets are optional. A function is masked
if `misc` is masked, or if the command in the column *like* is.

| function | arguments | results | what it does | like |
|---|---|---|---|---|
";

const TABLES: &str = "
## misc on tables

If the database is a [table](tables.md), these functions are available as well; they replace those above that have the same name.

| function | arguments | results | what it does | like |
|---|---|---|---|---|
";

/// The page, in Markdown.
#[must_use]
pub fn documentation() -> String {
    let mut page = HEAD.to_owned();
    for command in COMMANDS {
        let right = match command.effect {
            Effect::Read => "read",
            Effect::Write => "write",
            Effect::Call => "call",
            Effect::Administer | Effect::Replicate => "administer",
        };
        let (inputs, outputs) = (command.inputs, command.outputs);
        // Writing to a string cannot fail.
        let _ = writeln!(
            page,
            "| `{}` | `C8 {:02X}` | {inputs} | {outputs} | {} | {right} |",
            command.name, command.id, command.summary
        );
    }
    for (head, functions) in [(MISC, FUNCTIONS), (TABLES, tables::FUNCTIONS)] {
        page.push_str(head);
        functions.iter().for_each(|function| add(function, &mut page));
    }
    page
}

fn add(function: &Misc, page: &mut String) {
    let like = COMMANDS.get(function.like as usize).map_or("", |command| command.name);
    let (arguments, results) = (function.arguments, function.results);
    // Writing to a string cannot fail.
    let _ = writeln!(
        page,
        "| `{}` | {arguments} | {results} | {} | `{like}` |",
        function.name, function.summary
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_fresh() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tokyo-tyrant-commands.md");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(path, documentation()).unwrap();
        }
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(page == documentation(), "{path} is not what the tables say: cargo xtask docs");
    }
}
