//! A handler that has begun to wait: what it needs to go on, and what its client gets meanwhile.

use std::{rc::Rc, sync::Arc};

use hyper::{Method, Response, Version, body::Bytes, header, http::request::Parts};
use tokaido_script::{HttpResponse, ProcedureId, Transaction, Waiting};
use tokio::{sync::oneshot, task::JoinHandle};

use super::{
    body::Reply,
    error::HttpError,
    exchange::{Exchange, HandlerGuard},
    route::{Arrival, Asked, Step, failed_response, to_response},
    streamed::{End, Streamed},
    wait::Wait,
};
use crate::{
    access::Principal,
    placement::{Placement, RunError},
    program::Program,
    sockets::RequestSockets,
    timers,
    worker::Worker,
};

/// A response that is not flushed leaves while its handler waits once it has this many bytes, as in nginx, whose option
/// `postpone_output` is of this size.
const POSTPONED_LEN_MAX: usize = 1460;

/// A handler of a worker, with all that it is gone on with.
pub(super) struct Suspended {
    pub(super) worker: Rc<Worker>,
    pub(super) program: Arc<Program>,
    pub(super) id: ProcedureId,
    pub(super) parameters: Vec<(String, String)>,
    pub(super) principal: Principal,
    pub(super) parts: Parts,
    pub(super) body: Bytes,
    pub(super) arrival: Arrival,
    pub(super) sockets: RequestSockets,
    pub(super) wait: Wait,
}

/// What a client gets: all of it, or the head of what is streamed.
struct Answer {
    response: Response<Reply>,
    streamed: Option<Rc<Streamed>>,
}

/// The way to the client.
struct Client {
    exchange: Rc<Exchange>,
    /// Whether it can get a body without being told its length first.
    may_stream: bool,
    /// Until the client has an answer, or the beginning of it.
    waiting: Option<oneshot::Sender<Result<Answer, HttpError>>>,
    streamed: Option<Rc<Streamed>>,
    /// From then on.
    guard: Option<HandlerGuard>,
}

/// The task in which a handler goes on. It ends with this unless it was let go.
struct Task(Option<JoinHandle<()>>);

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(task) = self.0.take() {
            task.abort();
        }
    }
}

impl Suspended {
    /// Goes on with the handler until it is done. The answer is there earlier if the handler sends some of it, or has ended
    /// it, before it waits again.
    pub(super) async fn answer(
        self,
        given: HttpResponse,
        exchange: &Rc<Exchange>,
    ) -> Result<Response<Reply>, HttpError> {
        let (waiting, answered) = oneshot::channel();
        let (waiting, exchange_of_task) = (Some(waiting), Rc::clone(exchange));
        // One that knows HTTP/1.0 alone would take the end of the connection for that of the body.
        let may_stream =
            self.parts.method != Method::HEAD && self.parts.version == Version::HTTP_11;
        let (streamed, guard) = (None, None);
        let client = Client { exchange: exchange_of_task, may_stream, waiting, streamed, guard };
        let mut task = Task(Some(tokio::task::spawn_local(self.run(given, client))));
        let answer = answered.await.unwrap_or_else(|_| Err(RunError::Lost.into()));
        task.0 = None;
        let Answer { response, streamed } = answer?;
        if let Some(streamed) = streamed {
            exchange.begin_stream(&streamed);
        }
        Ok(response)
    }

    async fn run(mut self, mut given: HttpResponse, mut client: Client) {
        while let Some(waiting) = given.waiting.take() {
            let stepped = match client.send(&mut given) {
                Ok(()) => self.step(waiting, given, &client).await,
                Err(message) => Err(self.failed(message)),
            };
            match stepped {
                Ok(next) => given = next,
                Err(error) => return client.fail(error, &self.program, self.id),
            }
        }
        if let Err(message) = client.finish(given) {
            client.fail(self.failed(message), &self.program, self.id);
        }
    }

