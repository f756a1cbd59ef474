//! The one thread that commits. It knows nothing of protocols: it runs [`Job`]s, makes all that
//! waited in its queue durable with one flush, and only then lets them answer.
//!
//! Invariant: [`Job::finish`] is called exactly once for every job that was taken, after the flush
//! that covers it, and with the outcome of that flush.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::Ordering::Relaxed,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    time::{Duration, Instant},
};

use tokaido_script::Vm;
use tokaido_store::{CommitError, CommitNumber, WriteError, WriteTransaction, Writer};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::{Limits, metrics::Metrics};

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
    /// The writer's own VM.
    pub(crate) vm: Vm,
}

/// The way to the writer. The thread ends when the last handle is gone and the queue is empty.
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
        (Self { queue, room }, JobQueue(receiver))
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
    ) -> Result<T, WriterError> {
        let (answer, answered) = oneshot::channel();
        self.submit(Box::new(Call { work: Some(work), result: None, answer })).await;
        answered.await.map_err(|_| WriterError::Lost)?
    }
}

/// What became of a [`WriterHandle::call`] that gave nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriterError {
    /// Its group was not committed.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The writer is gone.
    #[error("an error in the server itself, see its log")]
    Lost,
}

/// A closure as a job.
struct Call<W, T> {
    work: Option<W>,
    result: Option<T>,
    answer: oneshot::Sender<Result<T, WriterError>>,
}

impl<W: FnOnce(&mut WriterContext) -> T + Send, T: Send> Job for Call<W, T> {
    fn run(&mut self, context: &mut WriterContext) {
        self.result = self.work.take().map(|work| work(context));
    }

    fn finish(self: Box<Self>, outcome: Result<(), CommitError>) {
        let result = match (outcome, self.result) {
            (Ok(()), Some(result)) => Ok(result),
            (Err(error), _) => Err(error.into()),
            (Ok(()), None) => Err(WriterError::Lost),
        };
        // The client may be gone; then nobody waits for the answer.
        let _ = self.answer.send(result);
    }
}

/// The writer's end of the queue.
pub(crate) struct JobQueue(Receiver<Ticket>);

