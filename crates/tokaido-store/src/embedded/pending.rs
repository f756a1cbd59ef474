//! A submitted transaction, and its outcome for the task or thread that awaits it.

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
/// Await it, or [`wait`](Self::wait) for it, to learn the outcome: until then it is unknown whether
/// it is durable. If this is dropped, the transaction takes place all the same.
#[must_use = "only its outcome tells whether the transaction took place"]
pub struct Pending<T, E> {
    slot: Arc<Slot<T, E>>,
    writer: Arc<SharedWriter>,
}

/// What the leader and the waiter share.
struct Slot<T, E> {
    state: Mutex<State<T, E>>,
    told: Condvar,
}

struct State<T, E> {
    ran: Option<Outcome<T, E>>,
    flushed: Option<Result<(), CommitError>>,
    /// The waker of the task that awaits it.
    waker: Option<Waker>,
    /// Whether a thread waits for it. Waking nobody would still cost a system call.
    has_thread: bool,
}

/// A submitted transaction, for the leader.
pub(super) trait Task: Send {
    fn run(&mut self, writer: &mut GroupWriter);

    /// Tells the waiter; returns the waker of the task to wake. Called once, after `run` or in its
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
    /// A transaction, and the task for the group to run.
    pub(super) fn new(
        writer: &Arc<SharedWriter>,
        body: impl FnMut(&mut dyn WriteTransaction) -> Result<T, E> + Send + 'static,
    ) -> (Self, Box<dyn Task>) {
        let state = Mutex::new(State { ran: None, flushed: None, waker: None, has_thread: false });
        let slot = Arc::new(Slot { state, told: Condvar::new() });
        let task = Box::new(Submitted { body, slot: Arc::clone(&slot) });
        (Self { slot, writer: Arc::clone(writer) }, task)
    }

    /// Ends a transaction that was not accepted.
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
    /// As `transact`. [`WriteError::WriterBusy`] from within another transaction, which would wait
    /// for itself; the submitted one takes place all the same.
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

    /// If polled again after it has returned its outcome, it stays pending.
    ///
    /// # Panics
    /// If the body panicked, with the same payload.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = lock(&self.slot.state);
        if let Some(flushed) = state.flushed.take() {
            let ran = state.ran.take();
            // A panic of the body must not poison the state.
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
