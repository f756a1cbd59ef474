//! The store beside its peers in C and C++: a program of its own, `crates/tokaido-bench/benches/store`.

use std::process::Stdio;

use crate::{
    failure::{Failure, Outcome},
    process::Command,
};

/// The Debian packages that the peers are compiled against.
const PACKAGES: [&str; 5] =
    ["libkyotocabinet-dev", "libtokyocabinet-dev", "libqdbm-dev", "libcdb-dev", "liblmdb-dev"];

/// Runs all workloads and gives their tables; what is under way is shown meanwhile.
pub(super) fn run() -> Outcome<String> {
    let bench = ["bench", "--locked", "--package", "tokaido-bench", "--bench", "store"];
    let command = Command::cargo(bench);
    println!("$ {command}");
    let output = command.prepare().stderr(Stdio::inherit()).output();
    let output = output.map_err(Failure::of(format!("cannot run {command}")))?;
    if !output.status.success() {
        return Err(Failure::new(format!("`{command}` failed ({})", output.status)));
    }
    Ok(format!("{}\n\n{}", libraries(), String::from_utf8_lossy(&output.stdout)))
}

/// Which versions of the peers are installed.
fn libraries() -> String {
    let format = "${Package} ${Version}";
    let versions = PACKAGES.map(|package| {
        let query = Command::new("dpkg-query", ["--show", "--showformat", format, package]);
        query.output().unwrap_or_else(|_| format!("{package} not installed"))
    });
    format!("Peers: {}.", versions.join(", "))
}