/// Serves the queue until every handle is gone.
pub(crate) fn run(queue: &JobQueue, context: WriterContext, metrics: &Metrics, limits: &Limits) {
    let _watch = Watch(metrics);
    let mut writer = WriterLoop {
        queue,
        context,
        metrics,
        jobs: Vec::new(),
        group_jobs_max: limits.group_jobs_max,
        group_time: Duration::from_millis(limits.group_ms),
        expiry: Expiry::new(limits),
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
    jobs: Vec<Ran>,
    /// Most jobs that one flush covers. Each of them waits for the slowest.
    group_jobs_max: usize,
    /// A group takes no further job once its jobs have run this long.
    group_time: Duration,
    expiry: Expiry,
}

struct Ran {
    job: Box<dyn Job>,
    panicked: bool,
}

impl WriterLoop<'_> {
    fn run(&mut self) {
        loop {
            match self.queue.0.recv_timeout(self.expiry.wait()) {
                Ok(first) => self.group(first),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.expiry.remove_if_due(&mut self.context.writer);
        }
    }

    /// Runs `first` and whatever waits behind it, flushes once, and answers all of them.
    fn group(&mut self, first: Ticket) {
        let started = Instant::now();
        let mut next = Some(first.job);
        while let Some(job) = next {
            self.run_job(job);
            let full = self.jobs.len() >= self.group_jobs_max
                || started.elapsed() >= self.group_time
                || self.context.writer.lost.is_some();
            next = if full { None } else { self.queue.0.try_recv().ok().map(|t| t.job) };
        }
        let outcome = self.context.writer.end_group();
        if let Err(error) = &outcome {
            tracing::error!(jobs = self.jobs.len(), %error, "a group of writes failed");
            if matches!(error, CommitError::Undetermined { .. }) {
                self.metrics.store_refuses_writes.store(true, Relaxed);
            }
        }
        self.metrics.group_done(self.jobs.len(), started.elapsed(), outcome.is_ok());
        for ran in self.jobs.drain(..) {
            let outcome = if ran.panicked { Err(panic_error()) } else { outcome.clone() };
            if catch_unwind(AssertUnwindSafe(|| ran.job.finish(outcome))).is_err() {
                tracing::error!("a panic while answering a write; its client gets no answer");
            }
        }
    }

    fn run_job(&mut self, mut job: Box<dyn Job>) {
        let context = &mut self.context;
        let panicked = catch_unwind(AssertUnwindSafe(|| job.run(context))).is_err();
        if panicked {
            tracing::error!("a panic in a write; its transaction is rolled back");
        }
        // Does nothing unless the job left a transaction open; a failure is kept for the group.
        let _ = self.context.writer.rollback();
        self.jobs.push(Ran { job, panicked });
    }
}

fn panic_error() -> CommitError {
    CommitError::Failed { message: "an error in the server itself, see its log".to_owned() }
}

/// When to look for expired records. They are invisible in any case; this frees space.
struct Expiry {
    due: Instant,
    interval: Duration,
    /// Most records that one transaction removes, so that writes wait only shortly behind it.
    removals_max: usize,
    /// The last look failed; said once, not every half second.
    failing: bool,
}

impl Expiry {
    fn new(limits: &Limits) -> Self {
        let interval = Duration::from_millis(limits.expiry_interval_ms);
        let removals_max = limits.expiry_batch_max;
        Self { due: Instant::now() + interval, interval, removals_max, failing: false }
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
        let removed = catch_unwind(AssertUnwindSafe(|| {
            let removed = writer.remove_expired(self.removals_max).map_err(|e| e.to_string())?;
            writer.end_group().map_err(|e| e.to_string())?;
            Ok(removed)
        }))
        .unwrap_or_else(|_| Err("a panic, see the log".to_owned()));
        match &removed {
            Err(error) if !self.failing => tracing::warn!(%error, "cannot remove expired records"),
            _ => {}
        }
        self.failing = removed.is_err();
        let more = removed.is_ok_and(|n| n >= self.removals_max);
        self.due = Instant::now() + if more { Duration::ZERO } else { self.interval };
    }
}

/// The store's writer as jobs see it: `flush` is left to the end of the group, and a failure that
/// took the whole group with it is remembered, so that no job of the group is told otherwise.
pub(crate) struct GroupWriter {
    inner: Box<dyn Writer>,
    /// Something was committed since the last flush.
    dirty: bool,
    /// Why every transaction of this group is lost.
    lost: Option<CommitError>,
}

impl GroupWriter {
    pub(crate) fn new(inner: Box<dyn Writer>) -> Self {
        Self { inner, dirty: false, lost: None }
    }

    /// Flushes, and starts a new group.
    fn end_group(&mut self) -> Result<(), CommitError> {
        let dirty = std::mem::take(&mut self.dirty);
        match self.lost.take() {
            Some(error) => Err(error),
            None if dirty => self.inner.flush(),
            None => Ok(()),
        }
    }
}

impl Writer for GroupWriter {
    fn begin(&mut self) -> Result<&mut dyn WriteTransaction, WriteError> {
        match &self.lost {
            Some(error) => Err(WriteError::Engine { message: error.to_string() }),
            None => self.inner.begin(),
        }
    }

    fn transaction(&mut self) -> &mut dyn WriteTransaction {
        self.inner.transaction()
    }

    fn commit(&mut self) -> Result<CommitNumber, CommitError> {
        let result = self.inner.commit();
        match &result {
            Ok(_) => self.dirty = true,
            Err(CommitError::Conflict) => {}
            Err(error) => self.lost = Some(error.clone()),
        }
        result
    }

    fn rollback(&mut self) -> Result<(), CommitError> {
        let result = self.inner.rollback();
        if let Err(error) = &result {
            self.lost = Some(error.clone());
        }
        result
    }

    /// Does nothing: the group is flushed as a whole, and no job is answered before.
    fn flush(&mut self) -> Result<(), CommitError> {
        Ok(())
    }

    fn remove_expired(&mut self, limit: usize) -> Result<usize, WriteError> {
        let result = self.inner.remove_expired(limit);
        match &result {
            // Entries of the expiry index may have gone without a record.
            Ok(_) => self.dirty = true,
            // It may have been the commit that failed, and taken the group with it.
            Err(error) if self.dirty => {
                self.lost = Some(CommitError::Failed { message: error.to_string() });
            }
            Err(_) => {}
        }
        result
    }
}

#[cfg(test)]
mod tests;
