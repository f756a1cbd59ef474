//! The documents: pages made from the code, and commands that are tried.

mod console;
mod limits;

use std::fs;

use crate::{
    failure::{Failure, Outcome},
    files,
    process::Command,
};

pub(crate) use console::run_commands;

const LIMITS: &str = "docs/limits.md";

/// Writes the generated pages.
pub(crate) fn write() -> Outcome {
    files::write(LIMITS, &limits::page()?)?;
    // The page of Redis commands is the server's own; a test there holds it to the table.
    let page = ["--quiet", "--package", "tokaido-server", "--lib", "the_page_is_fresh"];
    Command::cargo(["test"]).arguments(&page).variable("UPDATE_GOLDEN", "1").run()
}

/// Says whether a page that is made here is not what the code makes of it now.
pub(crate) fn check() -> Outcome {
    let found = fs::read_to_string(files::root().join(LIMITS)).unwrap_or_default();
    if found == limits::page()? {
        return Ok(());
    }
    Err(Failure::new(format!("{LIMITS} is stale; run `cargo xtask docs`")))
}
