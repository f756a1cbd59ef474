//! Scripts and configurations that servers are started with. They are a part of the program, so that it needs no other files.

use std::{fs, path::Path};

use super::error::SuiteError;

/// Those that ours runs as procedures and handlers stand in this folder.
const PROCEDURES: &str = "procedures/";

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../scripts/", $name)))),*]
    };
}

const FILES: &[(&str, &str)] = files![
    "apache.conf",
    "fib.lua",
    "fib.py",
    "fib.rb",
    "nginx.conf",
    "procedures/bench.lua",
    "procedures/fib_apache.lua",
    "procedures/fib_inside_ngx.lua",
    "procedures/hello_apache.lua",
    "procedures/hello_ngx.lua",
    "procedures/re_ngx.lua",
    "redis-fib.lua",
];

/// The text of a file.
pub(super) fn text(name: &str) -> &'static str {
    FILES.iter().find(|(file, _)| *file == name).map_or("", |(_, text)| *text)
}

/// Writes all of them into `directory`.
pub(super) fn write(directory: &Path) -> Result<(), SuiteError> {
    write_some(directory, "")
}

/// Writes those that ours runs into `directory`.
pub(super) fn write_procedures(directory: &Path) -> Result<(), SuiteError> {
    write_some(directory, PROCEDURES)
}

/// Writes the files whose names begin so, without their folder.
fn write_some(directory: &Path, begin: &str) -> Result<(), SuiteError> {
    let failed = || SuiteError::system("cannot write scripts");
    fs::create_dir_all(directory).map_err(failed())?;
    for (name, text) in FILES.iter().filter(|(name, _)| name.starts_with(begin)) {
        let name = name.strip_prefix(PROCEDURES).unwrap_or(name);
        fs::write(directory.join(name), text).map_err(failed())?;
    }
    Ok(())
}
