//! `watch`: polls the procedure files, and reloads them when they have changed.
//!
//! It polls them because that works on every file system and in every container, however an editor
//! saves a file, and costs only a look at each file's entry.

use std::{
    io,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use tokaido_script::{SourcePlaces, Sources};

use crate::service::Service;

/// What the files look like from outside, or why that cannot be seen.
type Look = Result<u64, String>;

/// The files that are polled.
pub(crate) struct Watched {
    places: SourcePlaces,
    extensions: Vec<&'static str>,
    /// How they looked before they were read.
    loaded: Look,
}

impl Watched {
    /// To be called before the files are read, so that no later change is missed.
    pub(crate) fn new(places: SourcePlaces, extensions: Vec<&'static str>) -> Self {
        let mut watched = Self { places, extensions, loaded: Ok(0) };
        watched.loaded = watched.look();
        watched
    }

    fn look(&self) -> Look {
        Sources::fingerprint(&self.places, &self.extensions).map_err(|error| error.to_string())
    }

    /// Looks every `interval` until the sender is gone, and calls `changed` once the files have
    /// changed and then looked the same twice. This leaves time for writing several files.
    fn run(mut self, interval: Duration, until: &Receiver<()>, changed: impl Fn()) {
        let mut last = self.loaded.clone();
        while until.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
            let now = self.look();
            if now == last && now != self.loaded {
                // Before they are read: a change after this look is seen in a later one.
                self.loaded = now.clone();
                changed();
            }
            last = now;
        }
    }
}

/// The polling thread. It ends when this is dropped.
#[derive(Default)]
pub(crate) struct ProcedureWatch {
    until: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ProcedureWatch {
    /// # Errors
    /// If the thread cannot be started.
    pub(crate) fn start(watched: Watched, service: Arc<Service>) -> io::Result<Self> {
        let (sender, until) = channel();
        let interval = Duration::from_millis(service.config.limits.procedure_look_ms);
        let run = move || watched.run(interval, &until, || service.reload_if_changed());
        let thread = thread::Builder::new().name("tokaido-reload".to_owned()).spawn(run)?;
        Ok(Self { until: Some(sender), thread: Some(thread) })
    }
}

impl Drop for ProcedureWatch {
    fn drop(&mut self) {
        self.until = None;
        if let Some(Err(_)) = self.thread.take().map(JoinHandle::join) {
            tracing::error!("the thread that watches the procedure files panicked");
        }
    }
}
