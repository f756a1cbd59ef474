//! Completion of names, and hints for a command's arguments after the cursor.

use std::{borrow::Cow, collections::BTreeSet};

use rustyline::{
    Context, Helper, completion::Completer, highlight::Highlighter, hint::Hinter,
    validate::Validator,
};
use tokaido_server::redis::COMMANDS;

/// Names that the shell itself and its Lua have in addition to commands and procedures.
const OWN_NAMES: [&str; 5] = ["help", "exit", "tokaido.transact(", "tokaido.snapshot(", "print("];

/// The names that a line may begin with.
pub(crate) struct Names {
    names: BTreeSet<String>,
}

impl Names {
    pub(crate) fn new(names: BTreeSet<String>) -> Self {
        Self { names }
    }

    /// Names that begin with `start`, in capitals if `start` is.
    fn matches(&self, start: &str) -> Vec<String> {
        let lower = start.to_lowercase();
        let capitals = start.bytes().next().is_some_and(|b| b.is_ascii_uppercase());
        let own = OWN_NAMES.iter().map(|name| (*name).to_owned());
        let known = self.names.iter().map(|name| match capitals {
            true if !name.contains('.') => name.to_uppercase(),
            _ => name.clone(),
        });
        own.chain(known).filter(|name| name.to_lowercase().starts_with(&lower)).collect()
    }
}

/// The arguments that have not been typed yet, if the line is only a command.
fn usage_hint(line: &str) -> Option<String> {
    let name = line.strip_suffix(' ')?;
    let command = COMMANDS.iter().find(|command| command.name.eq_ignore_ascii_case(name))?;
    (!command.syntax.is_empty()).then(|| command.syntax.to_owned())
}

impl Completer for Names {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let start = &line[..position];
        if start.contains(char::is_whitespace) {
            return Ok((position, Vec::new()));
        }
        Ok((0, self.matches(start)))
    }
}

impl Hinter for Names {
    type Hint = String;

    fn hint(&self, line: &str, position: usize, _: &Context<'_>) -> Option<String> {
        if position < line.len() { None } else { usage_hint(line) }
    }
}

impl Highlighter for Names {
    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(format!("\x1b[2m{hint}\x1b[0m"))
    }
}

impl Validator for Names {}

impl Helper for Names {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_completed_in_the_case_they_were_begun_in() {
        let names = Names::new(["get", "getdel", "hits.count"].map(str::to_owned).into());
        assert_eq!(names.matches("ge"), ["get", "getdel"]);
        assert_eq!(names.matches("GE"), ["GET", "GETDEL"]);
        assert_eq!(names.matches("h"), ["help", "hits.count"]);
        assert_eq!(names.matches("nothing"), [""; 0]);
    }

    #[test]
    fn a_command_shows_its_arguments() {
        assert!(usage_hint("GET ").is_some_and(|hint| hint.contains("key")));
        assert_eq!(usage_hint("GET k"), None);
        assert_eq!(usage_hint("print "), None);
    }
}