    /// Waits, and goes on with the handler until it waits again or is done.
    async fn step(
        &mut self,
        waiting: Waiting,
        mut so_far: HttpResponse,
        client: &Client,
    ) -> Result<HttpResponse, HttpError> {
        let streamed = client.streamed.as_deref();
        let awaits_sent = std::mem::take(&mut so_far.awaits_sent);
        self.wait.until(waiting, awaits_sent, &mut self.sockets, streamed).await?;
        match streamed {
            Some(streamed) => streamed.tell(&mut so_far.progress),
            None => so_far.progress.has_begun = client.waiting.is_none(),
        }
        let Self {
            worker, program, id, parameters, principal, parts, body, arrival, sockets, ..
        } = self;
        let (id, arrival) = (*id, *arrival);
        let parameters: Vec<_> =
            parameters.iter().map(|(name, value)| (name.as_str(), value.as_str().into())).collect();
        let asked = Asked { shared: &worker.service.shared, principal, parts, body, arrival };
        let resumed = Placement::http(worker).here(|context| {
            let transaction = Transaction::Read(&mut *context.snapshot);
            let procedures = &mut context.program.waiting_procedures(program.generation());
            let step = Step::Resume { slot: waiting.slot, so_far };
            let (given, messages) =
                asked.run(procedures, (id, &parameters), transaction, step, Some(sockets))?;
            asked.shared.channels.publish_all(&messages);
            Ok::<_, HttpError>(given)
        });
        timers::start(worker, program.generation(), principal);
        let given = resumed??;
        self.wait.is_over();
        Ok(given)
    }

    /// The answer is none that can be sent.
    fn failed(&self, message: String) -> HttpError {
        failed_response(&self.worker, &self.program, self.id, message)
    }
}

impl Client {
    /// Sends what is to be sent while the handler waits. An error is what is wrong with the response.
    fn send(&mut self, given: &mut HttpResponse) -> Result<(), String> {
        let is_flushed = std::mem::take(&mut given.is_flushed);
        let has_body = self.may_stream && !matches!(given.status, 204 | 304);
        let is_due =
            is_flushed || (has_body && given.is_sent && given.body.len() >= POSTPONED_LEN_MAX);
        match &self.streamed {
            Some(streamed) if is_due || given.is_complete => {
                streamed.push(given.take_body().into());
                if given.is_complete {
                    streamed.end(End::Proper);
                }
                Ok(())
            }
            None if given.is_complete && !given.is_dropped => self.answer(given, false),
            None if is_due => self.answer(given, true),
            _ => Ok(()),
        }
    }

    /// Sends the answer: as far as it has come, or all of it.
    fn answer(&mut self, given: &mut HttpResponse, is_streamed: bool) -> Result<(), String> {
        let Some(waiting) = self.waiting.take() else { return Ok(()) };
        let promised_len = promised_len(given);
        let mut response = to_response(given.take_beginning())?;
        if is_streamed {
            if let Some(len) = promised_len {
                response.headers_mut().insert(header::CONTENT_LENGTH, len.into());
            }
            let streamed = Rc::new(Streamed::new(promised_len));
            streamed.push(std::mem::take(response.body_mut()).into_data());
            self.streamed = Some(streamed);
        }
        self.guard = Some(self.exchange.begin_handler());
        // An error means that the client has gone; then this task is ended.
        let _ = waiting.send(Ok(Answer { response, streamed: self.streamed.clone() }));
        Ok(())
    }

    /// The handler is done. An error is what is wrong with its response.
    fn finish(&mut self, given: HttpResponse) -> Result<(), String> {
        if let Some(waiting) = self.waiting.take() {
            match to_response(given) {
                Ok(response) => drop(waiting.send(Ok(Answer { response, streamed: None }))),
                Err(message) => {
                    self.waiting = Some(waiting);
                    return Err(message);
                }
            }
        } else if let Some(streamed) = &self.streamed {
            let is_dropped = given.is_dropped;
            streamed.push(given.body.into());
            streamed.end(if is_dropped { End::BrokenOff } else { End::Proper });
        }
        Ok(())
    }

    /// The handler has failed, or was given up: behind the beginning of an answer nothing can be said but that it is not all.
    fn fail(&mut self, error: HttpError, program: &Program, id: ProcedureId) {
        match self.waiting.take() {
            Some(waiting) => drop(waiting.send(Err(error))),
            None => {
                let error = error.of_call(program, id);
                if let Some(streamed) = &self.streamed {
                    streamed.push(error.into_sent());
                    streamed.end(End::BrokenOff);
                }
            }
        }
    }
}

/// The length of the body that the handler has promised, if it has.
fn promised_len(given: &HttpResponse) -> Option<u64> {
    let is_length = |(name, _): &&(String, Vec<u8>)| name == "content-length";
    let (_, value) = given.headers.iter().find(is_length)?;
    std::str::from_utf8(value).ok()?.parse().ok()
}
