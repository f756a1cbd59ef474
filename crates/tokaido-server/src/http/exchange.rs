//! What the socket of an HTTP connection and the requests on it tell each other.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use tokaido_wire::http::{FramingError, HeadLimits};
use tokio::sync::Notify;

use super::{streamed::Streamed, tyrant::Memory};
use crate::{Limits, access::Principal, kyoto::Cursors};

/// One HTTP connection, between the code that reads it and the code that answers requests.
pub(super) struct Exchange {
    head_limits: Cell<HeadLimits>,
    refused: Cell<Option<FramingError>>,
    timeout_told: Cell<bool>,
    /// The number of requests that have begun and are not answered.
    open: Cell<usize>,
    /// Whether the last byte received was the last one of a request.
    between_requests: Cell<bool>,
    /// Whether part of an answer is still unsent.
    unsent: Cell<bool>,
    /// The answer that is sent while its handler goes on.
    streamed: RefCell<Option<Rc<Streamed>>>,
    /// Whether a handler goes on whose client has its answer, or the beginning of it.
    has_handler: Cell<bool>,
    handler_ended: Notify,
    paths: Paths,
    cursors: RefCell<Cursors>,
    tyrant: Memory,
}

/// A handler that goes on after its answer.
pub(super) struct HandlerGuard(Rc<Exchange>);

impl Drop for HandlerGuard {
    fn drop(&mut self) {
        self.0.has_handler.set(false);
        self.0.handler_ended.notify_one();
    }
}

/// What paths stand for on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paths {
    /// The server's own API, and the routes of procedures.
    Own,
    /// Kyoto Tycoon's records.
    KyotoTycoon,
    /// Tokyo Tyrant's records.
    TokyoTyrant,
}

impl Exchange {
    /// For a client that is `newcomer` before it has sent anything.
    pub(super) fn new(limits: &Limits, newcomer: &Principal, paths: Paths) -> Self {
        let len_max = match newcomer.is_anonymous() {
            false => limits.http_head_bytes_max,
            true => limits.http_head_bytes_max.min(limits.anonymous_request_bytes_max),
        };
        let head_limits = HeadLimits { len_max, headers_max: limits.http_headers_max };
        Self {
            head_limits: Cell::new(head_limits),
            refused: Cell::new(None),
            timeout_told: Cell::new(false),
            open: Cell::new(0),
            between_requests: Cell::new(true),
            unsent: Cell::new(false),
            streamed: RefCell::default(),
            has_handler: Cell::new(false),
            handler_ended: Notify::new(),
            paths,
            cursors: RefCell::default(),
            tyrant: Memory::default(),
        }
    }

    pub(super) fn paths(&self) -> Paths {
        self.paths
    }

    /// The cursors of Kyoto Tycoon's procedures.
    pub(super) fn cursors(&self) -> &RefCell<Cursors> {
        &self.cursors
    }

    /// Tokyo Tyrant's memory.
    pub(super) fn tyrant(&self) -> &Memory {
        &self.tyrant
    }

    /// How large the next head may be.
    pub(super) fn head_limits(&self) -> HeadLimits {
        self.head_limits.get()
    }

    /// Notes that the client has sent a request as `principal`. A client that has given the
    /// password once may send longer heads from then on.
    pub(super) fn came_from(&self, principal: &Principal, limits: &Limits) {
        if !principal.is_anonymous() {
            let len_max = limits.http_head_bytes_max;
            self.head_limits.set(HeadLimits { len_max, ..self.head_limits.get() });
        }
    }

    /// Notes why a request is not passed on.
    pub(super) fn refuse(&self, error: FramingError) {
        self.refused.set(Some(error));
    }

    /// What is wrong with the body being read, if that is why it ends too early.
    pub(super) fn broken_body(&self) -> Option<FramingError> {
        self.refused.get().filter(|error| *error == FramingError::Chunk)
    }

    /// Why a request was not passed on. An error within a body is not included: its request was
    /// passed on, and is answered like any other.
    pub(super) fn refused(&self) -> Option<FramingError> {
        self.refused.get().filter(|error| *error != FramingError::Chunk)
    }

    /// Notes that a request is to be answered.
    pub(super) fn begin(&self) {
        self.open.update(|open| open + 1);
    }

    /// Notes that a request has its answer.
    pub(super) fn end(&self) {
        self.open.update(|open| open - 1);
    }

    /// Notes whether the bytes read so far end between two requests.
    pub(super) fn come_to(&self, between_requests: bool) {
        self.between_requests.set(between_requests);
    }

    /// Sets whether part of an answer is still unsent.
    pub(super) fn has_unsent(&self, unsent: bool) {
        self.unsent.set(unsent);
        if !unsent && let Some(streamed) = &*self.streamed.borrow() {
            streamed.written();
        }
    }

    /// Notes that this many bytes of an answer were written.
    pub(super) fn wrote(&self, len: usize) {
        if let Some(streamed) = &*self.streamed.borrow() {
            streamed.wrote(len);
        }
    }

    /// Begins an answer that is sent while its handler goes on. It is not complete before `end_stream`.
    pub(super) fn begin_stream(&self, streamed: &Rc<Streamed>) {
        self.begin();
        *self.streamed.borrow_mut() = Some(Rc::clone(streamed));
    }

    /// Ends that answer: it was taken to its end, or no more of it can be sent.
    pub(super) fn end_stream(&self) {
        *self.streamed.borrow_mut() = None;
        self.end();
    }

    pub(super) fn streamed(&self) -> Option<Rc<Streamed>> {
        self.streamed.borrow().clone()
    }

    pub(super) fn is_streaming(&self) -> bool {
        self.streamed.borrow().is_some()
    }

    /// Notes that a handler goes on after its answer, until the guard is dropped.
    pub(super) fn begin_handler(self: &Rc<Self>) -> HandlerGuard {
        self.has_handler.set(true);
        HandlerGuard(Rc::clone(self))
    }

    /// Waits until no handler of an earlier request goes on: a connection runs one at a time,
    /// however many requests it sends.
    pub(super) async fn until_no_handler(&self) {
        while self.has_handler.get() {
            self.handler_ended.notified().await;
        }
    }

    /// Whether all requests received have been answered, and the answers sent.
    pub(super) fn is_idle(&self) -> bool {
        self.open.get() == 0 && self.between_requests.get() && !self.unsent.get()
    }

    /// Notes that the client has been told that the time for a request is over.
    pub(super) fn tell_of_timeout(&self) {
        self.timeout_told.set(true);
    }

    pub(super) fn has_told_of_timeout(&self) -> bool {
        self.timeout_told.get()
    }
}
