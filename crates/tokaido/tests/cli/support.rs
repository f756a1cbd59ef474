//! Runs the binary, and servers.

use std::{
    ffi::OsStr,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

/// The longest that a test waits before it fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// The built binary, isolated from the environment and the working directory.
pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tokaido"));
    command.env_remove("TOKAIDO_PASSWORD").env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

/// The results of a run of the binary.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Ran {
    /// Standard output as text, of a run that had to succeed.
    #[track_caller]
    pub(crate) fn ok(&self) -> &str {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.text()
    }

    /// Standard error of a run that had to fail with `code` and one message.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32) -> &str {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.stderr.starts_with("tokaido: "), "{self:?}");
        self.stderr.trim_end()
    }

    #[track_caller]
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: output.stdout,
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Runs the binary.
pub(crate) fn tokaido(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ran {
    command().args(args).output().unwrap().into()
}

/// Runs the binary with `input` on its standard input.
pub(crate) fn tokaido_with(
    args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    input: impl AsRef<[u8]>,
) -> Ran {
    let mut command = command();
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.as_ref().to_vec();
    let writer = std::thread::spawn(move || {
        // A program that failed early does not read all of it.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output.into()
}

/// A running script.
pub(crate) struct Script {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
}

impl Script {
    /// Starts the binary, with `input` on its standard input, which stays open.
    pub(crate) fn start(args: &[&str], input: &str) -> Self {
        let mut command = command();
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(input.as_bytes()).unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdout }
    }

    /// Waits until it prints this line.
    #[track_caller]
    pub(crate) fn prints(&mut self, expected: &str) {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        assert_eq!(line.trim_end(), expected);
    }

    /// Waits until it prints a line that contains this, and returns the line.
    #[track_caller]
    pub(crate) fn line_with(&mut self, text: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "it ended without {text:?}");
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Does what Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        signal(&self.child, "-INT");
    }

    pub(crate) fn end(mut self) -> Ran {
        let mut stdout = Vec::new();
        std::io::Read::read_to_end(&mut self.stdout, &mut stdout).unwrap();
        let output = self.child.wait_with_output().unwrap();
        Output { stdout, ..output }.into()
    }
}

fn signal(child: &Child, signal: &str) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
}

/// Waits until the procedure returns this, which it does once a change of its file is active.
#[track_caller]
pub(crate) fn wait_for_result(connect: &str, procedure: &str, result: &str) {
    let started = Instant::now();
    loop {
        let ran = tokaido(["call", connect, procedure]);
        if ran.code == Some(0) && ran.text().trim_end() == result {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "{procedure} never gives {result}: {ran:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A directory that is removed after the test.
pub(crate) struct Directory(tempfile::TempDir);

impl Directory {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).into_os_string().into_string().unwrap()
    }

    /// The flag for a store in this directory.
    pub(crate) fn store(&self) -> String {
        format!("--dir={}", self.text("store"))
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        self.text(name)
    }
}

/// A server that is killed after the test.
pub(crate) struct Server {
    child: Child,
    /// Its output when it started.
    pub(crate) started: Vec<String>,
    pub(crate) address: String,
}

impl Server {
    /// Starts a server on a free port.
    pub(crate) fn start(directory: &Directory, args: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", directory, args)
    }

    /// Starts a server at this address.
    pub(crate) fn start_at(address: &str, directory: &Directory, args: &[&str]) -> Self {
        let listen = format!("--listen={address}");
        let mut command = command();
        command.args(["serve", &listen, "--log=warn", &directory.store()]);
        command.args(args).current_dir(directory.path(""));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut started = Vec::new();
        for line in stdout.lines() {
            let line = line.unwrap();
            let is_last = line.starts_with("listening");
            started.push(line);
            if is_last {
                break;
            }
        }
        let address = started.iter().find_map(|line| line.strip_prefix("listening   "));
        let address = address.unwrap_or_else(|| panic!("no address in {started:?}")).to_owned();
        Self { child, started, address }
    }

    /// The flag that connects to it.
    pub(crate) fn connect(&self) -> String {
        format!("--connect={}", self.address)
    }

    /// Asks it to stop; returns its exit code and what it wrote to standard error.
    pub(crate) fn stop(mut self) -> Ran {
        signal(&self.child, "-TERM");
        let stderr = self.child.stderr.take().unwrap();
        let mut text = String::new();
        std::io::Read::read_to_string(&mut BufReader::new(stderr), &mut text).unwrap();
        Ran { code: self.child.wait().unwrap().code(), stdout: Vec::new(), stderr: text }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have stopped by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reports a skipped test, bypassing the test harness, which would capture the message.
pub(crate) fn skip(why: &str) {
    std::io::stderr().write_all(format!("skipped: {why}\n").as_bytes()).unwrap();
}

/// The repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A number in a summary: `stored` in `stored   2,269  in database …`.
#[track_caller]
pub(crate) fn number(summary: &str, name: &str) -> u64 {
    let lines = summary.lines().filter_map(|line| line.trim_start().strip_prefix(name));
    let mut numbers = lines.map(|rest| rest.split_whitespace().next().unwrap().replace(',', ""));
    numbers.next().unwrap_or_else(|| panic!("no {name} in {summary}")).parse().unwrap()
}
