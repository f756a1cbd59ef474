//! The threads that commit: one for the durable engine, more for one that takes several writers at
//! a time. They know nothing of protocols: each takes [`Job`]s from the shared queue, makes what
//! waited there durable with one flush, and only then lets the jobs answer.
//!
//! Where there is one writer, its thread takes the store's [`Pen`] for each group. Between two
//! groups a worker may take it for a group of its own, if nobody waits in the queue: that saves a
//! short write the round trip to the thread, which takes longer than the write.
//!
//! Invariant: [`Job::finish`] is called exactly once for every job that was run, after the flush
//! that covers it, and with the outcome of that flush.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    time::{Duration, Instant},
};

use tokaido_script::Hook;
use tokaido_store::{CommitError, Group, GroupWriter, Writer as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use self::upkeep::Upkeep;
use crate::{
    Limits, hooks, metrics::Metrics, pause::Pause, placement::RunError, procedures::LocalProgram,
};

/// Work for the writer.
pub(crate) trait Job: Send {
    /// Runs transactions, one or many. One that it leaves open is rolled back.
    fn run(&mut self, context: &mut WriterContext<'_>);

    /// Called once the transactions are durable, or have failed. The reply may go out now.
    fn finish(self: Box<Self>, outcome: Result<(), CommitError>);
}

/// What the jobs of a group use where they run.
pub(crate) struct WriterContext<'w> {
    /// The store's writer.
    pub(crate) writer: &'w mut GroupWriter,
    /// The procedures.
    pub(crate) program: &'w mut LocalProgram,
    /// What the jobs of the group want done once it is durable. If it fails, none of it is done.
    pub(crate) when_durable: Vec<Box<dyn FnOnce()>>,
}

impl<'w> WriterContext<'w> {
    pub(crate) fn new(writer: &'w mut GroupWriter, program: &'w mut LocalProgram) -> Self {
        Self { writer, program, when_durable: Vec::new() }
    }

    /// Makes a group durable that began at `started` and has this many jobs, and then does what
    /// waits for that. Returns what the jobs are to be told.
    pub(crate) fn end_group(
        &mut self,
        metrics: &Metrics,
        started: Instant,
        jobs: usize,
    ) -> Result<(), CommitError> {
        let outcome = self.writer.end_group();
        if let Err(error) = &outcome {
            tracing::error!(jobs, %error, "a group of writes failed");
            if matches!(error, CommitError::Undetermined { .. }) {
                metrics.store_refuses_writes.store(true, Relaxed);
            }
        }
        metrics.group_done(jobs, started.elapsed(), outcome.is_ok());
        for action in self.when_durable.drain(..).filter(|_| outcome.is_ok()) {
            if catch_unwind(AssertUnwindSafe(action)).is_err() {
                tracing::error!("a panic after a write; what it had to tell is lost");
            }
        }
        outcome
    }
}

impl AsMut<GroupWriter> for WriterContext<'_> {
    fn as_mut(&mut self) -> &mut GroupWriter {
        self.writer
    }
}

/// The right to write. Its thread puts the writer in at its start, and takes it out at its end.
#[derive(Clone, Default)]
pub(crate) struct Pen(Arc<Mutex<Option<GroupWriter>>>);

impl Pen {
    /// Puts that writer in.
    pub(crate) fn put(&self, writer: GroupWriter) {
        *self.lock() = Some(writer);
    }

    fn lock(&self) -> MutexGuard<'_, Option<GroupWriter>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handle to the writers. They end when the last handle is gone and the queue is empty.
#[derive(Clone)]
pub(crate) struct WriterHandle {
    queue: Sender<Ticket>,
    room: Arc<Semaphore>,
    jobs_max: usize,
    /// The pen of the only writer.
    pen: Pen,
    wants_upkeep: Arc<AtomicBool>,
}

struct Ticket {
    job: Box<dyn Job>,
    /// Released when a thread that has the pen takes the job out of the queue; until then, no
    /// worker takes the pen.
    room: OwnedSemaphorePermit,
}

impl WriterHandle {
    /// A queue for this many jobs, and the end that [`run`] takes from. A worker with one job more
    /// waits, and so does the connection that it came from: back-pressure begins here.
    pub(crate) fn new(jobs_max: usize) -> (Self, JobQueue) {
        let (queue, receiver) = channel();
        let (room, pen) = (Arc::new(Semaphore::new(jobs_max)), Pen::default());
        let wants_upkeep = Arc::new(AtomicBool::new(false));
        let jobs =
            JobQueue { jobs: Arc::new(Mutex::new(receiver)), wants_upkeep: wants_upkeep.clone() };
        (Self { queue, room, jobs_max, pen, wants_upkeep }, jobs)
    }

