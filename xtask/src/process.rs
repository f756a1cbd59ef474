//! Running other programs: commands are shown before they run, and failures name them in full.

use std::{
    ffi::OsString,
    fmt,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
    process::{self, Stdio},
};

use crate::{
    excerpt::Excerpt,
    failure::{Failure, Outcome},
    files,
};

/// How long tests may run in CI, for `timeout`. So their output shows which test hangs.
const TESTS_TIME_MAX: &str = "25m";

/// The status of `timeout` if it has ended the program.
const TIMED_OUT: i32 = 124;

/// A program with its arguments, run at the root of the repository unless told otherwise, without
/// standard input.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    program: PathBuf,
    arguments: Vec<OsString>,
    directory: PathBuf,
    variables: Vec<(&'static str, OsString)>,
}

impl Command {
    pub(crate) fn new<A: Into<OsString>>(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        Self {
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            directory: files::root().to_path_buf(),
            variables: Vec::new(),
        }
    }

    /// The cargo that runs this.
    pub(crate) fn cargo<A: Into<OsString>>(arguments: impl IntoIterator<Item = A>) -> Self {
        Self::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), arguments)
    }

    pub(crate) fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    pub(crate) fn arguments<A: Into<OsString> + Clone>(mut self, arguments: &[A]) -> Self {
        self.arguments.extend(arguments.iter().cloned().map(Into::into));
        self
    }

    pub(crate) fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = directory.into();
        self
    }

    pub(crate) fn variable(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// For callers that need more than `run` and `output`.
    pub(crate) fn prepare(&self) -> process::Command {
        let mut command = process::Command::new(&self.program);
        command.args(&self.arguments).current_dir(&self.directory).stdin(Stdio::null());
        for (name, value) in &self.variables {
            command.env(name, value);
        }
        command
    }

    /// Shows the command and runs it; its output goes where this program's goes.
    pub(crate) fn run(&self) -> Outcome {
        println!("$ {self}");
        let status = self.prepare().status().map_err(Failure::of(format!("cannot run {self}")))?;
        if status.success() {
            return Ok(());
        }
        Err(Failure::new(format!("`{self}` failed ({status})")))
    }

    /// The same command, ended after [`TESTS_TIME_MAX`] along with everything that it has started.
    fn limited(&self) -> Self {
        let program = self.program.clone().into_os_string();
        let before = ["--kill-after=10s".into(), TESTS_TIME_MAX.into(), program];
        let arguments = before.into_iter().chain(self.arguments.iter().cloned()).collect();
        Self { program: "timeout".into(), arguments, ..self.clone() }
    }

    /// As [`run`](Self::run), with merged output streams; a failure includes an excerpt of these.
    pub(crate) fn run_tests(&self) -> Outcome {
        println!("$ {self}");
        let tried = || Failure::of(format!("cannot run {self}"));
        let (output, input) = io::pipe().map_err(tried())?;
        let mut child = {
            // Drops the command, and with it the writing end, before the output is read to its end.
            let mut command = match is_in_ci() {
                true => self.limited().prepare(),
                // Under `timeout`, the terminal's Ctrl-C would not reach it.
                false => self.prepare(),
            };
            command.stdout(input.try_clone().map_err(tried())?).stderr(input);
            command.spawn().map_err(tried())?
        };
        let mut excerpt = Excerpt::default();
        for line in BufReader::new(output).split(b'\n') {
            let line = line.map_err(tried())?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            excerpt.take(&line);
        }
        let status = child.wait().map_err(tried())?;
        if status.success() {
            return Ok(());
        }
        let said = excerpt.lines().join("\n");
        let failed = match status.code() {
            Some(TIMED_OUT) => format!("did not end within {TESTS_TIME_MAX}"),
            _ => format!("failed ({status})"),
        };
        Err(Failure::new(format!("`{self}` {failed}. It said:\n{said}")))
    }

    /// As [`run`](Self::run), but returns its standard output, which is shown when it ends.
    pub(crate) fn run_and_read(&self) -> Outcome<String> {
        println!("$ {self}");
        let output = self.prepare().stderr(Stdio::inherit()).output();
        let output = output.map_err(Failure::of(format!("cannot run {self}")))?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        print!("{said}");
        if output.status.success() {
            return Ok(said);
        }
        Err(Failure::new(format!("`{self}` failed ({})", output.status)))
    }

    /// Runs it silently and returns its standard output.
    pub(crate) fn output(&self) -> Outcome<String> {
        let output = self.prepare().output().map_err(Failure::of(format!("cannot run {self}")))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(Failure::new(format!("`{self}` failed ({}): {}", output.status, said.trim())))
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.program.file_name().unwrap_or(self.program.as_os_str());
        write!(f, "{}", Path::new(name).display())?;
        for argument in &self.arguments {
            write!(f, " {}", argument.to_string_lossy())?;
        }
        Ok(())
    }
}

/// Whether this is continuous integration, where nothing may be missing, and nothing may hang.
pub(crate) fn is_in_ci() -> bool {
    std::env::var("CI").is_ok_and(|ci| ci == "true")
}

/// Whether a program of that name is on the path.
pub(crate) fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}
