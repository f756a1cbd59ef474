//! Group commit among threads: whoever comes first leads. The leader runs its own transaction and
//! those of all who wait, one after another, makes them durable with one flush, and wakes their
//! threads. Then the next who waits leads.
//!
//! That one thread runs the transactions of many is what makes it fast: a lock that goes from
//! thread to thread costs a switch of threads for each transaction, which takes longer than the
//! transaction.
//!
//! Invariant: a thread that asked for a transaction returns only when nobody will use what it lent
//! any more, and with the outcome of the flush that covers its transaction.

use std::{
    collections::VecDeque,
    mem,
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
    queue: Mutex<Queue>,
    /// The mark of the thread that leads, or zero.
    leader: AtomicUsize,
}

#[derive(Default)]
struct Queue {
    /// Those that will be run together; all but the last are full.
    batches: VecDeque<Batch>,
    is_led: bool,
}

/// Transactions for one flush. The thread of the first one leads when its turn comes.
#[derive(Default)]
struct Batch {
    jobs: Vec<Job>,
    gate: Arc<Gate>,
}

/// Where the threads of a batch wait. All but the first are woken by one call to the system: to
/// wake them one by one takes longer than the flush.
#[derive(Default)]
struct Gate {
    lock: Mutex<()>,
    first_called: Condvar,
    rest_called: Condvar,
}

/// One thread's transaction, for the leader to run.
struct Job {
    run: Lent,
    ticket: Arc<Ticket>,
}

/// A closure that lies on the stack of the thread that waits for it. It gets the writer, or why
/// there is none.
struct Lent(*mut (dyn FnMut(Result<&mut dyn Writer, WriteError>) -> Fate + Send));

// SAFETY: the closure is `Send`, and only whoever has the job calls it.
unsafe impl Send for Lent {}

/// What became of a transaction before the flush.
enum Fate {
    /// It is part of the group.
    Kept,
    /// It left nothing behind.
    Gone,
    /// It panicked, and may have left a transaction open.
    Panicked,
    /// The whole group goes with it.
    Lost(CommitError),
}

/// What a thread is told once its transaction was run, or its turn has come to lead.
#[derive(Default)]
struct Ticket {
    call: Mutex<Option<Call>>,
}

/// What a waiting thread is told.
enum Call {
    /// To lead; its job is still in the queue.
    Lead,
    /// That it is done, and the outcome of the flush.
    Done(Result<(), CommitError>),
}

impl Ticket {
    /// To be followed by waking the thread.
    fn call(&self, call: Call) {
        *lock(&self.call) = Some(call);
    }
}

