//! Checkpoints: a frozen memtable goes into the base, in order, and its part of the log goes away.
//!
//! They run on a thread of their own, the *checkpointer*, which also syncs the log in the background
//! where the store was opened for that. Readers and the writer go on meanwhile.

use std::{
    io,
    panic::{self, AssertUnwindSafe},
    path::Path,
    sync::Arc,
    thread,
    time::Instant,
};

use crate::mutex::lock;

use super::{
    LogStorage,
    base::{BaseError, Layer},
    catalog::FIRST_TREE,
    files,
    memtable::Node,
    options::SyncMode,
    shared::Shared,
    signal::Job,
};

/// Starts the checkpointer, unless it runs or was told to stop: a writer that outlives its store gets
/// no other one. Many lives of a store are too short to need one.
pub(super) fn start_checkpointer(shared: &Arc<Shared>) -> io::Result<()> {
    let mut checkpointer = lock(&shared.signal.thread);
    // Under the lock: `stop_checkpointer` looks for the checkpointer after it has told it to stop.
    if checkpointer.is_none() && shared.signal.check_open().is_ok() {
        let shared = Arc::clone(shared);
        let thread = thread::Builder::new().name("tokaido-checkpointer".to_owned());
        *checkpointer = Some(thread.spawn(move || run(&shared))?);
    }
    Ok(())
}

/// Ends the checkpointer, if it runs, after what it is doing.
pub(super) fn stop_checkpointer(shared: &Shared) {
    shared.signal.stop();
    let checkpointer = lock(&shared.signal.thread).take();
    if checkpointer.is_some_and(|checkpointer| checkpointer.join().is_err()) {
        tracing::error!("the thread that runs checkpoints has panicked");
    }
}

/// The checkpointer's thread.
fn run(shared: &Shared) {
    let interval = match shared.options.sync {
        SyncMode::Interval(interval) => Some(interval),
        SyncMode::Always | SyncMode::Os => None,
    };
    while let Some(work) = shared.signal.next(interval, shared.options.checkpoint_retry) {
        shared.durable.sync_in_background(shared.visible.published());
        let Some(job) = work else { continue };
        let result = try_checkpoint(shared, &job);
        shared.signal.finish(&job, result);
    }
    shared.durable.sync_in_background(shared.visible.published());
}

/// Does a checkpoint, or says why it could not be done.
fn try_checkpoint(shared: &Shared, job: &Job) -> Result<(), String> {
    shared.durable.check_poison().map_err(|error| error.to_string())?;
    if let Err(error) = shared.visible.hold_base() {
        let why = error.to_string();
        tracing::error!(why, "a checkpoint could not begin and will be tried again");
        return Err(why);
    }
    // A panic must not leave writers waiting for a thread that is gone.
    let result = panic::catch_unwind(AssertUnwindSafe(|| checkpoint(shared, job)));
    let (why, may_try_again) = match result {
        Ok(Ok(())) => return Ok(()),
        // LMDB tells a write that was cut short, for want of room, by another error.
        Ok(Err(error)) => {
            let is_full = error.is_full() || shared.durable.is_disk_full();
            let remedy = if is_full { error.remedy() } else { "see to the disk" };
            // A lock that was not given has changed nothing.
            (format!("{error}; {remedy}"), is_full || matches!(error, BaseError::Io(_)))
        }
        // Doing it again harms nothing, even if it was committed before it panicked.
        Err(_) => ("it panicked; please report this as a bug".to_owned(), true),
    };
    if may_try_again && !shared.base.is_given_up() {
        tracing::error!(why, "a checkpoint failed and will be tried again");
    } else {
        // A sync that failed is not asked again, here as in the log.
        shared.durable.poison(&format!("a checkpoint failed: {why}"));
    }
    Err(why)
}

/// The memtable goes into the base in pieces, in order. The base has the sequence of the last checkpoint until the
/// last of them, so whoever opens it in between replays all of the log, and writes again what is there. Whoever
/// copies it in between needs the log up to the last transaction of the memtable.
fn checkpoint(shared: &Shared, job: &Job) -> Result<(), BaseError> {
    let commits = &shared.base.commits;
    let live = job.trees.keyspaces();
    let is_live = |tree| tree < FIRST_TREE || live.contains_key(&tree);
    let mut syncing = Syncing::new(shared);
    shared.base.forget_dead_readers()?;
    let mut layer = Layer::begin(&shared.base)?;
    // First, so that those that come find the room of those that go.
    layer.retain(is_live)?;
    // What an attempt before this one has committed is not written again: its pages would be needed twice.
    let nodes = job.frozen.nodes().enumerate().skip(shared.pace.done());
    for (done, node) in nodes.filter(|(_, node)| is_live(node.tree())) {
        if layer.pages_changed() >= shared.options.checkpoint_pages.max(1) {
            commits.hold(|| layer.commit_piece())?;
            shared.pace.advance(done);
            syncing.sync_if_due();
            layer = Layer::begin(&shared.base)?;
        }
        if let Some(seen) = Node::latest(node) {
            layer.apply(node.tree(), node.key(), seen.record())?;
        }
    }
    let contents = commits.hold(|| layer.commit(job.sequence, job.keep_from))?;
    shared.visible.checkpointed(contents);
    remove_segments(&shared.durable.directory, &*shared.durable.storage, job.keep_from);
    Ok(())
}

/// Syncs of the log in the background that become due while a checkpoint is under way.
struct Syncing<'s> {
    shared: &'s Shared,
    last: Instant,
}

impl<'s> Syncing<'s> {
    fn new(shared: &'s Shared) -> Self {
        Self { shared, last: Instant::now() }
    }

    fn sync_if_due(&mut self) {
        let SyncMode::Interval(interval) = self.shared.options.sync else { return };
        if self.last.elapsed() >= interval {
            self.shared.durable.sync_in_background(self.shared.visible.published());
            self.last = Instant::now();
        }
    }
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
