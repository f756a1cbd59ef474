//! The threads of a server, started one after another and ended in the opposite order.

use std::{
    sync::mpsc::channel,
    thread::{Builder, JoinHandle},
};

use crate::server::StartError;

/// Threads in the order in which they started: later ones hand work to earlier ones.
#[derive(Default)]
pub(crate) struct Threads(Vec<JoinHandle<()>>);

impl Threads {
    /// Starts a thread and waits until it is ready. `prepare` creates, on the thread itself, what
    /// cannot be sent to it.
    ///
    /// # Errors
    /// That of `prepare`, or if the thread cannot be started.
    pub(crate) fn spawn<T>(
        &mut self,
        name: &str,
        prepare: impl FnOnce() -> Result<T, StartError> + Send + 'static,
        run: impl FnOnce(T) + Send + 'static,
    ) -> Result<(), StartError> {
        let (ready, is_ready) = channel();
        let body = move || match prepare() {
            Ok(prepared) => {
                // Nobody waits only if the starting thread is gone; then this one soon ends, too.
                let _ = ready.send(Ok(()));
                run(prepared);
            }
            Err(error) => {
                let _ = ready.send(Err(error));
            }
        };
        let failed = |message: String| StartError::Thread { name: name.to_owned(), message };
        let spawned = Builder::new().name(name.to_owned()).spawn(body);
        self.0.push(spawned.map_err(|error| failed(error.to_string()))?);
        is_ready.recv().unwrap_or_else(|_| Err(failed("it panicked, see the log".to_owned())))
    }

    /// Waits for all threads to end, the latest first.
    pub(crate) fn join_all(&mut self) {
        while let Some(thread) = self.0.pop() {
            let name = thread.thread().name().unwrap_or_default().to_owned();
            if thread.join().is_err() {
                tracing::error!(thread = name, "a thread of the server panicked");
            }
        }
    }
}
