//! A handler that waits, and in the meantime holds nothing but its state in the virtual machine.

use std::{rc::Rc, time::Duration};

use hyper::StatusCode;
use tokaido_script::{ProcedureId, Waiting};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use super::{error::HttpError, streamed::Streamed};
use crate::{sockets::RequestSockets, timers::until_replaced, worker::Worker};

/// A waiting handler of a worker. If it is dropped before the handler has gone on, the handler is given up.
pub(super) struct Wait {
    worker: Rc<Worker>,
    /// The program that the handler belongs to.
    generation: u64,
    handler: ProcedureId,
    began: Instant,
    limit: Duration,
    programs: watch::Receiver<u64>,
    /// The handler's deadline, once another program has replaced its own.
    last: Option<Instant>,
    /// The slot of the handler while it waits.
    slot: Option<u64>,
}

impl Wait {
    /// Begins the wait of a handler, `waiting`, that the worker has already been told of.
    pub(super) fn new(
        worker: &Rc<Worker>,
        generation: u64,
        handler: ProcedureId,
        waiting: Waiting,
    ) -> Self {
        let (worker, programs) = (Rc::clone(worker), worker.service.shared.program.watch());
        let limit = Duration::from_millis(worker.service.config.limits.http_wait_ms);
        let (began, last, slot) = (Instant::now(), None, Some(waiting.slot));
        Self { worker, generation, handler, began, limit, programs, last, slot }
    }

    /// Waits for its time, until a socket is ready, or until it is woken; if `awaits_sent`, also
    /// until all of its answer has been sent.
    ///
    /// # Errors
    /// If the handler has taken too long. For one that sends its answer meanwhile, the time begins
    /// anew whenever its client takes something, until another program replaces its own.
    pub(super) async fn until(
        &mut self,
        waiting: Waiting,
        awaits_sent: bool,
        sockets: &mut RequestSockets,
        streamed: Option<&Streamed>,
    ) -> Result<(), HttpError> {
        let woken = self.worker.sockets.begin_wait(waiting.slot);
        let wake = Instant::now().checked_add(waiting.time);
        let sent = async {
            match streamed {
                _ if !awaits_sent => std::future::pending().await,
                Some(streamed) => streamed.sent().await,
                // The whole answer has been sent.
                None => {}
            }
        };
        tokio::pin!(sent);
        loop {
            let end = self.end(streamed);
            let is_replaceable = streamed.is_some() && self.last.is_none();
            tokio::select! {
                () = sockets.ready() => break,
                () = woken.notified() => break,
                () = &mut sent => break,
                () = sleep_until(wake.map_or(end, |wake| wake.min(end))) => {
                    let now = Instant::now();
                    if wake.is_some_and(|wake| wake <= now) || self.end(streamed) <= now {
                        break;
                    }
                }
                () = until_replaced(&self.worker, &mut self.programs, self.generation), if is_replaceable => {
                    self.last = Some(Instant::now() + self.limit);
                }
            }
        }
        self.worker.sockets.end_wait(waiting.slot);
        if self.end(streamed) <= Instant::now() {
            let message = format!(
                "the handler was not done after {} ms, limits.http_wait_ms",
                self.limit.as_millis()
            );
            return Err(HttpError::new(StatusCode::SERVICE_UNAVAILABLE, message));
        }
        Ok(())
    }

    /// The handler's deadline.
    fn end(&self, streamed: Option<&Streamed>) -> Instant {
        let began = streamed.map_or(self.began, |streamed| streamed.left_at().max(self.began));
        self.last.unwrap_or(began + self.limit)
    }

    /// Notes that the handler has gone on, and is done or waits again.
    pub(super) fn goes_on(&mut self, waiting: Option<Waiting>) {
        self.slot = waiting.map(|waiting| waiting.slot);
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let mut reading = self.worker.reading.borrow_mut();
        if let Some(slot) = self.slot {
            self.worker.sockets.end_wait(slot);
            reading.program.waiting_procedures(self.generation).abandon_http(self.handler, slot);
        }
        reading.program.end_wait(self.generation);
    }
}
