//! A server that is started to be measured: a process with a directory of its own; dropping this value removes both.

use std::{
    fs::{self, File},
    io,
    net::{Ipv4Addr, TcpStream},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::{cores, error::SuiteError, plan::Context, program};
use crate::ports;

/// The longest that a server may take until it listens.
const START_TIME_MAX: Duration = Duration::from_secs(60);

/// The longest that a server may take to exit.
const END_TIME_MAX: Duration = Duration::from_secs(120);

/// How often to check for either.
const LOOK: Duration = Duration::from_millis(1);

/// Its output, in its directory.
const LOG: &str = "bench.log";

/// A running server.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    /// The command that started it.
    command: Command,
    port: u16,
    /// Data, log, and whatever else the program writes.
    directory: TempDir,
}

/// The cores that a server runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cores {
    /// One core, the last one of the machine.
    One,
    All,
}

impl Server {
    /// Starts the command that `command` returns for a fresh directory and a port, and waits until it listens there.
    pub(super) fn start(
        context: &Context<'_>,
        cores: Cores,
        command: impl FnOnce(&Path, u16) -> Result<Command, SuiteError>,
    ) -> Result<Self, SuiteError> {
        let port = ports::free().map_err(SuiteError::system("cannot find a port"))?;
        let directory =
            TempDir::new().map_err(SuiteError::system("cannot make a directory for a server"))?;
        let mut command = command(directory.path(), port)?;
        let failed = || cannot_start(&command);
        let log = File::create(directory.path().join(LOG)).map_err(failed())?;
        let again = log.try_clone().map_err(failed())?;
        command.stdin(Stdio::null()).stdout(log).stderr(again);
        // Its own process group: Ctrl-C is for this program only, and the whole group can be killed at once.
        command.process_group(0);
        let core = (cores == Cores::One).then(cores::last).flatten();
        // SAFETY: between fork and exec only system calls are made that a signal handler might make, too.
        unsafe { command.pre_exec(move || before_exec(core)) };
        let child = command.spawn().map_err(cannot_start(&command))?;
        let mut server = Self { child, command, port, directory };
        server.wait_until_it_listens(context)?;
        Ok(server)
    }

    /// Stops it gracefully, and starts it again with what it left on disk. Returns when it was started.
    pub(super) fn restart(&mut self, context: &Context<'_>) -> Result<Instant, SuiteError> {
        // SAFETY: a system call that touches no memory. The child has not been waited for, so no other process has its number.
        unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGTERM) };
        let end = Instant::now();
        while self.child.try_wait().map_err(cannot_start(&self.command))?.is_none() {
            context.check()?;
            if end.elapsed() > END_TIME_MAX {
                return Err(self.failure(format!("has not ended after {END_TIME_MAX:?}")));
            }
            std::thread::sleep(LOOK);
        }
        let began = Instant::now();
        self.child = self.command.spawn().map_err(cannot_start(&self.command))?;
        self.wait_until_it_listens(context)?;
        Ok(began)
    }

    /// Checks that it is running.
    pub(super) fn check(&mut self) -> Result<(), SuiteError> {
        match self.child.try_wait() {
            Ok(Some(status)) => Err(self.failure(format!("ended with {status}"))),
            _ => Ok(()),
        }
    }

    /// The directory of its data.
    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    fn failure(&self, how: String) -> SuiteError {
        let log = fs::read_to_string(self.directory.path().join(LOG)).unwrap_or_default();
        let log = program::last_lines(&log);
        SuiteError::Start { program: program::name(&self.command), how, log }
    }

    fn wait_until_it_listens(&mut self, context: &Context<'_>) -> Result<(), SuiteError> {
        let start = Instant::now();
        while start.elapsed() < START_TIME_MAX {
            context.check()?;
            if TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok() {
                return Ok(());
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(self.failure(format!("ended at once with {status}")));
            }
            std::thread::sleep(LOOK);
        }
        Err(self.failure(format!("does not listen after {START_TIME_MAX:?}")))
    }
}

fn cannot_start(command: &Command) -> impl FnOnce(io::Error) -> SuiteError + use<> {
    SuiteError::system(format!("cannot start {}", program::name(command)))
}

impl Drop for Server {
    fn drop(&mut self) {
        let group = self.child.id() as libc::pid_t;
        // SAFETY: a system call that touches no memory. The group is the child's, which has not
        // been waited for, so no other process has its number.
        unsafe { libc::kill(-group, libc::SIGKILL) };
        // It may be gone already.
        let _ = self.child.wait();
    }
}

/// In the child: it is killed when its parent dies, and stays on its core.
fn before_exec(core: Option<usize>) -> io::Result<()> {
    // SAFETY: a system call that touches no memory.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
        return Err(io::Error::last_os_error());
    }
    core.map_or(Ok(()), cores::keep_to)
}