impl Gate {
    fn wait(&self, ticket: &Ticket, is_first: bool) -> Call {
        let called = if is_first { &self.first_called } else { &self.rest_called };
        let mut held = lock(&self.lock);
        loop {
            if let Some(call) = lock(&ticket.call).take() {
                return call;
            }
            held = called.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn wake_first(&self) {
        // Whoever has not seen its call yet waits when this has the lock.
        drop(lock(&self.lock));
        self.first_called.notify_one();
    }

    fn wake_all(&self) {
        self.wake_first();
        self.rest_called.notify_all();
    }
}

/// What a thread's own transaction came to.
enum Ran<T, E> {
    Kept(T),
    Gone(TransactError<E>),
    Lost(CommitError),
}

impl Group {
    pub(super) fn transact<T: Send, E: Send>(
        &self,
        store: &dyn Store,
        mut body: impl FnMut(&mut dyn WriteTransaction) -> Result<T, E> + Send,
    ) -> Result<T, TransactError<E>> {
        self.join(store, |writer| run(writer, &mut body))
    }

    pub(super) fn remove_expired(
        &self,
        store: &dyn Store,
        limit: usize,
    ) -> Result<usize, TransactError<WriteError>> {
        self.join(store, |writer| match writer.remove_expired(limit) {
            Ok(removed) => Ran::Kept(removed),
            // It does not tell whether the group is lost with it; so it is.
            Err(error) => Ran::Lost(CommitError::Failed { message: error.to_string() }),
        })
    }

    /// Has `work` run by whoever leads, and returns when what it did is durable.
    fn join<T: Send, E: Send>(
        &self,
        store: &dyn Store,
        mut work: impl FnMut(&mut dyn Writer) -> Ran<T, E> + Send,
    ) -> Result<T, TransactError<E>> {
        let mark = thread_mark();
        if self.leader.load(Ordering::Relaxed) == mark {
            return Err(TransactError::Write(WriteError::WriterBusy));
        }
        let mut ran = None;
        let mut run = |writer: Result<&mut dyn Writer, WriteError>| {
            let result = catch_unwind(AssertUnwindSafe(|| match writer {
                Ok(writer) => work(writer),
                Err(error) => Ran::Gone(TransactError::Write(error)),
            }));
            let fate = match &result {
                Ok(Ran::Kept(_)) => Fate::Kept,
                Ok(Ran::Gone(_)) => Fate::Gone,
                Ok(Ran::Lost(error)) => Fate::Lost(error.clone()),
                Err(_) => Fate::Panicked,
            };
            ran = Some(result);
            fate
        };
        let outcome = self.queue_up(store, mark, &mut run);
        let failed = |error| Err(TransactError::Commit(error));
        match (ran, outcome) {
            (Some(Ok(Ran::Kept(value))), Ok(())) => Ok(value),
            (Some(Ok(Ran::Kept(_))) | None, Err(error)) => failed(error),
            (Some(Ok(Ran::Gone(error))), _) => Err(error),
            (Some(Ok(Ran::Lost(error))), _) => failed(error),
            (Some(Err(panic)), _) => resume_unwind(panic),
            (None, Ok(())) => unreachable!("a leader runs what it calls done"),
        }
    }

    /// Waits until `run` has been run, and gives the outcome of the flush.
    fn queue_up(
        &self,
        store: &dyn Store,
        mark: usize,
        run: &mut (dyn FnMut(Result<&mut dyn Writer, WriteError>) -> Fate + Send),
    ) -> Result<(), CommitError> {
        let run: *mut (dyn FnMut(Result<&mut dyn Writer, WriteError>) -> Fate + Send + '_) = run;
        // SAFETY: only the lifetime is lengthened. A leader calls it before it says `Done`, and
        // this function does not return, nor unwind, before that.
        let run = Lent(unsafe { mem::transmute::<*mut _, *mut _>(run) });
        let ticket = Arc::new(Ticket::default());
        let (gate, is_first, must_lead) = {
            let mut queue = lock(&self.queue);
            let batch = queue.open_batch();
            let (gate, is_first) = (Arc::clone(&batch.gate), batch.jobs.is_empty());
            batch.jobs.push(Job { run, ticket: Arc::clone(&ticket) });
            (gate, is_first, !mem::replace(&mut queue.is_led, true))
        };
        let call = if must_lead { Call::Lead } else { gate.wait(&ticket, is_first) };
        match call {
            Call::Done(outcome) => outcome,
            Call::Lead => {
                self.leader.store(mark, Ordering::Relaxed);
                self.lead(store);
                match gate.wait(&ticket, is_first) {
                    Call::Done(outcome) => outcome,
                    Call::Lead => unreachable!("its job is not in the queue any more"),
                }
            }
        }
    }

    /// Runs the batch that is next, of which the caller's job is the first, and lets the first of
    /// the one after it lead.
    fn lead(&self, store: &dyn Store) {
        let batch = lock(&self.queue).batches.pop_front().unwrap_or_default();
        let led = catch_unwind(AssertUnwindSafe(|| run_group(store, batch)));
        self.leader.store(0, Ordering::Relaxed);
        {
            let mut queue = lock(&self.queue);
            match queue.batches.front().and_then(|next| Some((next.jobs.first()?, &next.gate))) {
                Some((first, gate)) => {
                    first.ticket.call(Call::Lead);
                    gate.wake_first();
                }
                None => queue.is_led = false,
            }
        }
        if let Err(panic) = led {
            resume_unwind(panic);
        }
    }
}

impl Queue {
    /// The batch that has room for one more.
    fn open_batch(&mut self) -> &mut Batch {
        if self.batches.back().is_none_or(|batch| batch.jobs.len() >= GROUP_MAX) {
            self.batches.push_back(Batch::default());
        }
        self.batches.back_mut().expect("there is one now")
    }
}

/// Threads of one batch. Should the leader panic, they are told.
struct Members {
    tickets: Vec<Arc<Ticket>>,
    gate: Arc<Gate>,
}

impl Members {
    fn tell(&mut self, outcome: &Result<(), CommitError>) {
        if !self.tickets.is_empty() {
            self.tickets.drain(..).for_each(|member| member.call(Call::Done(outcome.clone())));
            self.gate.wake_all();
        }
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        let message = "the thread that committed has panicked".to_owned();
        self.tell(&Err(CommitError::Undetermined { message }));
    }
}

/// Runs jobs, flushes once, and tells their threads.
fn run_group(store: &dyn Store, batch: Batch) {
    let Batch { jobs, gate } = batch;
    // A job's ticket goes from those that wait to those that ran.
    let tickets = jobs.iter().rev().map(|job| Arc::clone(&job.ticket)).collect();
    let mut waiting = Members { tickets, gate: Arc::clone(&gate) };
    let mut ran = Members { tickets: Vec::with_capacity(jobs.len()), gate };
    let mut writer: Option<Box<dyn Writer>> = None;
    for Job { run, .. } in jobs {
        let given = match writer.take() {
            Some(writer) => Ok(writer),
            None => store.writer(),
        };
        let given: Result<&mut dyn Writer, WriteError> =
            given.map(|taken| &mut **writer.insert(taken) as &mut dyn Writer);
        // SAFETY: the thread that lent it waits for its ticket, which is in `waiting`.
        let run = unsafe { &mut *run.0 };
        let lost = match run(given) {
            Fate::Kept | Fate::Gone => None,
            Fate::Lost(error) => Some(error),
            Fate::Panicked => writer.as_mut().and_then(|writer| writer.rollback().err()),
        };
        if let Some(error) = lost {
            // A writer that is dropped takes back what it has not flushed.
            writer = None;
            ran.tell(&Err(error));
        }
        ran.tickets.extend(waiting.tickets.pop());
    }
    let outcome = writer.as_mut().map_or(Ok(()), |writer| writer.flush());
    // Given back, so that a store at rest is pinned by nobody.
    drop(writer);
    ran.tell(&outcome);
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
            Err(error) => return Ran::Gone(TransactError::Write(error)),
        };
        let value = match body(transaction) {
            Ok(value) => value,
            Err(error) => {
                return match writer.rollback() {
                    Ok(()) => Ran::Gone(TransactError::Body(error)),
                    Err(error) => Ran::Lost(error),
                };
            }
        };
        match writer.commit() {
            Ok(_) => return Ran::Kept(value),
            Err(CommitError::Conflict) if attempt < CONFLICT_ATTEMPTS_MAX => attempt += 1,
            Err(error @ CommitError::Conflict) => return Ran::Gone(TransactError::Commit(error)),
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
