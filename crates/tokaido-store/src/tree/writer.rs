//! The one writer: begins, commits and rolls back transactions of a group, and flushes the group.

use std::{
    io, mem,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use crate::{CommitError, CommitNumber, WriteError, WriteTransaction, Writer};

use super::{
    checkpointer::start_checkpointer,
    files,
    log::{LogEnd, LogError},
    memtable::Memtable,
    options::SyncMode,
    shared::Shared,
    signal::{Job, Reason},
    transaction::TreeTransaction,
    visible::Present,
    writer_state::WriterState,
};

/// A memtable is made for at most one node per this many bytes of its limit. An index takes up to 32
/// bytes for each node that it is made for, so it takes at most a quarter of the limit. Otherwise,
/// after a group that exceeded the limit by far, the next memtable would be full before the first
/// write. The smallest nodes take about this many bytes, so within the limit nothing is cut.
const BYTES_PER_NODE_MIN: usize = 128;

/// A memtable is nearly full when one part in this many is left.
const NEARLY_FULL_PART: usize = 8;

/// When nothing was written for this long, the contents of the memtable go to disk.
const REST: Duration = Duration::from_secs(3);

/// A smaller memtable stays: it would free little memory, and pages of the base would be written for it.
const TIDIED_BYTES_MIN: usize = 4 << 20;

pub(super) struct TreeWriter {
    /// Declared before `shared`.
    transaction: Option<TreeTransaction>,
    is_open: bool,
    log: LogEnd,
    /// The last transaction that was flushed, and the last that the group has committed.
    flushed: CommitNumber,
    committed: CommitNumber,
    /// Whether a sync of the log was requested because the memtable is nearly full.
    has_wanted_sync: bool,
    /// The version of the tables in the transaction's view.
    tables_version: u64,
    /// Whether that view has released the base because nothing was written for a while.
    has_let_go: bool,
    resting: Resting,
    /// Nodes of the memtable when the last group began.
    nodes_before: usize,
    shared: Arc<Shared>,
}

/// How long nothing has been written.
struct Resting {
    /// The last flushed transaction at the last check, and since when it has been the last.
    flushed: CommitNumber,
    since: Instant,
    /// Whether it was already reported that the memtable cannot go into the base.
    has_failed: bool,
}

impl Resting {
    fn since_now(flushed: CommitNumber) -> Self {
        Self { flushed, since: Instant::now(), has_failed: false }
    }
}

// SAFETY: only the nodes that the transaction and the group remember keep it from being `Send` by
// itself. They lie in the arena of the memtable, which moves along with them.
unsafe impl Send for TreeWriter {}

impl TreeWriter {
    /// Takes the right to write.
    pub(super) fn take(shared: &Arc<Shared>) -> Result<Self, WriteError> {
        shared.durable.check_poison()?;
        let mut state = shared.durable.take_writer_state().ok_or(WriteError::WriterBusy)?;
        let Present { tables, tables_version, .. } = match shared.visible.renew(&mut state.base) {
            Ok(present) => present,
            Err(error) => {
                shared.durable.give_writer_state_back(state);
                return Err(error.into());
            }
        };
        shared.visible.set_writer_version(Some(tables_version));
        let (log, sequence) = (mem::take(&mut state.log), state.sequence);
        Ok(Self {
            transaction: Some(TreeTransaction::new(Arc::clone(shared), state, tables)),
            is_open: false,
            log,
            flushed: sequence,
            committed: sequence,
            has_wanted_sync: false,
            tables_version,
            has_let_go: false,
            resting: Resting::since_now(sequence),
            nodes_before: 0,
            shared: Arc::clone(shared),
        })
    }

    fn open_transaction(&mut self) -> &mut TreeTransaction {
        self.transaction.as_mut().expect("it is given up only on drop")
    }

    /// Notes that the transaction's view has this version of the tables, or a later one.
    fn has_followed(&mut self, version: u64) {
        self.tables_version = version;
        self.has_let_go = false;
        self.shared.visible.set_writer_version(Some(version));
    }

    /// Releases the base, whose pages could not be reused otherwise. The next transaction takes a new view.
    fn let_go(&mut self) {
        self.open_transaction().view.base.release();
        self.has_let_go = true;
        self.shared.visible.set_writer_version(None);
    }

    /// Between two groups: follows a checkpoint that has ended, and begins one if the memtable is
    /// full. If one is still under way then, both memtables are full, and it is waited for.
    fn maybe_checkpoint(&mut self) -> Result<(), WriteError> {
        let limit = self.shared.options.memtable_bytes;
        loop {
            let version = self.shared.visible.tables_version();
            if version != self.tables_version || self.has_let_go {
                self.open_transaction().follow_checkpoint()?;
                self.has_followed(version);
            }
            let transaction = self.open_transaction();
            let bytes = transaction.memtable.table().bytes();
            if bytes < limit {
                let pause = self.pause();
                self.nodes_before = self.open_transaction().memtable.table().len();
                if let Some(pause) = pause {
                    thread::sleep(pause);
                }
                return Ok(());
            }
            if transaction.view.tables.frozen.is_none() {
                return self.freeze(self.nodes_expected(), Reason::Full);
            }
            self.wait_for_checkpoint()?;
        }
    }

    /// How long to pause, so that the memtable is full when the checkpoint under way has ended, not before, and so that
    /// there are not too many runs when a merge of them has ended.
    fn pause(&self) -> Option<Duration> {
        let transaction = self.transaction.as_ref()?;
        let tables = &transaction.view.tables;
        let (bytes, nodes) =
            (transaction.memtable.table().bytes(), transaction.memtable.table().len());
        // The memtable may be a new one.
        let new_nodes = nodes.checked_sub(self.nodes_before).unwrap_or(nodes);
        let for_merge = self.shared.merging.pause(&tables.runs, bytes);
        let limit = self.shared.options.memtable_bytes;
        let frozen = tables.frozen.as_ref();
        frozen.and_then(|_| self.shared.pace.pause(bytes, limit, new_nodes)).max(for_merge)
    }

    /// Waits for the checkpoint under way.
    fn wait_for_checkpoint(&self) -> Result<(), WriteError> {
        let waited = self.shared.signal.wait_for_checkpoint();
        // After some failures nothing may be written any more.
        waited.or_else(|error| self.shared.durable.check_poison().and(Err(error)))
    }

    /// Checkpoints everything that was flushed into the base, if it takes at least `log_bytes_min`
    /// of the log. Waits until that, or a checkpoint that is under way, is done.
    pub(super) fn checkpoint(&mut self, log_bytes_min: u64) -> Result<(), WriteError> {
        self.shared.durable.check_poison()?;
        loop {
            let version = self.shared.visible.tables_version();
            self.open_transaction().follow_checkpoint()?;
            self.has_followed(version);
            let view = &self.open_transaction().view;
            if view.tables.frozen.is_some() {
                self.wait_for_checkpoint()?;
            } else if view.base.sequence() < self.flushed && self.log.bytes() >= log_bytes_min {
                self.freeze(self.nodes_expected(), Reason::Wanted)?;
            } else {
                return Ok(());
            }
        }
    }

    /// How many nodes the next memtable is made for. It will hold about as much as this one.
    fn nodes_expected(&self) -> usize {
        let len = self.transaction.as_ref().map_or(0, |tx| tx.memtable.table().len());
        len.min(self.shared.options.memtable_bytes / BYTES_PER_NODE_MIN)
    }

    /// Begins a checkpoint: freezes the memtable and replaces it by a new one, made for this many nodes, with a new
    /// segment of the log.
    fn freeze(&mut self, nodes: usize, reason: Reason) -> Result<(), WriteError> {
        start_checkpointer(&self.shared).map_err(|error| WriteError::Engine {
            message: format!("no thread could be started for a checkpoint ({error}); try again"),
        })?;
        let untried = |error: io::Error| WriteError::Engine {
            message: format!(
                "no new segment of the log could be made ({error}); free some space, or see to the \
                 disk, and try again"
            ),
        };
        // Frames of the next segment must not be durable before those of this one.
        self.log.make_durable(self.shared.durable.log_place()).map_err(|error| match error {
            LogError::Unchanged(error) => untried(error),
            LogError::Undetermined(error) => self.poison(&error),
        })?;
        self.shared.durable.set_synced(self.flushed);
        let keep_from = self.log.begin_segment(self.shared.durable.log_place()).map_err(untried)?;
        let memtable = Memtable::create(nodes);
        let (flushed, shared) = (self.flushed, Arc::clone(&self.shared));
        let transaction = self.open_transaction();
        let active = Arc::clone(memtable.table());
        transaction.memtable = memtable;
        let frozen = Arc::clone(&transaction.view.tables.active);
        let trees = transaction.trees.clone();
        shared.visible.freeze(active, Arc::clone(&frozen));
        shared.pace.begin(frozen.len());
        shared.signal.begin(Job { frozen, sequence: flushed, trees, keep_from, reason });
        let version = shared.visible.tables_version();
        self.has_wanted_sync = false;
        self.open_transaction().follow_checkpoint()?;
        self.has_followed(version);
        Ok(())
    }

    fn freeze_at_rest(&mut self) -> Result<(), WriteError> {
        self.shared.durable.check_poison()?;
        self.shared.signal.check_open()?;
        // Nothing is known about the writes to come.
        self.freeze(0, Reason::Rest)
    }

    /// Writes the contents of the memtable to disk, if nothing was written for long enough.
    fn tidy_memtable(&mut self) -> Result<(), WriteError> {
        let has_estimates = self.shared.visible.has_estimates();
        let transaction = self.open_transaction();
        let table = transaction.memtable.table();
        // Even an empty memtable may be large: it has room for as much as the one before it.
        let is_large = table.bytes() >= TIDIED_BYTES_MIN;
        let is_worth_it = is_large && table.len() > 0 || has_estimates;
        let is_free = transaction.view.tables.frozen.is_none();
        if !is_worth_it || !is_free || self.resting.since.elapsed() < REST {
            return Ok(());
        }
        // After a failure, it is tried again after the same time.
        self.resting.since = Instant::now();
        let frozen = self.freeze_at_rest();
        match frozen.is_err() && mem::replace(&mut self.resting.has_failed, true) {
            true => Ok(()),
            false => frozen,
        }
    }

    /// Requests a sync of the log in the background when the memtable is nearly full, so that little of it is left to wait
    /// for when the next memtable takes over.
    fn sync_before_freezing(&mut self) {
        let limit = self.shared.options.memtable_bytes;
        let bytes = self.transaction.as_ref().map_or(0, |tx| tx.memtable.table().bytes());
        if !self.has_wanted_sync && bytes >= limit - limit / NEARLY_FULL_PART {
            self.has_wanted_sync = true;
            self.shared.signal.want_sync();
        }
    }

    fn poison(&self, error: &io::Error) -> WriteError {
        let why = error.to_string();
        self.shared.durable.poison(&why);
        WriteError::Poisoned { why }
    }

    /// Writes the group to the log, as durably as the store was opened for.
    fn log_group(&mut self) -> Result<(), CommitError> {
        self.log.open(self.shared.durable.log_place()).map_err(|error| self.failure(&error))?;
        let durable = self.shared.durable.synced();
        let transaction = self.transaction.as_mut().expect("it is given up only on drop");
        match self.log.append(&mut transaction.group.frame, durable) {
            Ok(()) => {}
            Err(LogError::Unchanged(error)) => return Err(self.failure(&error)),
            Err(LogError::Undetermined(error)) => return Err(self.undetermined(&error)),
        }
        let synced = match self.shared.options.sync {
            SyncMode::Always => self.log.written().sync(),
            SyncMode::Interval(_) => {
                self.shared.durable.sync_later(self.log.written().file());
                self.sync_before_freezing();
                return Ok(());
            }
            SyncMode::Os => return Ok(()),
        };
        // After a failed sync the system may have dropped the pages: the success of a retry would be a lie.
        synced.map_err(|error| self.undetermined(&error))?;
        self.shared.durable.set_synced(self.committed);
        Ok(())
    }

    fn failure(&self, error: &io::Error) -> CommitError {
        match files::is_full(error) || self.shared.durable.is_disk_full() {
            true => CommitError::DiskFull,
            false => CommitError::Failed { message: error.to_string() },
        }
    }

    fn undetermined(&self, error: &io::Error) -> CommitError {
        let message = error.to_string();
        self.shared.durable.poison(&message);
        CommitError::Undetermined { message }
    }
}

impl Writer for TreeWriter {
    fn begin(&mut self) -> Result<&mut dyn WriteTransaction, WriteError> {
        assert!(!self.is_open, "a transaction is open already");
        self.shared.durable.check_poison()?;
        if self.committed == self.flushed {
            self.shared.signal.check_open()?;
            self.maybe_checkpoint()?;
        }
        self.is_open = true;
        let number = self.committed + 1;
        let transaction = self.open_transaction();
        transaction.begin(number);
        Ok(transaction)
    }

    fn transaction(&mut self) -> &mut dyn WriteTransaction {
        assert!(self.is_open, "no transaction is open");
        self.open_transaction()
    }

    fn commit(&mut self) -> Result<CommitNumber, CommitError> {
        assert!(mem::take(&mut self.is_open), "no transaction is open");
        let transaction = self.open_transaction();
        let number = transaction.number;
        if transaction.commit() {
            self.committed = number;
        }
        Ok(self.committed)
    }

    fn rollback(&mut self) -> Result<(), CommitError> {
        if mem::take(&mut self.is_open) {
            self.open_transaction().rollback();
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), CommitError> {
        assert!(!self.is_open, "a transaction is open");
        if self.committed == self.flushed {
            return Ok(());
        }
        if let Err(error) = self.log_group() {
            self.committed = self.flushed;
            self.open_transaction().rollback_group();
            return Err(error);
        }
        self.flushed = self.committed;
        self.open_transaction().publish();
        Ok(())
    }

    fn tidy(&mut self) -> Result<(), WriteError> {
        if self.is_open || self.committed != self.flushed || self.resting.flushed != self.flushed {
            self.resting = Resting::since_now(self.flushed);
            return Ok(());
        }
        let tidied = self.tidy_memtable();
        self.let_go();
        tidied
    }

    /// With `SyncMode::Always`, every flush syncs. In all modes, the next memtable begins with a new segment of the
    /// log, and when it is full, too, the writer waits for the checkpoint. The group after a checkpoint frees the
    /// memory of a whole memtable.
    fn may_wait(&self) -> bool {
        let Some(transaction) = &self.transaction else { return true };
        let options = &self.shared.options;
        options.sync == SyncMode::Always
            || self.tables_version != self.shared.visible.tables_version()
            || transaction.memtable.table().bytes() >= options.memtable_bytes
            || self.pause().is_some()
    }
}

impl Drop for TreeWriter {
    fn drop(&mut self) {
        let Some(mut transaction) = self.transaction.take() else { return };
        transaction.rollback();
        transaction.rollback_group();
        let TreeTransaction { memtable, next_tree, trees, view, follower, .. } = transaction;
        self.shared.durable.give_writer_state_back(WriterState {
            memtable,
            log: mem::take(&mut self.log),
            sequence: self.flushed,
            next_tree,
            trees,
            base: view.release(),
            follower,
        });
        self.shared.visible.set_writer_version(None);
    }
}

#[cfg(test)]
mod tests;
