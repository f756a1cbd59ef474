//! The threads that commit: one for the durable engine, more for one that takes several writers at a
//! time. They know nothing of protocols: each takes [`Job`]s from the queue that they share, makes
//! what waited there durable with one flush, and only then lets the jobs answer.
//!
//! Invariant: [`Job::finish`] is called exactly once for every job that was taken, after the flush
//! that covers it, and with the outcome of that flush.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError, TryLockError,
        atomic::Ordering::Relaxed,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    time::{Duration, Instant},
};

use tokaido_store::{CommitError, Group, GroupWriter, limits::RECLAIM_MAX, transact_unflushed};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::{Limits, metrics::Metrics, placement::RunError, procedures::LocalProgram};

/// Work for the writer.
pub(crate) trait Job: Send {
    /// Runs transactions, one or many. What it leaves open is rolled back.
    fn run(&mut self, context: &mut WriterContext);

    /// The transactions are durable, or are not. The reply may go out now.
    fn finish(self: Box<Self>, outcome: Result<(), CommitError>);
}

/// What a job finds on the writer's thread.
pub(crate) struct WriterContext {
    /// The store's writer.
    pub(crate) writer: GroupWriter,
    /// The procedures.
    pub(crate) program: LocalProgram,
    /// What the jobs of the group want done once it is durable. If it fails, nothing of it is.
    pub(crate) when_durable: Vec<Box<dyn FnOnce()>>,
}

impl WriterContext {
    pub(crate) fn new(writer: GroupWriter, program: LocalProgram) -> Self {
        Self { writer, program, when_durable: Vec::new() }
    }
}

impl AsMut<GroupWriter> for WriterContext {
    fn as_mut(&mut self) -> &mut GroupWriter {
        &mut self.writer
    }
}

/// The way to the writers. They end when the last handle is gone and the queue is empty.
#[derive(Clone)]
pub(crate) struct WriterHandle {
    queue: Sender<Ticket>,
    room: Arc<Semaphore>,
}

struct Ticket {
    job: Box<dyn Job>,
    /// Given back when the job is taken out of the queue.
    _room: OwnedSemaphorePermit,
}

impl WriterHandle {
    /// A queue for so many jobs, and the end that [`run`] takes from. A worker that has one more
    /// waits with it, and with it the connection that it came from: here back-pressure begins.
    pub(crate) fn new(jobs_max: usize) -> (Self, JobQueue) {
        let (queue, receiver) = channel();
        let room = Arc::new(Semaphore::new(jobs_max));
        (Self { queue, room }, JobQueue(Arc::new(Mutex::new(receiver))))
    }

    /// Puts a job into the queue, once there is room. A job that comes when the writer is gone is
    /// dropped; whoever waits for its answer sees that.
    pub(crate) async fn submit(&self, job: Box<dyn Job>) {
        let room = match self.room.clone().try_acquire_owned() {
            Ok(room) => room,
            // The semaphore is never closed.
            Err(_) => match self.room.clone().acquire_owned().await {
                Ok(room) => room,
                Err(_) => return,
            },
        };
        // The receiver ends only in a stop or a panic; then the job's answer channel ends with it.
        let _ = self.queue.send(Ticket { job, _room: room });
    }

    /// Runs `work` as a job and waits until what it wrote is durable.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut WriterContext) -> T + Send + 'static,
    ) -> Result<T, RunError> {
        let (answer, answered) = oneshot::channel();
        self.submit(Box::new(ClosureJob { work: Some(work), result: None, answer })).await;
        answered.await.map_err(|_| RunError::Lost)?
    }
}

/// A closure as a job.
struct ClosureJob<W, T> {
    work: Option<W>,
    result: Option<T>,
    answer: oneshot::Sender<Result<T, RunError>>,
}

impl<W: FnOnce(&mut WriterContext) -> T + Send, T: Send> Job for ClosureJob<W, T> {
    fn run(&mut self, context: &mut WriterContext) {
        self.result = self.work.take().map(|work| work(context));
    }

    fn finish(self: Box<Self>, outcome: Result<(), CommitError>) {
        let result = match (outcome, self.result) {
            (Ok(()), Some(result)) => Ok(result),
            (Err(error), _) => Err(error.into()),
            (Ok(()), None) => Err(RunError::Lost),
        };
        // The client may be gone; then nobody waits for the answer.
        let _ = self.answer.send(result);
    }
}

/// The end of the queue that all writers share.
#[derive(Clone)]
pub(crate) struct JobQueue(Arc<Mutex<Receiver<Ticket>>>);

impl JobQueue {
    /// Waits for a job. Another writer may wait before this one does.
    fn wait(&self, timeout: Duration) -> Result<Ticket, RecvTimeoutError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(timeout)
    }

    /// Takes one more job if one is there. If another writer waits for jobs, there is none.
    fn take(&self) -> Option<Ticket> {
        let queue = match self.0.try_lock() {
            Ok(queue) => queue,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        queue.try_recv().ok()
    }
}

