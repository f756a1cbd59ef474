//! Tests of shared state: in many interleavings under shuttle, and under Miri, which detects
//! undefined behaviour and simulates weak memory.

use crate::{
    failure::{Failure, Outcome},
    process::{self, Command},
    setup::Ready,
};

const STORE: [&str; 3] = ["test", "-p", "tokaido-store"];

/// Miri uses the aliasing rules of tree borrows. A memtable node is reached through a reference to
/// its head, and under stacked borrows that would not be valid past the head's end.
const RULES: &str = "-Zmiri-disable-isolation -Zmiri-tree-borrows -Zmiri-strict-provenance";

/// The parts of the store, besides the memtable, that need neither LMDB nor a mapped file, and
/// whose tests are short enough for Miri, which is some hundred times slower.
const PARTS: [&str; 5] = [
    "log::operation::tests::garbage",
    "log::frame::",
    "base::format::",
    "base::long_key::tests::a_damaged",
    "record::tests",
];

/// The store's locks and atomics are replaced by shuttle's, which works only for these tests.
pub(crate) fn shuttle() -> Outcome<Ready> {
    let command = || Command::cargo(STORE).arguments(&["--locked", "--features", "shuttle"]);
    run_all_of(&command().arguments(&["--lib", "memtable::"]), &["memtable::"])?;
    run_all_of(&command().arguments(&["--test", "cache"]), &["interleavings::"])?;
    Ok(Ready::Yes)
}

pub(crate) fn miri() -> Outcome<Ready> {
    if let missing @ Ready::No(_) = nightly() {
        return Ok(missing);
    }
    // Each seed gives another interleaving of the threads.
    let seeds = format!("{RULES} -Zmiri-many-seeds=0..4");
    under_miri(&seeds, &["memtable::"])?;
    under_miri(RULES, &PARTS)?;
    Ok(Ready::Yes)
}

fn under_miri(flags: &str, tests: &[&str]) -> Outcome {
    let command = Command::new("rustup", ["run", "nightly", "cargo", "miri"])
        .arguments(&STORE)
        .arguments(&["--locked", "--lib", "--target-dir", "target/miri", "--"])
        .arguments(tests)
        .variable("MIRIFLAGS", flags)
        .variable("PROPTEST_CASES", "2");
    run_all_of(&command, tests)
}

/// Runs tests, and fails if no test matches one of these names: otherwise a test that was renamed,
/// or is no longer compiled, would go unnoticed.
fn run_all_of(tests: &Command, names: &[&str]) -> Outcome {
    let said = tests.run_and_read()?;
    let has_run = |name: &str| said.lines().any(|line| is_of(line, name));
    match names.iter().find(|name| !has_run(name)) {
        Some(name) => Err(Failure::new(format!("`{tests}` ran no test of the name {name}"))),
        None => Ok(()),
    }
}

/// Whether a line of the test harness is about a test with this name.
fn is_of(line: &str, name: &str) -> bool {
    line.strip_prefix("test ").is_some_and(|rest| rest.contains(name))
}

/// Ensures that there is a nightly toolchain with Miri.
fn nightly() -> Ready {
    let miri = Command::new("rustup", ["run", "nightly", "cargo", "miri", "--version"]);
    if !process::is_installed("rustup") {
        return Ready::No("needs rustup, for a nightly toolchain with Miri".to_owned());
    }
    if miri.output().is_ok() {
        return Ready::Yes;
    }
    let install = ["toolchain", "install", "nightly", "--profile", "minimal"];
    let components = ["--component", "miri", "--component", "rust-src"];
    let installed = Command::new("rustup", install).arguments(&components).run();
    match installed.and_then(|()| miri.output()) {
        Ok(_) => Ready::Yes,
        Err(failure) => Ready::No(format!("no nightly toolchain with Miri: {failure}")),
    }
}
