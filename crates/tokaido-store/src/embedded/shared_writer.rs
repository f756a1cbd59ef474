//! The one writer of a store, shared by all threads of a program: whoever comes first leads. The
//! leader commits its own transaction and those of all who wait as a [`Group`], and tells those who
//! wait. Then the next one leads.
//!
//! That one thread runs the transactions of many is what makes it fast: a lock that goes from
//! thread to thread costs a switch of threads for each transaction, which takes longer than the
//! transaction. Whoever has submitted a transaction and does other things meanwhile does not even
//! have a thread to be woken; for these the committer leads, a thread that does nothing else.
//!
//! Invariant: a thread that asked for a transaction returns only when nobody will use what it lent
//! any more, and with the outcome of the flush that covers its transaction.

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

/// Maximum number of transactions that one flush covers, since each of them waits for all the others.
const GROUP_MAX: usize = 1024;

/// Maximum number of transactions that are submitted and not yet run.
const SUBMITTED_MAX: usize = 1 << 16;

/// How long a flush is put off for the next of those who come one after another. The flush itself
/// takes ten times as long, on a fast disk.
const GATHER_TIME: Duration = Duration::from_micros(8);

/// Those who write to one store.
#[derive(Default)]
pub(super) struct SharedWriter {
    queue: Mutex<Queue>,
    /// The mark of the thread that leads, or zero.
    leader: AtomicUsize,
    /// What the committer is to do.
    orders: Mutex<Orders>,
    ordered: Condvar,
}

#[derive(Default)]
struct Queue {
    /// Those that will be run together; all but the last are full.
    batches: VecDeque<Batch>,
    /// How many of them were submitted.
    submitted: usize,
    is_led: bool,
}

#[derive(Default)]
struct Orders {
    must_lead: bool,
    must_stop: bool,
}

/// Transactions for one flush. When its turn comes the thread of the first one leads, or the
/// committer if that was submitted.
#[derive(Default)]
struct Batch {
    jobs: Vec<Job>,
    gate: Arc<Gate>,
}

/// One transaction, for the leader to run.
enum Job {
    /// Of a thread that waits.
    Lent {
        run: Lent,
        ticket: Arc<Ticket>,
    },
    Submitted(Box<dyn Task>),
}

/// A closure that lies on the stack of the thread that waits for it.
struct Lent(*mut (dyn FnMut(&mut GroupWriter) + Send));

// SAFETY: the closure is `Send`, and only whoever has the job calls it.
unsafe impl Send for Lent {}

impl SharedWriter {
    /// Has `body` run by whoever leads, and returns when what it did is durable.
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

    /// Has a transaction run by the committer, or by whoever leads before.
    ///
    /// # Errors
    /// If too many wait already.
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

    /// What the committer does, until [`stop`](Self::stop) and until nothing is left to lead.
    pub(super) fn serve(&self, store: &dyn Store) {
        // As many as were told last are likely to come back.
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

    /// Waits until as many wait as were told last, as long as they keep coming: they would else meet
    /// a flush that has just begun, and wait for another one.
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

    /// Waits until `run` has been run, and gives the outcome of the flush.
    fn queue_up(
        &self,
        store: &dyn Store,
        run: &mut (dyn FnMut(&mut GroupWriter) + Send),
    ) -> Result<(), CommitError> {
        let run: *mut (dyn FnMut(&mut GroupWriter) + Send + '_) = run;
        // SAFETY: only the lifetime is lengthened. A leader calls it before it says `Done`, and
        // this function does not return, nor unwind, before that.
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

    /// Runs the batch that is next, and lets the first of the one after it lead.
    fn lead(&self, store: &dyn Store) {
        self.leader.store(thread_mark(), Ordering::Relaxed);
        let _lead = Lead(self);
        let batch = lock(&self.queue).take_batch();
        commit(store, batch);
    }
}

/// The right to lead. When it is given up, the first of the batch that is next has it.
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
    /// The batch that has room for one more.
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
            // SAFETY: the thread that lent it waits until it is told, which is after this.
            Self::Lent { run, .. } => unsafe { (*run.0)(writer) },
            Self::Submitted(task) => task.run(writer),
        }
    }

    /// To be followed by waking the threads of the batch, and the task that this gives.
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

/// Runs jobs, flushes, and tells those who wait: as one group, unless a job takes its group with it.
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
        // Given back, so that a store at rest is pinned by nobody. An engine that panics here must not
        // keep the jobs from being told.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(writer)));
        let count = group.len();
        group.answer(&flushed, |job, flushed| wakers.extend(job.tell(flushed)));
        // All are told before the first is woken: an executor that was woken for it finds the others
        // ready, too, and need not sleep in between.
        if wakers.len() < count {
            gate.wake_all();
        }
        wake(&mut wakers);
    }
}

/// A waker is the caller's code, whose panic must not keep the others from being woken.
fn wake(wakers: &mut Vec<Waker>) {
    for waker in wakers.drain(..) {
        if catch_unwind(AssertUnwindSafe(|| waker.wake())).is_err() {
            tracing::error!("waking who awaits a transaction has panicked");
        }
    }
}

/// Tells this thread from all others that live, and is never zero.
fn thread_mark() -> usize {
    thread_local! { static MARK: u8 = const { 0 } }
    MARK.with(|mark| std::ptr::from_ref(mark).addr())
}
