//! `cargo xtask bench`: figures of Tokaido beside those of its peers, taken in turn in one run, and
//! printed as the tables that `docs/performance.md` keeps.

mod collections;
mod commands;
mod dialects;
mod idle;
mod in_process;
mod load;
mod peers;
mod records;
mod report;
mod scenarios;
mod store;
mod timed;

use tokaido_bench::machine::Machine;

use crate::{
    failure::{Failure, Outcome},
    process::Command,
};

/// Runs the kinds named, or all: `store` beside libraries in C, `script` in process, `server` over
/// the wire. What stands behind `--` are beginnings of the names of what `server` measures; without
/// any it measures everything.
pub(crate) fn run(arguments: &[&str]) -> Outcome {
    const KINDS: [&str; 3] = ["store", "script", "server"];
    let mut parts = arguments.splitn(2, |argument| *argument == "--");
    let (kinds, names) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    if let Some(unknown) = kinds.iter().find(|kind| !KINDS.contains(kind)) {
        return Err(Failure::new(format!(
            "no benchmarks {unknown}; there are {}",
            KINDS.join(" ")
        )));
    }
    let mut report = format!("Machine: {}.  \n{}\n", Machine::look(), versions());
    for kind in KINDS.iter().filter(|kind| kinds.is_empty() || kinds.contains(kind)) {
        let table = match *kind {
            "store" => store::run()?,
            "script" => in_process::run("tokaido-script")?,
            _ => scenarios::run(names)?,
        };
        report.push_str(&format!("\n### {kind}\n\n{table}"));
    }
    println!("\n{report}");
    Ok(())
}

/// What was measured, and what measured it.
fn versions() -> String {
    let asked = [
        ("commit", Command::new("git", ["describe", "--always", "--dirty"])),
        ("compiler", Command::new("rustc", ["--version"])),
        ("redis-server", Command::new("redis-server", ["--version"])),
        ("redis-benchmark", Command::new("redis-benchmark", ["--version"])),
        ("memcached", Command::new("memcached", ["--version"])),
        ("nginx", Command::new("nginx", ["-v"])),
        ("apache2", Command::new(peers::APACHE, ["-v"])),
        ("wrk", Command::new("wrk", ["-v"])),
    ];
    let lines = asked.map(|(name, command)| {
        let version = command.first_line();
        format!("{name}: {}", version.as_deref().unwrap_or("not installed").trim())
    });
    lines.join("  \n")
}
