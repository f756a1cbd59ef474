//! The store beside LMDB and a bare disk: a program of its own, `crates/tokaido-bench/benches/store`.

use std::process::Stdio;

use crate::{
    failure::{Failure, Outcome},
    process::Command,
};

/// The Debian package that the peer is compiled against.
const PACKAGE: &str = "liblmdb-dev";

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
    Ok(format!("{}\n\n{}", library(), String::from_utf8_lossy(&output.stdout)))
}

/// Which version of the peer is installed.
fn library() -> String {
    let query = ["--show", "--showformat", "${Package} ${Version}", PACKAGE];
    let version = Command::new("dpkg-query", query).output();
    format!("Peer: {}.", version.unwrap_or_else(|_| format!("{PACKAGE} not installed")))
}
