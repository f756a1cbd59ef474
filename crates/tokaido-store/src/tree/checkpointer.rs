//! The *checkpointer*: the thread that writes frozen memtables to disk, merges runs and, if the store was opened for
//! that, syncs the log in the background. Readers and the writer carry on meanwhile.

use std::{
    io,
    panic::{self, AssertUnwindSafe},
    sync::Arc,
    thread,
    time::Instant,
};

use crate::mutex::lock;

use super::{
    base::BaseError,
    catalog::{FIRST_TREE, Keyspaces, TreeMap},
    options::SyncMode,
    retired::{LOOK_EVERY, Retired},
    shared::Shared,
    signal::{Job, Reason, Waiting},
};

/// Starts the checkpointer, unless it is running or was told to stop: a writer that outlives its store
/// gets no new one. Many stores are not open long enough to need one.
pub(super) fn start_checkpointer(shared: &Arc<Shared>) -> io::Result<()> {
    let mut checkpointer = lock(&shared.signal.thread);
    // Checked under the lock: `stop_checkpointer` first tells the checkpointer to stop, then looks for it.
    if checkpointer.is_none() && shared.signal.check_open().is_ok() {
        let shared = Arc::clone(shared);
        let thread = thread::Builder::new().name("tokaido-checkpointer".to_owned());
        *checkpointer = Some(thread.spawn(move || Checkpointer::new(&shared).run())?);
    }
    Ok(())
}

/// Stops the checkpointer, if it is running, once it has finished what it is doing.
pub(super) fn stop_checkpointer(shared: &Shared) {
    shared.signal.stop();
    let checkpointer = lock(&shared.signal.thread).take();
    if checkpointer.is_some_and(|checkpointer| checkpointer.join().is_err()) {
        tracing::error!("the thread that runs checkpoints has panicked");
    }
}

/// Lowers the priority of this thread. A checkpoint keeps a core busy for many milliseconds at a time, and the threads
/// that answer clients should not wait for that core. Writers that outrun the checkpointer are slowed to its pace anyway.
fn lower_priority() {
    // On other systems the nice value is that of the whole process.
    #[cfg(target_os = "linux")]
    {
        /// Added to the nice value of the process.
        const NICENESS: libc::c_int = 3;
        // SAFETY: the call takes no pointer. A failure leaves the priority as it was.
        unsafe { libc::nice(NICENESS) };
    }
}

/// The work of the checkpointer, on its own thread or, for a store that is being closed, on another.
pub(super) struct Checkpointer<'s> {
    pub(super) shared: &'s Shared,
    /// The trees that were in use after the last job.
    live: Keyspaces,
    /// Whether the last merge into the base failed.
    pub(super) has_merge_failed: bool,
    pub(super) retired: Retired,
    /// Whether nothing had been written for a while when the last job was made.
    pub(super) is_at_rest: bool,
    /// When the last successful checkpoint ended.
    pub(super) checkpointed_at: Option<Instant>,
    synced_at: Instant,
}

impl<'s> Checkpointer<'s> {
    pub(super) fn new(shared: &'s Shared) -> Self {
        Self {
            shared,
            live: Keyspaces::default(),
            has_merge_failed: false,
            retired: Retired::default(),
            is_at_rest: false,
            checkpointed_at: None,
            synced_at: Instant::now(),
        }
    }

    fn run(mut self) {
        lower_priority();
        let interval = match self.shared.options.sync {
            SyncMode::Interval(interval) => Some(interval),
            SyncMode::Always | SyncMode::Os => None,
        };
        loop {
            let pause = match self.retired.is_empty() {
                true => interval,
                false => Some(interval.map_or(LOOK_EVERY, |interval| interval.min(LOOK_EVERY))),
            };
            let retry = self.shared.options.checkpoint_retry;
            let Some(work) = self.shared.signal.next(pause, retry) else { break };
            self.look_around();
            if let Some(job) = work
                && self.run_job(&job)
            {
                self.tidy_runs();
            }
        }
        self.sync();
    }

    fn sync(&mut self) {
        self.shared.durable.sync_in_background(self.shared.visible.published());
        self.synced_at = Instant::now();
    }

    /// Runs the small tasks between others. It frees what no reader sees any more, and syncs the log in the background if
    /// that is due or the memtable is nearly full, as a new memtable waits for such a sync before it takes over.
    pub(super) fn look_around(&mut self) {
        self.retired.look();
        let SyncMode::Interval(interval) = self.shared.options.sync else { return };
        if self.shared.signal.take_sync_wanted() || self.synced_at.elapsed() >= interval {
            self.sync();
        }
    }

    /// Does what is more urgent than a merge. Returns whether the merge may go on.
    pub(super) fn give_way(&mut self) -> bool {
        self.look_around();
        match self.shared.signal.waiting() {
            Waiting::Nothing => true,
            Waiting::Job(job) => self.run_job(&job),
            Waiting::Stop => false,
        }
    }

    /// Runs a checkpoint. Returns whether it succeeded.
    fn run_job(&mut self, job: &Job) -> bool {
        self.is_at_rest = job.reason == Reason::Rest;
        let result = self.try_checkpoint(job);
        let is_done = result.is_ok();
        if is_done {
            self.checkpointed_at = Some(Instant::now());
        }
        self.retired.add_memtable(&job.frozen);
        self.shared.signal.finish(job, result);
        is_done
    }

    fn try_checkpoint(&mut self, job: &Job) -> Result<(), String> {
        self.set_live(&job.trees);
        self.retry_merge()?;
        if let Err(error) = self.shared.visible.hold_base() {
            let why = error.to_string();
            tracing::error!(why, "a checkpoint could not begin and will be tried again");
            return Err(why);
        }
        self.attempt("a checkpoint", |this| this.checkpoint(job))
    }

    /// Runs a task on the base, or returns why it failed. After a failure from which the base does not recover,
    /// nothing is written any more.
    pub(super) fn attempt<T>(
        &mut self,
        task: &str,
        body: impl FnOnce(&mut Self) -> Result<T, BaseError>,
    ) -> Result<T, String> {
        self.shared.durable.check_poison().map_err(|error| error.to_string())?;
        // A panic must not leave writers waiting for a thread that is gone.
        let result = panic::catch_unwind(AssertUnwindSafe(|| body(self)));
        let durable = &self.shared.durable;
        let (why, may_try_again) = match result {
            Ok(Ok(done)) => return Ok(done),
            // LMDB reports a write that was cut short, for lack of space, as another error.
            Ok(Err(error)) => {
                let is_full = error.is_full() || durable.is_disk_full();
                let remedy = if is_full { error.remedy() } else { "see to the disk" };
                // A lock that was not granted, or a run that was not written, has changed nothing.
                (format!("{error}; {remedy}"), is_full || matches!(error, BaseError::Io(_)))
            }
            // A retry is harmless, even if the task committed before it panicked.
            Err(_) => ("it panicked; please report this as a bug".to_owned(), true),
        };
        if may_try_again && !self.shared.base.is_given_up() {
            tracing::error!(why, "{task} failed and will be tried again");
        } else {
            // As in the log, a failed sync is not retried.
            durable.poison(&format!("{task} failed: {why}"));
        }
        Err(why)
    }

    pub(super) fn set_live(&mut self, trees: &TreeMap) {
        self.live = trees.keyspaces();
    }

    /// Whether a tree is in use.
    pub(super) fn is_live(&self, tree: u32) -> bool {
        tree < FIRST_TREE || self.live.contains_key(&tree)
    }
}
