//! A server that is started to be measured: a process with a directory of its own, both gone with this value.

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

use super::{error::SuiteError, plan::Context, program};
use crate::ports;

/// Longest that a server may take until it listens.
const START_TIME_MAX: Duration = Duration::from_secs(60);

/// How often it is looked whether it does.
const LOOK: Duration = Duration::from_millis(10);

/// A running server.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    port: u16,
    /// Data, log, and whatever else the program writes.
    _directory: TempDir,
}

/// On which cores a server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cores {
    /// On one, the last one of the machine.
    One,
    All,
}

impl Server {
    /// Starts what `command` makes of a fresh directory and a port, and waits until it listens there.
    pub(super) fn start(
        context: &Context<'_>,
        cores: Cores,
        command: impl FnOnce(&Path, u16) -> Result<Command, SuiteError>,
    ) -> Result<Self, SuiteError> {
        let port = ports::free().map_err(SuiteError::system("cannot find a port"))?;
        let directory =
            TempDir::new().map_err(SuiteError::system("cannot make a directory for a server"))?;
        let mut command = command(directory.path(), port)?;
        let name = program::name(&command);
        let failed = || SuiteError::system(format!("cannot start {name}"));
        let log_path = directory.path().join("bench.log");
        let log = File::create(&log_path).map_err(failed())?;
        let again = log.try_clone().map_err(failed())?;
        command.stdin(Stdio::null()).stdout(log).stderr(again);
        // A group of its own: Ctrl-C is for us, and all of its processes are ended with it.
        command.process_group(0);
        let core = (cores == Cores::One).then(last_core).flatten();
        // SAFETY: between fork and exec only calls of the system are made, which a signal handler might make, too.
        unsafe { command.pre_exec(move || before_exec(core)) };
        let child = command.spawn().map_err(failed())?;
        let mut server = Self { child, port, _directory: directory };
        match server.wait_until_it_listens(context)? {
            None => Ok(server),
            Some(how) => {
                let log = fs::read_to_string(&log_path).unwrap_or_default();
                let log = program::last_lines(&log);
                Err(SuiteError::Start { program: name, how, log })
            }
        }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Gives what went wrong, if it does not listen.
    fn wait_until_it_listens(
        &mut self,
        context: &Context<'_>,
    ) -> Result<Option<String>, SuiteError> {
        let start = Instant::now();
        while start.elapsed() < START_TIME_MAX {
            context.check()?;
            if TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok() {
                return Ok(None);
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Ok(Some(format!("ended at once with {status}")));
            }
            std::thread::sleep(LOOK);
        }
        Ok(Some(format!("does not listen after {START_TIME_MAX:?}")))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let group = self.child.id() as libc::pid_t;
        // SAFETY: a call of the system that touches no memory. The group is the child's, which has not been waited for, so
        // its number is nobody else's.
        unsafe { libc::kill(-group, libc::SIGKILL) };
        // It may be gone already.
        let _ = self.child.wait();
    }
}

/// The last core that this process may use.
fn last_core() -> Option<usize> {
    // SAFETY: a zeroed set is an empty one, and the kernel writes no more than its size.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let size = size_of::<libc::cpu_set_t>();
        (libc::sched_getaffinity(0, size, &raw mut set) == 0).then_some(set)?
    };
    // SAFETY: every number asked for is within the set.
    (0..libc::CPU_SETSIZE as usize).rev().find(|core| unsafe { libc::CPU_ISSET(*core, &set) })
}

/// In the child: it ends with us, and keeps to its core.
fn before_exec(core: Option<usize>) -> io::Result<()> {
    // SAFETY: calls of the system; the set is a local value, and `core` within it.
    unsafe {
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
            return Err(io::Error::last_os_error());
        }
        if let Some(core) = core {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(core, &mut set);
            if libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) != 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    Ok(())
}
