//! A response that is sent while its handler goes on: the handler's side adds to it, and hyper takes from it.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokaido_script::Progress;
use tokio::{sync::Notify, time::Instant};

use super::{body::Reply, exchange::Exchange};
use crate::connection::{Connection, Phase};

/// Up to this length, the last queued piece is extended by what is added next, so that many small
/// pieces take little more memory than their bytes.
const JOINED_LEN_MAX: usize = 16 << 10;

/// What was added and has not been sent yet. The virtual machine is told of it, and limits it.
#[derive(Debug)]
pub(super) struct Streamed {
    pieces: RefCell<VecDeque<Vec<u8>>>,
    queued_len: Cell<usize>,
    /// The length of what hyper has taken and may not have written yet.
    taken_len: Cell<usize>,
    /// Whether something is unsent, if only the head.
    has_unsent: Cell<bool>,
    end: Cell<Option<End>>,
    /// The length that the handler has promised, and how much of the body hyper has taken.
    promised_len: Option<u64>,
    passed_len: Cell<u64>,
    /// hyper takes no more: the client has gone, or has all that was promised.
    is_over: Cell<bool>,
    is_gone: Cell<bool>,
    /// When the client was last seen to take something.
    left_at: Cell<Instant>,
    /// The waker of hyper, if it waits for more.
    taker: RefCell<Option<Waker>>,
    /// Tells the handler's side that something has been sent, or that the client has gone.
    changed: Notify,
}

/// What follows the last piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Proper,
    /// The connection breaks off, so that no client takes an incomplete body as complete.
    BrokenOff,
}

impl Streamed {
    /// An answer that begins, with the length that the handler has promised, if any.
    pub(super) fn new(promised_len: Option<u64>) -> Self {
        Self {
            pieces: RefCell::default(),
            queued_len: Cell::new(0),
            taken_len: Cell::new(0),
            has_unsent: Cell::new(true),
            end: Cell::new(None),
            promised_len,
            passed_len: Cell::new(0),
            is_over: Cell::new(false),
            is_gone: Cell::new(false),
            left_at: Cell::new(Instant::now()),
            taker: RefCell::default(),
            changed: Notify::new(),
        }
    }

    pub(super) fn push(&self, piece: Vec<u8>) {
        if piece.is_empty() || self.is_over.get() || self.end.get().is_some() {
            return;
        }
        self.queued_len.update(|len| len + piece.len());
        let mut pieces = self.pieces.borrow_mut();
        match pieces.back_mut() {
            Some(last) if last.len() + piece.len() <= JOINED_LEN_MAX => last.extend(piece),
            _ => pieces.push_back(piece),
        }
        drop(pieces);
        self.has_unsent.set(true);
        self.wake_taker();
    }

    /// Ends the answer. The first end stays: a handler that fails after a whole answer takes nothing of it back.
    pub(super) fn end(&self, end: End) {
        if self.end.get().is_none() {
            self.end.set(Some(end));
            self.wake_taker();
        }
    }

    fn wake_taker(&self) {
        if let Some(taker) = self.taker.take() {
            taker.wake();
        }
    }

    /// Tells the handler's response how much of it has been sent.
    pub(super) fn tell(&self, progress: &mut Progress) {
        progress.has_begun = true;
        progress.unsent_len = self.queued_len.get() + self.taken_len.get();
        progress.has_unsent = self.has_unsent.get();
        progress.is_gone = self.is_gone.get();
    }

    /// When the client was last seen to take something.
    pub(super) fn left_at(&self) -> Instant {
        self.left_at.get()
    }

    /// Waits until everything has been sent, or the client has gone.
    pub(super) async fn sent(&self) {
        while self.has_unsent.get() {
            self.changed.notified().await;
        }
    }

    /// Notes that this many bytes of what hyper has taken, including its framing, were written.
    pub(super) fn wrote(&self, len: usize) {
        self.taken_len.update(|taken_len| taken_len.saturating_sub(len));
        self.left_at.set(Instant::now());
    }

    /// Notes that everything hyper has taken was written.
    pub(super) fn written(&self) {
        if !self.has_unsent.get() {
            return;
        }
        self.taken_len.set(0);
        self.left_at.set(Instant::now());
        if self.queued_len.get() == 0 {
            self.has_unsent.set(false);
            // The end may have waited for this.
            self.wake_taker();
            self.changed.notify_one();
        }
    }

    /// Notes that hyper takes no more.
    fn take_no_more(&self) {
        let has_all = self.promised_len.is_some_and(|len| self.passed_len.get() >= len);
        self.is_gone.set(!has_all && self.end.get() != Some(End::Proper));
        self.is_over.set(true);
        self.pieces.borrow_mut().clear();
        self.queued_len.set(0);
        self.taken_len.set(0);
        self.has_unsent.set(false);
        self.changed.notify_one();
    }

    fn poll_piece(&self, cx: &Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let Some(piece) = self.pieces.borrow_mut().pop_front() {
            self.queued_len.update(|len| len - piece.len());
            self.taken_len.update(|len| len + piece.len());
            self.passed_len.update(|len| len + piece.len() as u64);
            return Poll::Ready(Some(Ok(Frame::data(piece.into()))));
        }
        match self.end.get() {
            Some(End::Proper) => return Poll::Ready(None),
            // What was sent before the failure goes out first.
            Some(End::BrokenOff) if !self.has_unsent.get() => {
                return Poll::Ready(Some(Err(io::Error::other("the handler failed"))));
            }
            _ => {}
        }
        *self.taker.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// The side that hyper takes from. If this is dropped before the end or the promised length, the client has gone.
pub(super) struct Taking {
    streamed: Rc<Streamed>,
    exchange: Rc<Exchange>,
    connection: Rc<Connection>,
}

impl Taking {
    /// For the answer that has begun on this connection, if it is sent while its handler goes on.
    pub(super) fn of(exchange: &Rc<Exchange>, connection: &Rc<Connection>) -> Option<Self> {
        let streamed = exchange.streamed()?;
        connection.enter(Phase::Working);
        Some(Self { streamed, exchange: exchange.clone(), connection: connection.clone() })
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        self.streamed.take_no_more();
        self.exchange.end_stream();
        self.connection.enter(Phase::Idle);
    }
}

/// The body of a response as hyper sees it.
pub(super) enum Outgoing {
    Reply(Reply),
    Streamed(Taking),
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Self::Reply(reply) => Pin::new(reply).poll_frame(cx),
            Self::Streamed(taking) => taking.streamed.poll_piece(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Reply(reply) => reply.is_end_stream(),
            Self::Streamed(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Reply(reply) => reply.size_hint(),
            Self::Streamed(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_pieces_are_joined_and_large_ones_left_as_they_are() {
        let streamed = Streamed::new(None);
        let large = vec![b'y'; JOINED_LEN_MAX];
        (0..1000).for_each(|_| streamed.push(b"x".to_vec()));
        streamed.push(large.clone());
        streamed.push(b"z".to_vec());
        streamed.end(End::Proper);
        let cx = Context::from_waker(Waker::noop());
        let taken = std::iter::from_fn(|| match streamed.poll_piece(&cx) {
            Poll::Ready(piece) => piece.map(|piece| piece.unwrap().into_data().unwrap()),
            Poll::Pending => panic!("there is an end"),
        });
        assert_eq!(taken.collect::<Vec<_>>(), [vec![b'x'; 1000], large, b"z".to_vec()]);
    }
}
