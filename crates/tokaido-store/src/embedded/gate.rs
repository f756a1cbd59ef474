//! Where the threads of a batch wait to be told.

use std::sync::{Condvar, Mutex, PoisonError};

use crate::{CommitError, mutex::lock};

/// All but the first thread of a batch are woken by one call to the system: to wake them one by
/// one takes longer than the flush.
#[derive(Default)]
pub(super) struct Gate {
    lock: Mutex<()>,
    first_told: Condvar,
    rest_told: Condvar,
}

/// What a thread is told once its transaction was run, or its turn has come to lead.
#[derive(Default)]
pub(super) struct Ticket {
    message: Mutex<Option<Message>>,
}

/// What a waiting thread is told.
pub(super) enum Message {
    /// To lead; its job is still in the queue.
    Lead,
    /// That it is done, and the outcome of the flush.
    Done(Result<(), CommitError>),
}

impl Ticket {
    /// To be followed by waking the thread.
    pub(super) fn leave(&self, message: Message) {
        *lock(&self.message) = Some(message);
    }
}

impl Gate {
    pub(super) fn wait(&self, ticket: &Ticket, is_first: bool) -> Message {
        let told = if is_first { &self.first_told } else { &self.rest_told };
        let mut held = lock(&self.lock);
        loop {
            if let Some(message) = lock(&ticket.message).take() {
                return message;
            }
            held = told.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn wake_first(&self) {
        // Whoever has not seen its message yet waits once this has the lock.
        drop(lock(&self.lock));
        self.first_told.notify_one();
    }

    pub(super) fn wake_all(&self) {
        self.wake_first();
        self.rest_told.notify_all();
    }
}
