//! The signals that a server process obeys: they stop the server, or reload its procedures.

use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
};

use tokio::{
    runtime::{self, Runtime},
    signal::unix::{self, Signal, SignalKind},
    sync::Notify,
};

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// To stop, with the name of the signal or the command.
    Stop(&'static str),
    /// To read the procedures again.
    Reload,
}

/// Catches SIGTERM, SIGINT and SIGHUP from its creation on.
///
/// Create it before the server starts: a signal that arrives in between is remembered. Without
/// it, the signal would end the process at once, and clients that are already served would lose
/// the answers to requests that the server has taken.
pub struct Signals {
    runtime: Runtime,
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    /// Catches the signals from now on.
    ///
    /// # Errors
    /// If the system does not allow it.
    pub fn catch() -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let entered = runtime.enter();
        let terminate = unix::signal(SignalKind::terminate())?;
        let interrupt = unix::signal(SignalKind::interrupt())?;
        let hangup = unix::signal(SignalKind::hangup())?;
        drop(entered);
        Ok(Self { runtime, terminate, interrupt, hangup })
    }

    /// Waits for the next signal, or until a client has asked to stop.
    pub(crate) fn wait(&mut self, stopping: &Stopping) -> Request {
        let Self { runtime, terminate, interrupt, hangup } = self;
        runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => Request::Stop("SIGTERM"),
                _ = interrupt.recv() => Request::Stop("SIGINT"),
                _ = hangup.recv() => Request::Reload,
                () = stopping.asked.notified() => Request::Stop("SHUTDOWN"),
            }
        })
    }
}

/// Lets a client stop the server, if the server waits for signals.
#[derive(Default)]
pub(crate) struct Stopping {
    is_obeyed: AtomicBool,
    asked: Notify,
}

impl Stopping {
    /// From now on, a client that asks is obeyed.
    pub(crate) fn obey(&self) {
        self.is_obeyed.store(true, Ordering::Relaxed);
    }

    /// Asks the server to stop. Returns whether it does.
    pub(crate) fn ask(&self) -> bool {
        let is_obeyed = self.is_obeyed.load(Ordering::Relaxed);
        if is_obeyed {
            self.asked.notify_one();
        }
        is_obeyed
    }
}
