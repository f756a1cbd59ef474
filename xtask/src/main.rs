//! `cargo xtask`: all maintenance tasks of this repository, behind one entry point.

mod dependencies;
mod docs;
mod excerpt;
mod failure;
mod files;
mod interleavings;
mod markdown;
mod process;
mod server;
mod setup;
mod test;
mod tidy;

use std::process::ExitCode;

use failure::{Failure, Outcome};

const HELP: &str = "\
cargo xtask test [SUITE…]    all tests, or those of: rust shuttle miri tidy dependencies docs python
                             node go (sets up by itself what they need: Debian packages, a Python
                             environment in .venv, node_modules, Go modules, a nightly toolchain)
cargo xtask ci               what continuous integration runs: .ci/run
cargo xtask docs [--check]   writes the generated pages, or says which are stale;
                             runs the commands of README.md and docs/
cargo xtask tidy             lengths of files and functions, words that must not stay, file heads
cargo xtask dependencies     licences, duplicates, and a line in docs/dependencies.md for each
cargo xtask help             this text";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[&str]) -> Outcome {
    match arguments {
        ["test", suites @ ..] => test::run(suites),
        ["ci"] => process::Command::new("bash", [".ci/run"]).run(),
        ["docs"] => docs::write().and_then(|()| docs::run_commands()),
        ["docs", "--check"] => docs::check().and_then(|()| docs::run_commands()),
        ["tidy"] => tidy::check(),
        ["dependencies"] => dependencies::check(),
        ["help"] => {
            println!("{HELP}");
            Ok(())
        }
        _ => Err(Failure::new(format!(
            "do not know what to do with {arguments:?}; this is known:\n{HELP}"
        ))),
    }
}
