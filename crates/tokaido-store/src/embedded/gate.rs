//! Where the threads of a batch wait for the outcome.

use std::sync::{Condvar, Mutex, PoisonError};

use crate::{CommitError, mutex::lock};

/// All but the first thread of a batch are woken by one system call: waking them one by one takes
/// longer than the flush.
#[derive(Default)]
pub(super) struct Gate {
    lock: Mutex<()>,
    first_told: Condvar,
    rest_told: Condvar,
}

/// Where a thread finds its message once its transaction was run, or it is its turn to lead.
#[derive(Default)]
pub(super) struct Ticket {
    message: Mutex<Option<Message>>,
}

/// What a waiting thread is told.
pub(super) enum Message {
    /// It must lead; its job is still in the queue.
    Lead,
    /// Its job is done, with this outcome of the flush.
    Done(Result<(), CommitError>),
}

impl Ticket {
    /// Leaves a message. The caller must wake the thread afterwards.
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
        // A thread that has not seen its message yet is waiting once this has the lock.
        drop(lock(&self.lock));
        self.first_told.notify_one();
    }

    pub(super) fn wake_all(&self) {
        self.wake_first();
        self.rest_told.notify_all();
    }
}
