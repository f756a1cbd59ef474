//! The processes that are measured: ours, and those of the peers whose libraries are installed.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use crate::Outcome;

const COMPILER: &str = "gcc";

/// A program that knows some of the workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Tokaido,
    Lmdb,
    /// The disk without a store.
    Bare,
}

impl Peer {
    /// Its source, and the library that it needs.
    fn source(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Tokaido => None,
            Self::Lmdb => Some(("lmdb.c", "-llmdb")),
            Self::Bare => Some(("bare.c", "-lc")),
        }
    }
}

/// A process that waits for workloads.
pub(crate) struct Subject {
    child: Child,
    requests: ChildStdin,
    replies: BufReader<ChildStdout>,
}

/// What a subject answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// Time of one operation in ns, by the clock, and as the processor worked for it.
    pub(crate) nanoseconds: f64,
    pub(crate) worked: f64,
    pub(crate) sum: u64,
}

impl Subject {
    /// Starts a peer in a directory of its own below `place`; says why that cannot be.
    pub(crate) fn start(peer: Peer, place: &Path) -> Result<Self, String> {
        let directory = place.join(format!("{peer:?}").to_lowercase());
        fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
        let mut command = match peer.source() {
            None => {
                let mut command =
                    Command::new(std::env::current_exe().map_err(|error| error.to_string())?);
                command.arg("--subject");
                command
            }
            Some((source, library)) => Command::new(compile(source, library, place)?),
        };
        command.arg(&directory).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (Some(requests), Some(stdout)) = (stdin, stdout) else {
            return Err("a process without streams".to_owned());
        };
        Ok(Self { child, requests, replies: BufReader::new(stdout) })
    }

    /// Runs a workload.
    pub(crate) fn run(&mut self, workload: &str) -> Outcome<Answer> {
        writeln!(self.requests, "{workload}")?;
        let mut reply = String::new();
        self.replies.read_line(&mut reply)?;
        let numbers: Vec<u64> =
            reply.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [nanoseconds, worked, operations, sum] = numbers[..] else {
            return Err(format!("{workload} failed; the reason stands above").into());
        };
        let each = |total: u64| total as f64 / operations as f64;
        Ok(Answer { nanoseconds: each(nanoseconds), worked: each(worked), sum })
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Compiles a peer once, or says that its library is not installed.
fn compile(source: &str, library: &str, place: &Path) -> Result<PathBuf, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(source);
    let program = place.join(source.replace('.', "-"));
    // By an earlier workload of this run.
    if program.exists() {
        return Ok(program);
    }
    let mut command = Command::new(COMPILER);
    let compiled = command.args(["-O2", "-o"]).arg(&program).arg(path).arg(library).output();
    let compiled = compiled.map_err(|error| format!("{COMPILER}: {error}"))?;
    if compiled.status.success() {
        return Ok(program);
    }
    let said = String::from_utf8_lossy(&compiled.stderr);
    let reason = said.lines().find(|line| line.contains("rror")).unwrap_or("it did not compile");
    Err(reason.to_owned())
}