/// Serves the queue until every handle is gone. Among the writers of a store, one
/// `removes_expired` records.
pub(crate) fn run(
    queue: &JobQueue,
    context: WriterContext,
    metrics: &Metrics,
    limits: &Limits,
    removes_expired: bool,
) {
    let _watch = Watch(metrics);
    let mut writer = WriterLoop {
        queue,
        context,
        metrics,
        group: Group::default(),
        group_jobs_max: limits.group_jobs_max,
        group_time: Duration::from_millis(limits.group_ms),
        expiry: Expiry::new(limits, removes_expired),
    };
    writer.run();
}

/// Lets the world see that the writer is gone, should it panic outside of any job.
struct Watch<'m>(&'m Metrics);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store_refuses_writes.store(true, Relaxed);
        }
    }
}

struct WriterLoop<'w> {
    queue: &'w JobQueue,
    context: WriterContext,
    metrics: &'w Metrics,
    /// The jobs of the group under way. Kept to reuse its memory.
    group: Group<Box<dyn Job>>,
    /// Maximum number of jobs that one flush covers. Each of them waits for the slowest.
    group_jobs_max: usize,
    /// A group takes no further job once its jobs have run this long.
    group_time: Duration,
    expiry: Expiry,
}

impl WriterLoop<'_> {
    fn run(&mut self) {
        loop {
            match self.queue.wait(self.expiry.wait()) {
                Ok(first) => self.group(first),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.context.program.heartbeat().begin_job();
            self.expiry.remove_if_due(&mut self.context.writer);
            self.context.program.heartbeat().idle();
        }
    }

    /// Runs `first` and whatever waits behind it, flushes once, and answers all of them.
    fn group(&mut self, first: Ticket) {
        let started = Instant::now();
        let mut next = Some(first.job);
        while let Some(job) = next {
            self.context.program.heartbeat().begin_job();
            self.context.program.update();
            self.group.run(job, &mut self.context, |job, context| job.run(context));
            let is_full = self.group.len() >= self.group_jobs_max
                || started.elapsed() >= self.group_time
                || self.context.writer.is_lost();
            next = if is_full { None } else { self.queue.take().map(|t| t.job) };
        }
        let (jobs, outcome) = (self.group.len(), self.context.writer.end_group());
        if let Err(error) = &outcome {
            tracing::error!(jobs, %error, "a group of writes failed");
            if matches!(error, CommitError::Undetermined { .. }) {
                self.metrics.store_refuses_writes.store(true, Relaxed);
            }
        }
        self.metrics.group_done(jobs, started.elapsed(), outcome.is_ok());
        for action in self.context.when_durable.drain(..).filter(|_| outcome.is_ok()) {
            if catch_unwind(AssertUnwindSafe(action)).is_err() {
                tracing::error!("a panic after a write; what it had to tell is lost");
            }
        }
        self.group.answer(&outcome, |job, outcome| job.finish(outcome));
    }
}

/// When to look for expired records, and for the elements of collections that have gone. They are
/// invisible in any case; this frees space.
struct Expiry {
    due: Instant,
    interval: Duration,
    /// Another writer does it if not.
    is_mine: bool,
    /// Maximum number of records that one transaction removes, so that writes wait only shortly behind it.
    removals_max: usize,
    /// The last look failed; said once, not every half second.
    failing: bool,
}

impl Expiry {
    fn new(limits: &Limits, is_mine: bool) -> Self {
        let interval = Duration::from_millis(limits.expiry_interval_ms);
        let removals_max = limits.expiry_batch_max.min(RECLAIM_MAX);
        Self { due: Instant::now() + interval, interval, is_mine, removals_max, failing: false }
    }

    fn wait(&self) -> Duration {
        self.due.saturating_duration_since(Instant::now())
    }

    /// Removes one batch if it is time. When the batch was full the next one is due at once, but
    /// the jobs that wait come before it.
    fn remove_if_due(&mut self, writer: &mut GroupWriter) {
        if Instant::now() < self.due {
            return;
        }
        self.due = Instant::now() + self.interval;
        if !self.is_mine {
            return;
        }
        let removed = catch_unwind(AssertUnwindSafe(|| {
            let removed = transact_unflushed(writer, |tx| tx.reclaim(self.removals_max));
            let removed = removed.map_err(|e| e.to_string())?;
            writer.end_group().map_err(|e| e.to_string())?;
            Ok(removed)
        }))
        .unwrap_or_else(|_| Err("a panic, see the log".to_owned()));
        match &removed {
            Err(error) if !self.failing => tracing::warn!(%error, "cannot remove expired records"),
            _ => {}
        }
        self.failing = removed.is_err();
        if removed.is_ok_and(|n| n >= self.removals_max) {
            self.due = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests;
