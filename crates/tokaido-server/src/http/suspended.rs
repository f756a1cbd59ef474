//! A handler that has begun to wait: what it needs to go on, and what its client gets in the meantime.

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

/// A response that is not flushed is sent while its handler waits once it has this many bytes, as
/// in nginx, whose option `postpone_output` has this size.
const POSTPONED_LEN_MAX: usize = 1460;

/// A waiting handler of a worker, with everything that its next step needs.
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

/// What a client gets: the whole answer, or the head of a streamed one.
struct Answer {
    response: Response<Reply>,
    streamed: Option<Rc<Streamed>>,
}

/// The client to answer, and how much has been sent to it so far.
struct Client {
    exchange: Rc<Exchange>,
    /// Whether it has asked for the head only.
    wants_head: bool,
    /// Whether it can receive a body without being told its length first.
    may_stream: bool,
    /// Set until the client has the answer, or its beginning.
    waiting: Option<oneshot::Sender<Result<Answer, HttpError>>>,
    streamed: Option<Rc<Streamed>>,
    /// Held from the moment at which the client has the answer, or its beginning.
    guard: Option<HandlerGuard>,
}

/// How much of an answer is sent while its handler waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sent {
    /// All of it: the handler has said that nothing follows.
    Whole,
    /// The head: all that a client gets of an answer without a body.
    Head,
    /// What there is so far; the rest follows.
    Beginning,
}

/// The task in which a handler goes on. Dropping this aborts it, unless it was let go.
struct Task(Option<JoinHandle<()>>);

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(task) = self.0.take() {
            task.abort();
        }
    }
}

impl Suspended {
    /// Goes on with the handler until it is done. Returns the answer earlier if the handler sends
    /// some of it, or ends it, before it waits again.
    pub(super) async fn answer(
        self,
        given: HttpResponse,
        exchange: &Rc<Exchange>,
    ) -> Result<Response<Reply>, HttpError> {
        let (waiting, answered) = oneshot::channel();
        // An HTTP/1.0 client would take the end of the connection for that of the body.
        let wants_head = self.parts.method == Method::HEAD;
        let may_stream = !wants_head && self.parts.version == Version::HTTP_11;
        let client = Client {
            exchange: Rc::clone(exchange),
            wants_head,
            may_stream,
            waiting: Some(waiting),
            streamed: None,
            guard: None,
        };
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

    /// Waits, and then goes on with the handler until it waits again or is done.
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
            None => {
                let is_whole = client.waiting.is_none();
                (so_far.progress.has_begun, so_far.progress.is_whole) = (is_whole, is_whole);
            }
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
        self.wait.goes_on(given.waiting);
        Ok(given)
    }

    /// The error of an answer that cannot be sent.
    fn failed(&self, message: String) -> HttpError {
        failed_response(&self.worker, &self.program, self.id, message)
    }
}

impl Client {
    /// Sends what is due while the handler waits. The error is what is wrong with the response.
    fn send(&mut self, given: &mut HttpResponse) -> Result<(), String> {
        let is_flushed = std::mem::take(&mut given.is_flushed);
        let is_bodiless = self.wants_head || matches!(given.status, 204 | 304);
        let is_due = !is_bodiless
            && (is_flushed
                || (self.may_stream && given.is_sent && given.body.len() >= POSTPONED_LEN_MAX));
        match &self.streamed {
            Some(streamed) if is_due || given.is_complete => {
                streamed.push(given.take_body());
                if given.is_complete {
                    streamed.end(End::Proper);
                }
                Ok(())
            }
            None if given.is_complete && !given.is_dropped => self.answer(given, Sent::Whole),
            None if is_bodiless && given.is_sent => self.answer(given, Sent::Head),
            None if is_due => self.answer(given, Sent::Beginning),
            _ => Ok(()),
        }
    }

    /// Sends the answer, or part of it. The error is what is wrong with the response; then nothing is sent.
    fn answer(&mut self, given: &mut HttpResponse, sent: Sent) -> Result<(), String> {
        if self.waiting.is_none() {
            return Ok(());
        }
        let promised_len = promised_len(given);
        let mut response = to_response(given.take_beginning())?;
        if sent != Sent::Whole {
            let body = std::mem::take(response.body_mut()).into_data();
            if let Some(len) = promised_len.filter(|_| sent == Sent::Beginning || self.wants_head) {
                response.headers_mut().insert(header::CONTENT_LENGTH, len.into());
            }
            if sent == Sent::Beginning {
                let streamed = Rc::new(Streamed::new(promised_len));
                streamed.push(body);
                self.streamed = Some(streamed);
            }
        }
        self.guard = Some(self.exchange.begin_handler());
        if let Some(waiting) = self.waiting.take() {
            // An error means that the client has gone; then this task is ended.
            let _ = waiting.send(Ok(Answer { response, streamed: self.streamed.clone() }));
        }
        Ok(())
    }

    /// Completes the answer of a handler that is done. The error is what is wrong with its response.
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
            streamed.push(given.body);
            streamed.end(if is_dropped { End::BrokenOff } else { End::Proper });
        }
        Ok(())
    }

    /// Fails the answer: its handler failed or was given up. If it has begun, all that can be said is that it is incomplete.
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

/// The length of the body that the handler has promised, if any.
fn promised_len(given: &HttpResponse) -> Option<u64> {
    let is_length = |(name, _): &&(String, Vec<u8>)| name == "content-length";
    let (_, value) = given.headers.iter().find(is_length)?;
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, http::exchange::Paths};

    #[test]
    fn a_client_is_still_to_be_answered_when_its_answer_is_none_that_can_be_sent() {
        for status in [200, 304] {
            let exchange = Exchange::new(&Limits::default(), &Principal::Anonymous, Paths::Own);
            let (waiting, mut answered) = oneshot::channel();
            let mut client = Client {
                exchange: Rc::new(exchange),
                wants_head: false,
                may_stream: true,
                waiting: Some(waiting),
                streamed: None,
                guard: None,
            };
            let mut given = HttpResponse::default();
            given.headers.push(("no name".to_owned(), Vec::new()));
            (given.status, given.is_sent, given.is_flushed) = (status, true, true);
            assert!(client.send(&mut given).is_err());
            assert!(client.waiting.is_some() && client.streamed.is_none(), "{status}");
            assert!(answered.try_recv().is_err(), "{status}");
        }
    }
}
