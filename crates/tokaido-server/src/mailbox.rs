//! What other threads have for one connection: bytes to push to its client (messages of a channel,
//! invalidations, …), and wake-ups for a waiting request.
//!
//! Pushed messages come between replies, never inside one, in the order in which they were pushed.
//! The connection's task sends them after the replies that it has; a conversation that is away,
//! with the writer or in the pool, does not hold them up. A protocol that subscribes in the middle
//! of a run calls [`Mailbox::hold`], so that no message overtakes the replies of that run.

use std::{
    fmt,
    future::poll_fn,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
};

/// A handle to one connection, for any thread.
#[derive(Clone)]
pub struct Mailbox(Arc<Inner>);

/// The connection's end of its mailbox. Dropping it closes the mailbox.
pub(crate) struct MailboxReceiver {
    inner: Arc<Inner>,
    /// Whether something was left in the mailbox until the conversation is back.
    left_some: bool,
}

struct Inner {
    /// Whether something has arrived since the receiver last took; changed only under the lock.
    arrived: AtomicBool,
    bytes_max: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pushed: Vec<u8>,
    /// What is pushed from this place on waits for the replies of the current run.
    held_from: Option<usize>,
    woken: bool,
    end: Option<PushError>,
    waker: Option<Waker>,
}

/// A message was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// The client takes less than is pushed to it; its connection is being closed.
    #[error("the client takes less than is pushed to it; its connection is closed")]
    Full,
    /// Someone asked for the connection to be closed.
    #[error("the connection was closed by CLIENT KILL")]
    Killed,
    /// The connection has ended.
    #[error("the connection has ended")]
    Closed,
}

/// A mailbox that holds this many bytes, and its other end.
pub(crate) fn mailbox(bytes_max: usize) -> (Mailbox, MailboxReceiver) {
    let arrived = AtomicBool::new(false);
    let inner = Arc::new(Inner { arrived, bytes_max, state: Mutex::default() });
    (Mailbox(inner.clone()), MailboxReceiver { inner, left_some: false })
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mailbox")
    }
}

impl Mailbox {
    /// Sends a whole message of the protocol to the client.
    ///
    /// # Errors
    /// If the connection has ended, or is ended now because its unsent messages exceed the limit.
    pub fn push(&self, message: &[u8]) -> Result<(), PushError> {
        let mut state = self.0.lock();
        if let Some(end) = state.end {
            return Err(end);
        }
        let result = if state.pushed.len() + message.len() > self.0.bytes_max {
            state.pushed = Vec::new();
            state.end = Some(PushError::Full);
            Err(PushError::Full)
        } else {
            state.pushed.extend_from_slice(message);
            Ok(())
        };
        self.0.announce(state);
        result
    }

    /// Runs the waiting request again. If none waits, nothing happens.
    pub fn wake(&self) {
        let mut state = self.0.lock();
        state.woken = true;
        self.0.announce(state);
    }

    /// Closes the connection. Returns whether it was open.
    pub fn kill(&self) -> bool {
        let mut state = self.0.lock();
        let was_open = state.end.is_none();
        if was_open {
            state.pushed = Vec::new();
            state.end = Some(PushError::Killed);
            self.0.announce(state);
        }
        was_open
    }

    /// Whether messages are accepted.
    pub(crate) fn is_open(&self) -> bool {
        self.0.lock().end.is_none()
    }

    /// Keeps what is pushed from now on behind the replies of the current run. The protocol calls
    /// this during that run.
    pub fn hold(&self) {
        let mut state = self.0.lock();
        let len = state.pushed.len();
        state.held_from.get_or_insert(len);
        self.0.announce(state);
    }
}

impl MailboxReceiver {
    /// Waits until something arrives or, if there is no room for it, until the mailbox is full.
    pub(crate) async fn arrived(&self, has_room: bool) {
        poll_fn(|cx| self.inner.poll_arrived(cx, has_room)).await;
    }

    /// Fails if more was pushed than the mailbox holds.
    pub(crate) fn check(&self) -> Result<(), PushError> {
        self.inner.lock().end.map_or(Ok(()), Err)
    }

    /// Takes what may be sent while the conversation is away.
    ///
    /// # Errors
    /// If more was pushed than the mailbox holds.
    pub(crate) fn take_some(&mut self, output: &mut Vec<u8>) -> Result<(), PushError> {
        let mut state = self.inner.lock();
        self.inner.arrived.store(false, Ordering::Relaxed);
        if let Some(end) = state.end {
            return Err(end);
        }
        let rest = match state.held_from {
            Some(from) => state.pushed.split_off(from),
            None => Vec::new(),
        };
        output.extend_from_slice(&std::mem::replace(&mut state.pushed, rest));
        state.held_from = state.held_from.map(|_| 0);
        self.left_some = state.woken || state.held_from.is_some();
        Ok(())
    }

    /// Takes everything, once all replies of the conversation are in `output`. Returns whether there
    /// was a wake-up.
    ///
    /// # Errors
    /// If more was pushed than the mailbox holds.
    pub(crate) fn take_all(&mut self, output: &mut Vec<u8>) -> Result<bool, PushError> {
        if !self.left_some && !self.inner.arrived.load(Ordering::Acquire) {
            return Ok(false);
        }
        let mut state = self.inner.lock();
        state.held_from = None;
        let woken = std::mem::take(&mut state.woken);
        drop(state);
        self.take_some(output)?;
        Ok(woken)
    }
}

impl Drop for MailboxReceiver {
    fn drop(&mut self) {
        *self.inner.lock() = State { end: Some(PushError::Closed), ..State::default() };
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notifies the receiver.
    fn announce(&self, mut state: MutexGuard<'_, State>) {
        self.arrived.store(true, Ordering::Release);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn poll_arrived(&self, cx: &Context<'_>, has_room: bool) -> Poll<()> {
        if has_room && self.arrived.load(Ordering::Acquire) {
            return Poll::Ready(());
        }
        let mut state = self.lock();
        if state.end.is_some() || has_room && self.arrived.load(Ordering::Relaxed) {
            return Poll::Ready(());
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_waits_for_the_conversation() {
        let (mailbox, mut receiver) = mailbox(100);
        mailbox.push(b"a").expect("there is room");
        mailbox.hold();
        mailbox.push(b"b").expect("there is room");
        let mut sent = Vec::new();
        receiver.take_some(&mut sent).expect("it is open");
        mailbox.push(b"c").expect("there is room");
        mailbox.wake();
        receiver.take_some(&mut sent).expect("it is open");
        assert_eq!(sent, b"a");
        sent.extend_from_slice(b" reply ");
        assert_eq!(receiver.take_all(&mut sent), Ok(true));
        mailbox.push(b"d").expect("there is room");
        receiver.take_some(&mut sent).expect("it is open");
        assert_eq!(sent, b"a reply bcd");
        assert_eq!(receiver.take_all(&mut sent), Ok(false));
    }

    #[test]
    fn a_mailbox_is_full_for_good_and_then_closed() {
        let (mailbox, mut receiver) = mailbox(3);
        assert_eq!(mailbox.push(b"abc"), Ok(()));
        receiver.take_some(&mut Vec::new()).expect("it is open");
        assert_eq!(mailbox.push(b"abc"), Ok(()));
        assert_eq!(mailbox.push(b"d"), Err(PushError::Full));
        let mut sent = Vec::new();
        assert_eq!(receiver.take_all(&mut sent), Err(PushError::Full));
        assert_eq!((sent.len(), mailbox.push(b"")), (0, Err(PushError::Full)));
        drop(receiver);
        assert_eq!(mailbox.push(b""), Err(PushError::Closed));
    }
}
