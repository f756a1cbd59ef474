//! Checkpoints: a frozen memtable goes into the base, in order, and its part of the log goes away.
//!
//! They run on a thread of their own, the *keeper*, which also syncs the log in the background
//! where the store was opened for that. Readers and the writer go on meanwhile.

use std::{
    io,
    panic::{self, AssertUnwindSafe},
    path::Path,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use crate::WriteError;

use super::{
    LogStorage,
    base::{Layer, LayerError},
    catalog::TreeMap,
    files,
    memtable::{Memtable, Node},
    options::SyncMode,
    shared::{Shared, Tables, lock},
};

/// What a checkpoint is to do.
#[derive(Clone)]
pub(super) struct Job {
    pub(super) frozen: Arc<Memtable>,
    /// The last transaction in the frozen memtable.
    pub(super) sequence: u64,
    /// Which trees are in use after it.
    pub(super) trees: TreeMap,
    /// The first segment of the log that is still needed afterwards.
    pub(super) keep_from: u64,
}

/// How writers and the keeper talk to each other.
#[derive(Default)]
pub(super) struct Signal {
    state: Mutex<State>,
    changed: Condvar,
    /// The store was closed. Set while `state` is locked, so that nobody misses it who waits.
    is_stopping: AtomicBool,
}

#[derive(Default)]
struct State {
    job: Option<Job>,
    /// Why the last attempt at the job failed.
    failure: Option<String>,
    /// Whether anybody has ever waited for something.
    is_watched: bool,
}

impl Signal {
    pub(super) fn begin(&self, job: Job) {
        let mut state = lock(&self.state);
        state.job = Some(job);
        state.failure = None;
        self.changed.notify_all();
    }

    /// Waits until the job is done. Gives up if it cannot be done, or nobody is left to do it.
    pub(super) fn wait_for_checkpoint(&self) -> Result<(), WriteError> {
        let mut state = lock(&self.state);
        state.is_watched = true;
        while state.job.is_some() {
            self.check_open()?;
            if let Some(why) = &state.failure {
                let message = format!("the last checkpoint failed: {why}");
                return Err(WriteError::Engine { message });
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }

    /// Refuses to write to a store that was closed: nobody runs its checkpoints, or syncs its log in
    /// the background.
    pub(super) fn check_open(&self) -> Result<(), WriteError> {
        if self.is_stopping.load(Ordering::Acquire) {
            let message = "the store was closed; drop its writer and open it again".to_owned();
            return Err(WriteError::Engine { message });
        }
        Ok(())
    }

    fn stop(&self) {
        let state = lock(&self.state);
        self.is_stopping.store(true, Ordering::Release);
        // Many lives of a store have nobody who waits, and this is a call to the system.
        if state.is_watched {
            self.changed.notify_all();
        }
    }

    fn finish(&self, job: &Job, result: Result<(), String>) {
        let mut state = lock(&self.state);
        // As soon as the tables have changed the writer may have begun the next one.
        let is_current =
            state.job.as_ref().is_some_and(|current| Arc::ptr_eq(&current.frozen, &job.frozen));
        match result {
            _ if !is_current => {}
            Ok(()) => {
                state.job = None;
                state.failure = None;
            }
            Err(why) => state.failure = Some(why),
        }
        self.changed.notify_all();
    }

    /// Waits for something to do: a job, or the time for a sync. `None` to stop. After a job that
    /// failed, it waits for `retry`.
    fn next(&self, pause: Option<Duration>, retry: Duration) -> Option<Option<Job>> {
        let mut state = lock(&self.state);
        state.is_watched = true;
        loop {
            if self.is_stopping.load(Ordering::Acquire) {
                return None;
            }
            if state.failure.is_none() && state.job.is_some() {
                return Some(state.job.clone());
            }
            let wait = if state.failure.is_some() { Some(retry) } else { pause };
            let Some(wait) = wait else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let (guard, timeout) =
                self.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner);
            state = guard;
            if timeout.timed_out() {
                state.failure = None;
                return Some(None);
            }
        }
    }
}

/// Starts the keeper, unless it runs, or was told to stop: a writer that outlives its store gets no
/// other one. Many lives of a store are too short to need one.
pub(super) fn start_keeper(shared: &Arc<Shared>) -> io::Result<()> {
    let mut keeper = lock(&shared.keeper);
    // Under the lock: `stop_keeper` looks for the keeper after it has told it to stop.
    if keeper.is_none() && shared.signal.check_open().is_ok() {
        let shared = Arc::clone(shared);
        let thread = thread::Builder::new().name("tokaido-keeper".to_owned());
        *keeper = Some(thread.spawn(move || keep(&shared))?);
    }
    Ok(())
}

/// Ends the keeper, if it runs, after what it is doing.
pub(super) fn stop_keeper(shared: &Shared) {
    shared.signal.stop();
    let keeper = lock(&shared.keeper).take();
    if keeper.is_some_and(|keeper| keeper.join().is_err()) {
        tracing::error!("the thread that runs checkpoints has panicked");
    }
}

/// The keeper's thread.
fn keep(shared: &Shared) {
    let interval = match shared.options.sync {
        SyncMode::Interval(interval) => Some(interval),
        SyncMode::Always | SyncMode::Os => None,
    };
    while let Some(work) = shared.signal.next(interval, shared.options.checkpoint_retry) {
        sync_in_background(shared);
        let Some(job) = work else { continue };
        let result = try_checkpoint(shared, &job);
        shared.signal.finish(&job, result);
    }
    sync_in_background(shared);
}

/// Does a checkpoint, or says why it could not be done.
fn try_checkpoint(shared: &Shared, job: &Job) -> Result<(), String> {
    shared.check_poison().map_err(|error| error.to_string())?;
    // A panic must not leave writers waiting for a thread that is gone.
    let result = panic::catch_unwind(AssertUnwindSafe(|| checkpoint(shared, job)));
    let (why, may_try_again) = match result {
        Ok(Ok(())) => return Ok(()),
        // LMDB tells a write that was cut short, for want of room, by another error.
        Ok(Err(error)) => {
            let is_full = error.is_full() || shared.is_disk_full();
            let remedy = if is_full { error.remedy() } else { "see to the disk" };
            (format!("{error}; {remedy}"), is_full)
        }
        // Doing it again harms nothing, even if it was committed before it panicked.
        Err(_) => ("it panicked; please report this as a bug".to_owned(), true),
    };
    if may_try_again && !shared.base.is_given_up() {
        tracing::error!(why, "a checkpoint failed and will be tried again");
    } else {
        // A sync that failed is not asked again, here as in the log.
        shared.poison(&format!("a checkpoint failed: {why}"));
    }
    Err(why)
}

fn sync_in_background(shared: &Shared) {
    if shared.check_poison().is_err() {
        return;
    }
    // In this order: a group's file stands there before the group is published.
    let published = shared.published();
    let Some(file) = lock(&shared.unsynced).take() else { return };
    match file.sync() {
        Ok(()) => {
            shared.durable.fetch_max(published, Ordering::SeqCst);
        }
        Err(error) => shared.poison(&error.to_string()),
    }
}

fn checkpoint(shared: &Shared, job: &Job) -> Result<(), LayerError> {
    let mut layer = Layer::begin(&shared.base)?;
    for node in job.frozen.nodes().filter(|node| job.trees.has(node.tree())) {
        if let Some(seen) = Node::latest(node) {
            layer.apply(node.tree(), node.key(), seen.record())?;
        }
    }
    layer.retain(|tree| job.trees.has(tree))?;
    let contents = layer.commit(job.sequence)?;
    {
        let mut accounts = lock(&shared.accounts);
        accounts.checkpointed(contents);
        let active = Arc::clone(&shared.tables().active);
        shared.set_tables(Tables { active, frozen: None });
    }
    remove_segments(&shared.directory, &*shared.storage, job.keep_from);
    Ok(())
}

/// Removes the segments that the base has made needless. What cannot be removed now is removed
/// after the next checkpoint, or when the store is opened.
///
/// The base must be found under its name after a power failure: a compaction that was killed may
/// have given it that name, and not have synced it.
pub(super) fn remove_segments(directory: &Path, storage: &dyn LogStorage, keep_from: u64) {
    let listed = files::sync_directory(directory).and_then(|()| storage.list());
    let removed = listed.and_then(|segments| {
        for segment in segments.into_iter().filter(|segment| *segment < keep_from) {
            storage.remove(segment)?;
        }
        Ok(())
    });
    if let Err(error) = removed {
        tracing::warn!(%error, "an old segment of the log could not be removed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_failed_is_given_out_again_after_the_pause() {
        let signal = Signal::default();
        let frozen = Arc::clone(Memtable::create(0).table());
        signal.begin(Job { frozen, sequence: 1, trees: TreeMap::default(), keep_from: 1 });
        let (long, short) = (Duration::from_secs(3600), Duration::from_millis(1));
        let job = signal.next(None, long).flatten().expect("it is to be done");
        signal.finish(&job, Err("no room".to_owned()));
        assert!(signal.wait_for_checkpoint().is_err());
        assert!(signal.next(Some(long), short).is_some_and(|work| work.is_none()), "the pause");
        assert!(signal.next(None, long).flatten().is_some(), "the same again");
    }
}