    /// The pen of the only writer, for its thread; several writers have pens of their own.
    pub(crate) fn pen(&self) -> &Pen {
        &self.pen
    }

    /// Runs a group here, if nobody is writing, no job waits, writes are not paused, and the group
    /// need not wait for the disk.
    pub(crate) fn try_write<T>(
        &self,
        pause: &Pause,
        group: impl FnOnce(&mut GroupWriter) -> T,
    ) -> Option<T> {
        if self.room.available_permits() < self.jobs_max {
            return None;
        }
        // After a panic outside of any job, only the writer's thread goes on.
        let mut pen = self.pen.0.try_lock().ok()?;
        let writer = pen.as_mut().filter(|writer| !writer.may_wait() && !pause.holds_writes())?;
        Some(group(writer))
    }

    /// Puts a job into the queue, once there is room. If the writer is gone, the job is dropped;
    /// whoever waits for its answer notices that.
    pub(crate) async fn submit(&self, job: Box<dyn Job>) {
        let room = match self.room.clone().try_acquire_owned() {
            Ok(room) => room,
            // The semaphore is never closed.
            Err(_) => match self.room.clone().acquire_owned().await {
                Ok(room) => room,
                Err(_) => return,
            },
        };
        // The receiver goes away only in a stop or a panic; then the job's answer channel goes with it.
        let _ = self.queue.send(Ticket { job, room });
    }

    /// Has the writer look after the store as soon as it has answered the jobs that wait, and not only when it is time.
    pub(crate) fn want_upkeep(&self) {
        self.wants_upkeep.store(true, Relaxed);
        // An empty job wakes the writer. If there is no room for it, the writer is awake.
        if let Ok(room) = self.room.clone().try_acquire_owned() {
            let _ = self.queue.send(Ticket { job: Box::new(Nothing), room });
        }
    }

    /// Runs `work` as a job and waits until what it wrote is durable.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut WriterContext<'_>) -> T + Send + 'static,
    ) -> Result<T, RunError> {
        let (answer, answered) = oneshot::channel();
        self.submit(Box::new(ClosureJob { work: Some(work), result: None, answer })).await;
        answered.await.map_err(|_| RunError::Lost)?
    }
}

/// A job that does nothing.
struct Nothing;

