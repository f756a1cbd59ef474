//! A transaction that was submitted: what it came to, for whoever awaits it.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Condvar, Mutex, PoisonError},
    task::{Context, Poll, Waker},
};

use crate::{CommitError, GroupWriter, TransactError, WriteError, WriteTransaction, mutex::lock};

use super::{
    job::{self, Outcome},
    shared_writer::SharedWriter,
};

/// A transaction on its way to the disk; see [`Embedded::submit`](super::Embedded::submit).
///
/// Await it, or [`wait`](Self::wait) for it, to learn what it came to: until then nobody knows
/// whether it is durable. Dropped, it takes place all the same.
#[must_use = "only its outcome tells whether the transaction took place"]
pub struct Pending<T, E> {
    slot: Arc<Slot<T, E>>,
    writer: Arc<SharedWriter>,
}

/// What the leader and the one who waits share.
struct Slot<T, E> {
    state: Mutex<State<T, E>>,
    told: Condvar,
}

struct State<T, E> {
    ran: Option<Outcome<T, E>>,
    flushed: Option<Result<(), CommitError>>,
    /// Of the task that awaits it.
    waker: Option<Waker>,
    /// A thread waits for it. To wake nobody is a call to the system all the same.
    has_thread: bool,
}

/// A submitted transaction, for the leader.
pub(super) trait Task: Send {
    fn run(&mut self, writer: &mut GroupWriter);

    /// Tells whoever waits; gives the task that is to be woken. Called once, after `run` or in its
    /// place.
    fn tell(&self, flushed: Result<(), CommitError>) -> Option<Waker>;
}

struct Submitted<B, T, E> {
    body: B,
    slot: Arc<Slot<T, E>>,
}

impl<B, T: Send, E: Send> Task for Submitted<B, T, E>
where
    B: FnMut(&mut dyn WriteTransaction) -> Result<T, E> + Send,
{
    fn run(&mut self, writer: &mut GroupWriter) {
        let ran = job::run(writer, &mut self.body);
        lock(&self.slot.state).ran = Some(ran);
    }

    fn tell(&self, flushed: Result<(), CommitError>) -> Option<Waker> {
        let (waker, has_thread) = {
            let mut state = lock(&self.slot.state);
            state.flushed = Some(flushed);
            (state.waker.take(), state.has_thread)
        };
        if has_thread {
            self.slot.told.notify_one();
        }
        waker
    }
}

impl<T: Send + 'static, E: Send + 'static> Pending<T, E> {
    /// A transaction, and what the group is to run for it.
    pub(super) fn new(
        writer: &Arc<SharedWriter>,
        body: impl FnMut(&mut dyn WriteTransaction) -> Result<T, E> + Send + 'static,
    ) -> (Self, Box<dyn Task>) {
        let state = Mutex::new(State { ran: None, flushed: None, waker: None, has_thread: false });
        let slot = Arc::new(Slot { state, told: Condvar::new() });
        let task = Box::new(Submitted { body, slot: Arc::clone(&slot) });
        (Self { slot, writer: Arc::clone(writer) }, task)
    }

    /// One that was not accepted.
    pub(super) fn refuse(&self, error: WriteError) {
        let mut state = lock(&self.slot.state);
        state.ran = Some(Ok(Err(TransactError::Write(error))));
        state.flushed = Some(Ok(()));
    }
}

impl<T, E> Pending<T, E> {
    /// Waits, as [`transact`](super::Embedded::transact) does.
    ///
    /// # Errors
    /// As of `transact`. [`WriteError::WriterBusy`] from within another transaction, which would
    /// wait for itself; the submitted one takes place all the same.
    pub fn wait(self) -> Result<T, TransactError<E>> {
        let mut state = lock(&self.slot.state);
        loop {
            if let Some(flushed) = state.flushed.take() {
                return job::result(state.ran.take(), flushed);
            }
            if self.writer.is_led_by_this_thread() {
                return Err(TransactError::Write(WriteError::WriterBusy));
            }
            state.has_thread = true;
            state = self.slot.told.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<T, E> Future for Pending<T, E> {
    type Output = Result<T, TransactError<E>>;

    /// Polled again after it has given its outcome, it stays pending.
    ///
    /// # Panics
    /// With the panic of the body.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = lock(&self.slot.state);
        if let Some(flushed) = state.flushed.take() {
            let ran = state.ran.take();
            // A panic of the body shall not poison the state.
            drop(state);
            return Poll::Ready(job::result(ran, flushed));
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }
}
