//! The one writer of a store, shared by all threads of a program. The first thread to come leads:
//! it commits its own transaction and those of all waiting threads as a [`Group`], and tells them
//! the outcome. Then the next one leads.
//!
//! This is fast because one thread runs the transactions of many: passing a lock from thread to
//! thread costs a context switch for each transaction, which takes longer than the transaction. For
//! submitted transactions there is not even a thread to be woken. If there is no other leader, they
//! are led by the committer, a thread that does nothing else.
//!
//! Invariant: a thread that asked for a transaction returns only when nothing will use the closure
//! that it lent any more, and with the outcome of the flush that covers its transaction.

use std::{
    collections::VecDeque,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::Waker,
    thread,
    time::{Duration, Instant},
};

use crate::{
    CommitError, Group, GroupWriter, Store, TransactError, WriteError, WriteTransaction,
    mutex::lock,
};

use super::{
    gate::{Gate, Message, Ticket},
    job,
    pending::Task,
};

/// Maximum number of transactions that one flush covers: each of them waits for all the others.
const GROUP_MAX: usize = 1024;

/// Maximum number of transactions that are submitted but not yet run.
const SUBMITTED_MAX: usize = 1 << 16;

/// How long a flush is delayed for the next transaction when they keep coming. The flush itself
/// takes ten times as long, on a fast disk.
const GATHER_TIME: Duration = Duration::from_micros(8);

/// The threads and tasks that write to one store.
#[derive(Default)]
pub(super) struct SharedWriter {
    queue: Mutex<Queue>,
    /// The mark of the leading thread, or zero.
    leader: AtomicUsize,
    /// What the committer has to do.
    orders: Mutex<Orders>,
    ordered: Condvar,
}

#[derive(Default)]
struct Queue {
    /// Transactions that will be run together; all batches but the last are full.
    batches: VecDeque<Batch>,
    /// How many of the transactions were submitted.
    submitted: usize,
    is_led: bool,
}

#[derive(Default)]
struct Orders {
    must_lead: bool,
    must_stop: bool,
}

/// Transactions for one flush. When its turn comes, the thread of the first one leads, or the
/// committer if that one was submitted.
#[derive(Default)]
struct Batch {
    jobs: Vec<Job>,
    gate: Arc<Gate>,
}

/// One transaction, for the leader to run.
enum Job {
    /// From a thread that waits.
    Lent {
        run: Lent,
        ticket: Arc<Ticket>,
    },
    Submitted(Box<dyn Task>),
}

/// A closure on the stack of the thread that waits for it.
struct Lent(*mut (dyn FnMut(&mut GroupWriter) + Send));

// SAFETY: the closure is `Send`, and only the owner of the job calls it.
unsafe impl Send for Lent {}

impl SharedWriter {
    /// Has `body` run by the leader, and returns when its effects are durable.
    pub(super) fn transact<T: Send, E: Send>(
        &self,
        store: &dyn Store,
        mut body: impl FnMut(&mut dyn WriteTransaction) -> Result<T, E> + Send,
    ) -> Result<T, TransactError<E>> {
        if self.is_led_by_this_thread() {
            return Err(TransactError::Write(WriteError::WriterBusy));
        }
        let mut ran = None;
        let flushed = self.queue_up(store, &mut |writer| ran = Some(job::run(writer, &mut body)));
        job::result(ran, flushed)
    }

    /// Has a transaction run by the committer, or by a leader that comes before.
    ///
    /// # Errors
    /// If too many are waiting already.
    pub(super) fn submit(&self, task: Box<dyn Task>) -> Result<(), WriteError> {
        let must_lead = {
            let mut queue = lock(&self.queue);
            if queue.submitted == SUBMITTED_MAX {
                let message = format!(
                    "{SUBMITTED_MAX} submitted transactions wait to be run; await some of them \
                     before the next"
                );
                return Err(WriteError::Engine { message });
            }
            queue.submitted += 1;
            queue.open_batch().jobs.push(Job::Submitted(task));
            !mem::replace(&mut queue.is_led, true)
        };
        if must_lead {
            self.order(|orders| orders.must_lead = true);
        }
        Ok(())
    }

    /// Runs the committer, until [`stop`](Self::stop) is called and nothing is left to lead.
    pub(super) fn serve(&self, store: &dyn Store) {
        // As many as were told last time are likely to come back.
        let mut told = 0;
        loop {
            let mut orders = lock(&self.orders);
            while !orders.must_lead {
                if orders.must_stop {
                    return;
                }
                orders = self.ordered.wait(orders).unwrap_or_else(PoisonError::into_inner);
            }
            orders.must_lead = false;
            drop(orders);
            self.gather(&mut told);
            self.lead(store);
        }
    }

    /// Waits until as many are waiting as were told last time, while they keep coming. Otherwise
    /// they would find a flush that has just begun, and wait for another one.
    fn gather(&self, told: &mut usize) {
        let waiting = || lock(&self.queue).batches.front().map_or(0, |batch| batch.jobs.len());
        let (mut seen, mut since) = (waiting(), Instant::now());
        while seen < *told && since.elapsed() < GATHER_TIME {
            thread::yield_now();
            let now = waiting();
            if now > seen {
                (seen, since) = (now, Instant::now());
            }
        }
        *told = seen;
    }

    pub(super) fn stop(&self) {
        self.order(|orders| orders.must_stop = true);
    }

