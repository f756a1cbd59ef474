//! Group commit among threads: transactions run one after another, and whoever finds nobody
//! waiting behind it flushes for all that ran since the last flush.
//!
//! Invariant: a thread that ran a transaction returns only after the flush that covers it, with the
//! outcome of that flush. Invariant: when the last thread leaves, no transaction is unflushed, and
//! the store's writer is given back.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::{
    CommitError, Store, TransactError, WriteError, WriteTransaction, Writer,
    limits::CONFLICT_ATTEMPTS_MAX,
};

/// Most transactions that one flush covers, since each of them waits for all the others.
const GROUP_MAX: usize = 1024;

/// The threads that write to one store.
#[derive(Default)]
pub(super) struct Group {
    /// Threads that are about to run a transaction: one of them will see to the flush.
    arriving: AtomicUsize,
    /// The mark of the thread that runs a transaction, or zero.
    running: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Taken with the first transaction of a group, and given back with its flush, so that a store
    /// at rest is pinned by nobody.
    writer: Option<Box<dyn Writer>>,
    members: usize,
    outcome: Arc<Outcome>,
}

/// What became of one group, for those who wait for it.
#[derive(Default)]
struct Outcome {
    result: Mutex<Option<Result<(), CommitError>>>,
    known: Condvar,
}

impl Outcome {
    fn set(&self, result: Result<(), CommitError>) {
        *lock(&self.result) = Some(result);
        self.known.notify_all();
    }

    fn wait(&self) -> Result<(), CommitError> {
        let mut result = lock(&self.result);
        loop {
            match &*result {
                Some(result) => return result.clone(),
                None => result = self.known.wait(result).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// What a thread's own transaction came to, before the flush.
enum Ran<T, E> {
    /// It is part of the group.
    Kept(T),
    /// It left nothing behind.
    Not(TransactError<E>),
    /// It took the whole group with it.
    Lost(CommitError),
}

impl Group {
    pub(super) fn transact<T, E>(
        &self,
        store: &dyn Store,
        mut body: impl FnMut(&mut dyn WriteTransaction) -> Result<T, E>,
    ) -> Result<T, TransactError<E>> {
        self.join(store, |writer| run(writer, &mut body))
    }

    pub(super) fn remove_expired(
        &self,
        store: &dyn Store,
        limit: usize,
    ) -> Result<usize, TransactError<WriteError>> {
        self.join(store, |writer| {
            // Should it fail, its error does not tell whether the group is lost with it. So what
            // others wait for is made durable first.
            if let Err(error) = writer.flush() {
                return Ran::Lost(error);
            }
            match writer.remove_expired(limit) {
                Ok(removed) => Ran::Kept(removed),
                Err(error) => Ran::Not(TransactError::Write(error)),
            }
        })
    }

    /// Runs `work` when it is this thread's turn, and returns when what it did is durable.
    fn join<T, E>(
        &self,
        store: &dyn Store,
        work: impl FnOnce(&mut dyn Writer) -> Ran<T, E>,
    ) -> Result<T, TransactError<E>> {
        let mark = thread_mark();
        if self.running.load(Ordering::Relaxed) == mark {
            return Err(TransactError::Write(WriteError::WriterBusy));
        }
        self.arriving.fetch_add(1, Ordering::Relaxed);
        let mut state = lock(&self.state);
        self.arriving.fetch_sub(1, Ordering::Relaxed);

        self.running.store(mark, Ordering::Relaxed);
        let ran = catch_unwind(AssertUnwindSafe(|| match state.writer(store) {
            Ok(writer) => work(writer),
            Err(error) => Ran::Not(TransactError::Write(error)),
        }));
        self.running.store(0, Ordering::Relaxed);

        let ran = match ran {
            Ok(ran) => ran,
            Err(panic) => {
                let taken_back = state.writer.as_mut().map_or(Ok(()), |writer| writer.rollback());
                if let Err(error) = taken_back {
                    state.end(Err(error));
                }
                self.leave(state);
                resume_unwind(panic);
            }
        };
        match ran {
            Ran::Kept(value) => {
                state.members += 1;
                let outcome = Arc::clone(&state.outcome);
                self.leave(state);
                outcome.wait().map(|()| value).map_err(TransactError::Commit)
            }
            Ran::Not(error) => {
                self.leave(state);
                Err(error)
            }
            Ran::Lost(error) => {
                state.end(Err(error.clone()));
                Err(TransactError::Commit(error))
            }
        }
    }

    /// Flushes, unless one who comes behind will.
    fn leave(&self, mut state: MutexGuard<'_, State>) {
        if self.arriving.load(Ordering::Relaxed) > 0 && state.members < GROUP_MAX {
            return;
        }
        let flushed = state.writer.as_mut().map_or(Ok(()), |writer| writer.flush());
        state.end(flushed);
    }
}

impl State {
    fn writer(&mut self, store: &dyn Store) -> Result<&mut dyn Writer, WriteError> {
        let writer = match self.writer.take() {
            Some(writer) => writer,
            None => store.writer()?,
        };
        Ok(&mut **self.writer.insert(writer))
    }

    /// Ends the group, and tells its members how.
    fn end(&mut self, result: Result<(), CommitError>) {
        self.writer = None;
        self.members = 0;
        std::mem::take(&mut self.outcome).set(result);
    }
}

/// One transaction up to its commit, and again after a conflict.
fn run<T, E>(
    writer: &mut dyn Writer,
    body: &mut impl FnMut(&mut dyn WriteTransaction) -> Result<T, E>,
) -> Ran<T, E> {
    let mut attempt = 1;
    loop {
        let transaction = match writer.begin() {
            Ok(transaction) => transaction,
            Err(error) => return Ran::Not(TransactError::Write(error)),
        };
        let value = match body(transaction) {
            Ok(value) => value,
            Err(error) => {
                return match writer.rollback() {
                    Ok(()) => Ran::Not(TransactError::Body(error)),
                    Err(error) => Ran::Lost(error),
                };
            }
        };
        match writer.commit() {
            Ok(_) => return Ran::Kept(value),
            Err(CommitError::Conflict) if attempt < CONFLICT_ATTEMPTS_MAX => attempt += 1,
            Err(error @ CommitError::Conflict) => return Ran::Not(TransactError::Commit(error)),
            Err(error) => return Ran::Lost(error),
        }
    }
}

/// Tells this thread from all others that live, and is never zero.
fn thread_mark() -> usize {
    thread_local! { static MARK: u8 = const { 0 } }
    MARK.with(|mark| std::ptr::from_ref(mark).addr())
}

/// What a panic may have left behind a lock is whole: bodies are caught before it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
