//! What the socket of an HTTP connection and the requests on it tell each other.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use tokaido_wire::http::{FramingError, HeadLimits};
use tokio::sync::Notify;

use super::{streamed::Streamed, tyrant::Memory};
use crate::{Limits, access::Principal, kyoto::Cursors};

/// One HTTP connection, between what reads its bytes and what answers its requests.
pub(super) struct Exchange {
    head_limits: Cell<HeadLimits>,
    refused: Cell<Option<FramingError>>,
    timeout_told: Cell<bool>,
    /// Requests that have begun and are not answered.
    open: Cell<usize>,
    /// The last byte that came was the last one of a request.
    between_requests: Cell<bool>,
    /// Part of an answer is still unsent.
    unsent: Cell<bool>,
    /// The answer that leaves while its handler goes on.
    streamed: RefCell<Option<Rc<Streamed>>>,
    /// A handler goes on whose client has its answer, or the beginning of it.
    has_handler: Cell<bool>,
    handler_ended: Notify,
    paths: Paths,
    cursors: RefCell<Cursors>,
    tyrant: Memory,
}

/// A handler that goes on behind its answer.
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
    /// Records, as Kyoto Tycoon has them.
    KyotoTycoon,
    /// Records, as Tokyo Tyrant has them.
    TokyoTyrant,
}

impl Exchange {
    /// With a client that is `newcomer` before it has sent anything.
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

    /// What Tokyo Tyrant remembers.
    pub(super) fn tyrant(&self) -> &Memory {
        &self.tyrant
    }

    /// How large a head may be that comes next.
    pub(super) fn head_limits(&self) -> HeadLimits {
        self.head_limits.get()
    }

    /// The client has sent a request as `principal`. One that has given the password once may send
    /// longer heads from there on.
    pub(super) fn came_from(&self, principal: &Principal, limits: &Limits) {
        if !principal.is_anonymous() {
            let len_max = limits.http_head_bytes_max;
            self.head_limits.set(HeadLimits { len_max, ..self.head_limits.get() });
        }
    }

    /// A request is not passed on.
    pub(super) fn refuse(&self, error: FramingError) {
        self.refused.set(Some(error));
    }

    /// What is wrong with the body that is read, if that is why it ends too early.
    pub(super) fn broken_body(&self) -> Option<FramingError> {
        self.refused.get().filter(|error| *error == FramingError::Chunk)
    }

    /// The request that was not passed on. What went wrong within a body is not here: its request
    /// was passed on, and is answered like any other.
    pub(super) fn refused(&self) -> Option<FramingError> {
        self.refused.get().filter(|error| *error != FramingError::Chunk)
    }

    /// A request is to be answered.
    pub(super) fn begin(&self) {
        self.open.update(|open| open + 1);
    }

    /// It has an answer.
    pub(super) fn end(&self) {
        self.open.update(|open| open - 1);
    }

    /// What was read goes up to here: between two requests, or not.
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

    /// So many bytes of an answer were written.
    pub(super) fn wrote(&self, len: usize) {
        if let Some(streamed) = &*self.streamed.borrow() {
            streamed.wrote(len);
        }
    }

    /// An answer begins that leaves while its handler goes on. It is not complete before `end_stream`.
    pub(super) fn begin_stream(&self, streamed: &Rc<Streamed>) {
        self.begin();
        *self.streamed.borrow_mut() = Some(Rc::clone(streamed));
    }

    /// It was taken to its end, or no more of it can be sent.
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

    /// A handler goes on behind its answer, until what this gives is dropped.
    pub(super) fn begin_handler(self: &Rc<Self>) -> HandlerGuard {
        self.has_handler.set(true);
        HandlerGuard(Rc::clone(self))
    }

    /// Waits until no handler of an earlier request goes on: a connection runs one at a time, however many requests it
    /// sends.
    pub(super) async fn until_no_handler(&self) {
        while self.has_handler.get() {
            self.handler_ended.notified().await;
        }
    }

    /// Whether all requests that have come are answered, and the answers sent.
    pub(super) fn is_idle(&self) -> bool {
        self.open.get() == 0 && self.between_requests.get() && !self.unsent.get()
    }

    /// A request whose time was over has been told so.
    pub(super) fn tell_of_timeout(&self) {
        self.timeout_told.set(true);
    }

    pub(super) fn has_told_of_timeout(&self) -> bool {
        self.timeout_told.get()
    }
}
