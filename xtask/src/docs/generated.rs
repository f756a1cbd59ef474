//! The pages that are made from the code.

use std::fs;

use crate::{failure::Outcome, files, process::Command};

use super::limits;

/// A page as the code would have it.
pub(super) struct Page {
    pub(super) path: &'static str,
    pub(super) text: String,
}

impl Page {
    /// Whether the file says something else, or is not there.
    pub(super) fn is_stale(&self) -> Outcome<bool> {
        let path = files::root().join(self.path);
        Ok(fs::read_to_string(path).ok().as_deref() != Some(&self.text))
    }
}

pub(super) fn pages() -> Outcome<Vec<Page>> {
    Ok(vec![
        Page { path: "docs/limits.md", text: limits::page()? },
        Page { path: "docs/redis-commands.md", text: redis_commands()? },
    ])
}

/// The server's own table of commands, printed by an example of its crate: so this program needs
/// not be linked with the whole server.
fn redis_commands() -> Outcome<String> {
    let example = ["run", "--quiet", "--package", "tokaido-server", "--example", "redis_commands"];
    Command::cargo(example).output()
}