impl Job for Nothing {
    fn run(&mut self, _: &mut WriterContext<'_>) {}

    fn finish(self: Box<Self>, _: Result<(), CommitError>) {}
}

/// A closure as a job.
struct ClosureJob<W, T> {
    work: Option<W>,
    result: Option<T>,
    answer: oneshot::Sender<Result<T, RunError>>,
}

impl<W: FnOnce(&mut WriterContext<'_>) -> T + Send, T: Send> Job for ClosureJob<W, T> {
    fn run(&mut self, context: &mut WriterContext<'_>) {
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
pub(crate) struct JobQueue {
    jobs: Arc<Mutex<Receiver<Ticket>>>,
    /// Whether the next [`Upkeep`] is due at once.
    wants_upkeep: Arc<AtomicBool>,
}

impl JobQueue {
    /// Waits for a job. Another waiting writer may come first.
    fn wait(&self, timeout: Duration) -> Result<Ticket, RecvTimeoutError> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(timeout)
    }

    /// Takes one more job if there is one. While another writer waits for jobs, there is none.
    fn take(&self) -> Option<Ticket> {
        let queue = match self.jobs.try_lock() {
            Ok(queue) => queue,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        queue.try_recv().ok()
    }
}

/// Serves the queue with the writer in `pen` until every handle is gone, and then takes the writer out. While
/// writes are paused, jobs stay in the queue; if the server stops meanwhile, they are given up. Among the
/// writers of a store, the first removes expired records and calls what the server calls by itself.
pub(crate) fn run(
    queue: &JobQueue,
    pen: &Pen,
    program: LocalProgram,
    metrics: &Metrics,
    limits: &Limits,
    pause: &Pause,
    is_first: bool,
) {
    let _watch = Watch(metrics);
    let mut writer = WriterLoop {
        queue,
        pen,
        program,
        metrics,
        pause,
        group: Group::default(),
        group_jobs_max: limits.group_jobs_max,
        group_time: Duration::from_millis(limits.group_ms),
        upkeep: Upkeep::new(limits, is_first),
        is_first,
    };
    writer.run();
    *pen.lock() = None;
}

/// Shows others that the writer is gone, should it panic outside of any job.
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
    pen: &'w Pen,
    program: LocalProgram,
    metrics: &'w Metrics,
    pause: &'w Pause,
    /// The jobs of the current group. Kept to reuse its memory.
    group: Group<Box<dyn Job>>,
    /// Maximum number of jobs that one flush covers. Each of them waits for the slowest.
    group_jobs_max: usize,
    /// A group takes no further job once this time has passed since its first job ended.
    group_time: Duration,
    upkeep: Upkeep,
    is_first: bool,
}

impl WriterLoop<'_> {
    fn run(&mut self) {
        loop {
            if self.pause.holds_writes() {
                match self.pause.wait(self.upkeep.interval) {
                    true => break,
                    false => continue,
                }
            }
            match self.queue.wait(self.upkeep.wait()) {
                Ok(first) => self.group(first),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.on_its_own(|context, metrics| {
                        hooks::as_group(context, metrics, |context| {
                            hooks::call(Hook::End, context)
                        });
                    });
                    break;
                }
            }
            self.program.heartbeat().begin_job();
            if self.is_first && self.program.is_outdated() {
                self.on_its_own(|context, metrics| {
                    hooks::as_group(context, metrics, hooks::update);
                });
            }
            if self.is_first && self.queue.wants_upkeep.swap(false, Relaxed) {
                self.upkeep.due = Instant::now();
            }
            self.upkeep.run_if_due(self.pen, self.pause);
            self.program.heartbeat().idle();
        }
    }

    /// Does what the server does by itself, if this is the first writer and may write now.
    fn on_its_own(&mut self, act: impl FnOnce(&mut WriterContext<'_>, &Metrics)) {
        if !self.is_first || self.pause.holds_writes() {
            return;
        }
        let mut pen = self.pen.lock();
        let Some(writer) = pen.as_mut() else { return };
        self.program.heartbeat().begin_job();
        act(&mut WriterContext::new(writer, &mut self.program), self.metrics);
        self.program.heartbeat().idle();
    }

    /// Runs `first` and whatever waits behind it, flushes once, and answers all of them.
    fn group(&mut self, first: Ticket) {
        let mut pen = self.pen.lock();
        // Where there are several writers, another one may have begun a pause in the meantime.
        while self.pause.holds_writes() {
            drop(pen);
            if self.pause.wait(self.upkeep.interval) {
                return;
            }
            pen = self.pen.lock();
        }
        let Some(writer) = pen.as_mut() else { return };
        let started = Instant::now();
        let mut context = WriterContext::new(writer, &mut self.program);
        let (mut next, mut filling_since) = (Some(first), None);
        while let Some(Ticket { job, room }) = next {
            drop(room);
            context.program.heartbeat().begin_job();
            if context.program.is_outdated() {
                if self.is_first {
                    hooks::update(&mut context);
                } else {
                    context.program.update();
                }
            }
            self.group.run(job, &mut context, |job, context| job.run(context));
            // The time counts from the end of the first job: that one waits for the store if the store paces writes, and the
            // jobs that have arrived meanwhile must not wait one after the other.
            let filling_since = *filling_since.get_or_insert_with(Instant::now);
            let is_full = self.group.len() >= self.group_jobs_max
                || filling_since.elapsed() >= self.group_time
                || context.writer.is_lost()
                || self.pause.holds_writes();
            next = if is_full { None } else { self.queue.take() };
        }
        let outcome = context.end_group(self.metrics, started, self.group.len());
        drop(pen);
        self.group.answer(&outcome, |job, outcome| job.finish(outcome));
    }
}

mod upkeep;

#[cfg(test)]
mod tests;
