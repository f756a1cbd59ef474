//! The documents: pages made from the code, and commands that are tried.

mod console;
mod generated;
mod limits;

use crate::{
    failure::{Failure, Outcome},
    files,
};

pub(crate) use console::run_commands;

/// Writes the generated pages.
pub(crate) fn write() -> Outcome {
    for page in generated::pages()? {
        if page.is_stale()? {
            files::write(page.path, &page.text)?;
            println!("docs: wrote {}", page.path);
        }
    }
    Ok(())
}

/// Says which generated pages are not what the code makes of them now.
pub(crate) fn check() -> Outcome {
    let mut stale = Vec::new();
    for page in generated::pages()? {
        if page.is_stale()? {
            stale.push(page.path);
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("stale: {}; run `cargo xtask docs`", stale.join(", "))))
}
