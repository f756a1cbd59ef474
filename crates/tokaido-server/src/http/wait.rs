//! A handler that waits, and holds nothing meanwhile but what its virtual machine has of it.

use std::time::Duration;

use hyper::StatusCode;
use tokaido_script::{ProcedureId, Waiting};
use tokio::time::{Instant, sleep_until};

use super::error::HttpError;
use crate::{sockets::RequestSockets, worker::Worker};

/// A handler of a worker that waits. When it is dropped before the handler has gone on, that is given up.
pub(super) struct Wait<'w> {
    worker: &'w Worker,
    /// The program whose handler it is.
    generation: u64,
    handler: ProcedureId,
    began: Instant,
    /// That of the handler while it waits.
    slot: Option<u64>,
}

impl<'w> Wait<'w> {
    /// The worker has been told that one more handler waits.
    pub(super) fn new(worker: &'w Worker, generation: u64, handler: ProcedureId) -> Self {
        Self { worker, generation, handler, began: Instant::now(), slot: None }
    }

    /// Waits for its time, or until it may go on with a socket or somebody else says so.
    ///
    /// # Errors
    /// If the handler has taken too long.
    pub(super) async fn until(
        &mut self,
        waiting: Waiting,
        sockets: &mut RequestSockets,
    ) -> Result<(), HttpError> {
        self.slot = Some(waiting.slot);
        let woken = self.worker.sockets.begin_wait(waiting.slot);
        let limit_ms = self.worker.service.config.limits.http_wait_ms;
        let end = self.began + Duration::from_millis(limit_ms);
        let wake = Instant::now().checked_add(waiting.time).map_or(end, |wake| wake.min(end));
        tokio::select! {
            () = sockets.ready() => {}
            () = woken.notified() => {}
            () = sleep_until(wake) => {}
        }
        self.worker.sockets.end_wait(waiting.slot);
        if Instant::now() >= end {
            let message =
                format!("the handler was not done after {limit_ms} ms, limits.http_wait_ms");
            return Err(HttpError::new(StatusCode::SERVICE_UNAVAILABLE, message));
        }
        Ok(())
    }

    /// The handler has gone on.
    pub(super) fn is_over(&mut self) {
        self.slot = None;
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let mut reading = self.worker.reading.borrow_mut();
        if let Some(slot) = self.slot {
            self.worker.sockets.end_wait(slot);
            reading.program.waiting_procedures(self.generation).abandon_http(self.handler, slot);
        }
        reading.program.end_wait(self.generation);
    }
}