    fn order(&self, order: impl FnOnce(&mut Orders)) {
        order(&mut lock(&self.orders));
        self.ordered.notify_one();
    }

    pub(super) fn is_led_by_this_thread(&self) -> bool {
        self.leader.load(Ordering::Relaxed) == thread_mark()
    }

    /// Waits until `run` has been run, and returns the outcome of the flush.
    fn queue_up(
        &self,
        store: &dyn Store,
        run: &mut (dyn FnMut(&mut GroupWriter) + Send),
    ) -> Result<(), CommitError> {
        let run: *mut (dyn FnMut(&mut GroupWriter) + Send + '_) = run;
        // SAFETY: only the lifetime is extended. A leader calls it before it says `Done`, and this
        // function neither returns nor unwinds before that.
        let run = Lent(unsafe { mem::transmute::<*mut _, *mut _>(run) });
        let ticket = Arc::new(Ticket::default());
        let (gate, is_first, must_lead) = {
            let mut queue = lock(&self.queue);
            let batch = queue.open_batch();
            let (gate, is_first) = (Arc::clone(&batch.gate), batch.jobs.is_empty());
            batch.jobs.push(Job::Lent { run, ticket: Arc::clone(&ticket) });
            (gate, is_first, !mem::replace(&mut queue.is_led, true))
        };
        let mut message = if must_lead { Message::Lead } else { gate.wait(&ticket, is_first) };
        if matches!(message, Message::Lead) {
            self.lead(store);
            message = gate.wait(&ticket, is_first);
        }
        match message {
            Message::Done(outcome) => outcome,
            Message::Lead => unreachable!("its job is not in the queue any more"),
        }
    }

    /// Runs the next batch, and then lets the first of the one after it lead.
    fn lead(&self, store: &dyn Store) {
        self.leader.store(thread_mark(), Ordering::Relaxed);
        let _lead = Lead(self);
        let batch = lock(&self.queue).take_batch();
        commit(store, batch);
    }
}

/// The right to lead. When it is dropped, it passes to the first of the next batch.
struct Lead<'g>(&'g SharedWriter);

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let group = self.0;
        group.leader.store(0, Ordering::Relaxed);
        let mut queue = lock(&group.queue);
        match queue.batches.front().and_then(|next| Some((next.jobs.first()?, &next.gate))) {
            Some((Job::Lent { ticket, .. }, gate)) => {
                ticket.leave(Message::Lead);
                gate.wake_first();
            }
            Some((Job::Submitted(_), _)) => group.order(|orders| orders.must_lead = true),
            None => queue.is_led = false,
        }
    }
}

impl Queue {
    /// The batch that has room for another job.
    fn open_batch(&mut self) -> &mut Batch {
        if self.batches.back().is_none_or(|batch| batch.jobs.len() >= GROUP_MAX) {
            self.batches.push_back(Batch::default());
        }
        self.batches.back_mut().expect("there is one now")
    }

    fn take_batch(&mut self) -> Batch {
        let batch = self.batches.pop_front().unwrap_or_default();
        self.submitted -= batch.jobs.iter().filter(|job| matches!(job, Job::Submitted(_))).count();
        batch
    }
}

impl Job {
    fn run(&mut self, writer: &mut GroupWriter) {
        match self {
            // SAFETY: the thread that lent it waits until it is told, which happens after this.
            Self::Lent { run, .. } => unsafe { (*run.0)(writer) },
            Self::Submitted(task) => task.run(writer),
        }
    }

    /// Tells the waiter. The caller must then wake the batch's threads and the returned waker.
    fn tell(self, flushed: Result<(), CommitError>) -> Option<Waker> {
        match self {
            Self::Lent { ticket, .. } => {
                ticket.leave(Message::Done(flushed));
                None
            }
            Self::Submitted(task) => task.tell(flushed),
        }
    }
}

/// Runs jobs, flushes, and tells the waiters: as one group, unless a job loses its group.
fn commit(store: &dyn Store, batch: Batch) {
    let Batch { jobs, gate } = batch;
    let mut jobs = jobs.into_iter();
    let (mut group, mut wakers) = (Group::default(), Vec::new());
    while jobs.len() > 0 {
        let mut writer = GroupWriter::of(store);
        for job in jobs.by_ref() {
            group.run(job, &mut writer, Job::run);
            if writer.is_lost() {
                break;
            }
        }
        let flushed = writer.end_group();
        // Drop the writer, so that nothing pins a store at rest. An engine that panics here must
        // not keep the jobs from being told.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(writer)));
        let count = group.len();
        group.answer(&flushed, |job, flushed| wakers.extend(job.tell(flushed)));
        // All are told before the first is woken: an executor that wakes up for it finds the others
        // ready, too, and need not sleep in between.
        if wakers.len() < count {
            gate.wake_all();
        }
        wake(&mut wakers);
    }
}

/// A waker is the caller's code. A panic in it must not keep the others from being woken.
fn wake(wakers: &mut Vec<Waker>) {
    for waker in wakers.drain(..) {
        if catch_unwind(AssertUnwindSafe(|| waker.wake())).is_err() {
            tracing::error!("waking who awaits a transaction has panicked");
        }
    }
}

/// A value that no other live thread has, and that is never zero.
fn thread_mark() -> usize {
    thread_local! { static MARK: u8 = const { 0 } }
    MARK.with(|mark| std::ptr::from_ref(mark).addr())
}
