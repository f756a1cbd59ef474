//! A server to test: the built binary with its own directory.

use std::{
    fs::File,
    net::{Ipv4Addr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tokaido_bench::ports;

use crate::{
    failure::{Failure, Outcome},
    files,
    process::Command,
};

/// The default port of a server; the documents show it.
pub(crate) const PORT_DEFAULT: u16 = 7653;

/// The longest time that a server may take until it listens.
const START_TIME_MAX: Duration = Duration::from_secs(60);

/// Builds the server and returns the path of its program.
pub(crate) fn binary() -> Outcome<PathBuf> {
    Command::cargo(["build", "--locked", "--package", "tokaido"]).run()?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    let path = files::root().join(target).join("debug/tokaido");
    path.canonicalize().map_err(Failure::of(format!("no program {}", path.display())))
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> Outcome<u16> {
    ports::free().map_err(Failure::of("cannot find a port"))
}

/// A running server; it is stopped when this is dropped.
pub(crate) struct Server {
    child: Child,
    port: u16,
    /// Data, log, and whatever else the program writes; removed with the server.
    _directory: TempDir,
}

impl Server {
    /// Starts `tokaido serve` and waits until it listens. `procedures` is a path from the root.
    pub(crate) fn start(binary: &Path, procedures: &str, options: &[&str]) -> Outcome<Self> {
        let port = free_port()?;
        let directory = TempDir::new().map_err(Failure::of("cannot make a directory"))?;
        let log_path = directory.path().join("log");
        let log = File::create(&log_path).map_err(Failure::of("cannot make a log"))?;
        let again = log.try_clone().map_err(Failure::of("cannot make a log"))?;
        let command = Command::new(binary, ["serve", "--listen", &format!("127.0.0.1:{port}")])
            .argument("--dir")
            .argument(directory.path().join("data"))
            .argument("--procedures")
            .argument(files::root().join(procedures))
            .arguments(options);
        let child = command
            .prepare()
            .stdout(Stdio::from(log))
            .stderr(Stdio::from(again))
            .spawn()
            .map_err(Failure::of(format!("cannot run {command}")))?;
        let mut server = Self { child, port, _directory: directory };
        server.wait_until_it_listens().map_err(|why| {
            let log = std::fs::read_to_string(&log_path).unwrap_or_default();
            Failure::new(format!("`{command}` {why}; its log:\n{log}"))
        })?;
        Ok(server)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    fn wait_until_it_listens(&mut self) -> Result<(), String> {
        let start = Instant::now();
        while start.elapsed() < START_TIME_MAX {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok() {
                return Ok(());
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("ended ({status})"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(format!("does not listen after {START_TIME_MAX:?}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // If either fails, it is already gone, which is fine.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
