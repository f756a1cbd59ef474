//! Workers that set and get keys in turns: client libraries, as programs or in this process, and in-process stores.

use std::{
    ffi::OsStr,
    io::{BufRead, BufReader, Read, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use super::{dictionary::OpenDictionary, program};
use crate::net;

/// The value of every key.
pub(super) const VALUE: &[u8] = &[b'x'; 64];

/// The key for a number.
pub(super) fn key(number: u64) -> Vec<u8> {
    let mut key = Vec::new();
    net::generate_key(number, &mut key);
    key
}

/// What to do with keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Set,
    Get,
}

impl Work {
    pub(super) const ALL: [Self; 2] = [Self::Set, Self::Get];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Get => "get",
        }
    }
}

/// The time that a turn took.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    /// Wall-clock time.
    pub(super) real: Duration,
    /// Processor time in the process's own code.
    pub(super) user: Duration,
    /// Processor time in the kernel.
    pub(super) system: Duration,
}

impl Spent {
    /// The time that `work` takes in this process, all its threads together.
    pub(super) fn of(work: impl FnOnce() -> Result<(), String>) -> Result<Self, String> {
        let (user, system) = processor_times(libc::RUSAGE_SELF);
        let began = Instant::now();
        work()?;
        let real = began.elapsed();
        let (user_after, system_after) = processor_times(libc::RUSAGE_SELF);
        Ok(Self {
            real,
            user: user_after.saturating_sub(user),
            system: system_after.saturating_sub(system),
        })
    }

    /// The same, including programs that were started meanwhile and have exited.
    pub(super) fn with_programs(work: impl FnOnce() -> Result<(), String>) -> Result<Self, String> {
        let (user, system) = processor_times(libc::RUSAGE_CHILDREN);
        let spent = Self::of(work)?;
        let (user_after, system_after) = processor_times(libc::RUSAGE_CHILDREN);
        Ok(Self {
            user: spent.user + user_after.saturating_sub(user),
            system: spent.system + system_after.saturating_sub(system),
            ..spent
        })
    }
}

/// User and system time of this process, or of its exited child processes.
fn processor_times(whose: libc::c_int) -> (Duration, Duration) {
    // SAFETY: the system fills in the value, for which zeros are valid.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(whose, &raw mut usage);
        usage
    };
    let duration = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
    };
    (duration(usage.ru_utime), duration(usage.ru_stime))
}

/// Sets and gets keys.
pub(super) trait Worker {
    /// Sets the keys of `count` numbers to [`VALUE`], in order, or gets them and compares.
    fn turn(&mut self, work: Work, count: u64) -> Result<Spent, String>;
}

/// A store; each set is a transaction, if the store has any.
impl Worker for Box<dyn OpenDictionary> {
    fn turn(&mut self, work: Work, count: u64) -> Result<Spent, String> {
        Spent::of(|| {
            (0..count).try_for_each(|number| match work {
                Work::Set => self.put(&[(&key(number), VALUE)]),
                Work::Get => {
                    let mut is_same = false;
                    self.get(&key(number), &mut |value| is_same = value == VALUE)?;
                    if is_same { Ok(()) } else { Err("another value was read".to_owned()) }
                }
            })
        })
    }
}

/// A program that reads its turns line by line, and answers with the time of each. Dropping this value ends it.
pub(super) struct Program {
    child: Child,
    /// `None` when it is to exit.
    turns: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Program {
    /// Starts an interpreter with a script for a library, and the port of a server.
    pub(super) fn start(
        interpreter: &Path,
        script: &Path,
        library: &str,
        port: u16,
    ) -> Result<Self, String> {
        let port = port.to_string();
        let mut command = Command::new(interpreter);
        command.arg(script).args([OsStr::new(library), OsStr::new(&port)]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Its own process group: Ctrl-C is for this program only.
        command.process_group(0);
        let mut child =
            command.spawn().map_err(|error| format!("{}: {error}", interpreter.display()))?;
        let missing = || "it has no pipes".to_owned();
        let turns = Some(child.stdin.take().ok_or_else(missing)?);
        let answers = BufReader::new(child.stdout.take().ok_or_else(missing)?);
        Ok(Self { child, turns, answers })
    }

    /// Why it exited.
    fn last_words(&mut self) -> String {
        let mut text = Vec::new();
        if let Some(errors) = &mut self.child.stderr {
            // Whatever can be read of it says more than the error would.
            let _ = errors.read_to_end(&mut text);
        }
        program::last_lines(&String::from_utf8_lossy(&text))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It exits when its input ends.
        self.turns = None;
        let _ = self.child.wait();
    }
}

impl Worker for Program {
    fn turn(&mut self, work: Work, count: u64) -> Result<Spent, String> {
        let mut line = String::new();
        let told = match &mut self.turns {
            Some(turns) => writeln!(turns, "{} {count}", work.name()).and_then(|()| turns.flush()),
            None => Ok(()),
        };
        if told.is_err() || matches!(self.answers.read_line(&mut line), Err(_) | Ok(0)) {
            return Err(self.last_words());
        }
        let times: Vec<f64> =
            line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let times: Vec<Duration> = times
            .into_iter()
            .filter_map(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).ok())
            .collect();
        match times[..] {
            [real, user, system] => Ok(Spent { real, user, system }),
            _ => Err(format!("it has answered {line:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(script: &str) -> Program {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("script");
        std::fs::write(&path, script).unwrap();
        let mut program = Program::start(Path::new("/bin/sh"), &path, "library", 7).unwrap();
        // The script must exist until the shell has read it.
        let mut first = String::new();
        program.answers.read_line(&mut first).unwrap();
        program
    }

    #[test]
    fn a_program_is_told_its_turns() {
        let mut program =
            program("echo ready; while read work count; do echo 2.5 $count 0.25; done");
        let spent = program.turn(Work::Set, 3).unwrap();
        let expected = (Duration::from_millis(2_500), Duration::from_secs(3));
        assert_eq!((spent.real, spent.user), expected);
        assert_eq!(program.turn(Work::Get, 4).unwrap().user, Duration::from_secs(4));
    }

    #[test]
    fn a_program_that_ends_or_babbles_says_why() {
        let mut failing = program("echo ready; read turn; echo why >&2; exit 1");
        assert_eq!(failing.turn(Work::Set, 1).unwrap_err(), "why");
        let mut babbling = program("echo ready; read turn; echo nothing");
        assert!(babbling.turn(Work::Set, 1).unwrap_err().contains("nothing"));
    }

    #[test]
    fn the_time_of_programs_that_have_ended_is_counted() {
        let spin = || {
            let script = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
            let status = Command::new("sh").args(["-c", script]).status();
            status.map(drop).map_err(|error| error.to_string())
        };
        let spent = Spent::with_programs(spin).unwrap();
        assert!(spent.user > Duration::ZERO, "{spent:?}");
    }
}
