//! The documents: pages generated from the code, and commands that are run as tests.

mod console;
mod limits;
mod links;
mod lua_api;
mod suite;

use std::fs;

use crate::{
    failure::{Failure, Outcome},
    files,
    process::Command,
};

pub(crate) use console::run_commands;

/// A page, and the function that generates it.
type Page = (&'static str, fn() -> Outcome<String>);

const PAGES: [Page; 5] = [
    ("docs/charts/hello.svg", suite::hello),
    ("docs/charts/set.svg", suite::set),
    ("docs/limits.md", limits::page),
    ("docs/lua-api.md", lua_api::page),
    ("docs/suite.md", suite::page),
];

/// Writes the generated pages.
pub(crate) fn write() -> Outcome {
    for (path, page) in PAGES {
        files::write(path, &page()?)?;
    }
    // The page of Redis commands belongs to the server; a test there compares it with the table.
    let page = ["--quiet", "--package", "tokaido-server", "--lib", "the_page_is_fresh"];
    Command::cargo(["test"]).arguments(&page).variable("UPDATE_GOLDEN", "1").run()
}

/// Fails if a generated page is stale, or a link between pages is broken.
pub(crate) fn check() -> Outcome {
    for (path, page) in PAGES {
        let found = fs::read_to_string(files::root().join(path)).unwrap_or_default();
        if found != page()? {
            return Err(Failure::new(format!("{path} is stale; run `cargo xtask docs`")));
        }
    }
    links::check()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_pages_are_fresh() {
        super::check().unwrap();
    }
}
