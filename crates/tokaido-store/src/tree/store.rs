//! The engine as a [`Store`].

use std::sync::Arc;

use crate::{
    Capabilities, DatabaseError, DatabaseId, Observer, ObserverGuard, ReadError, Snapshot, Store,
    Usage, WriteError, Writer,
};

use super::{
    checkpointer::{Checkpointer, stop_checkpointer},
    shared::Shared,
    snapshot::TreeSnapshot,
    usage,
    writer::TreeWriter,
};

/// The durable engine; see [`open`](super::open).
pub struct TreeStore {
    pub(super) shared: Arc<Shared>,
}

/// Bytes of log that a process may leave if it has only read, so that the next such process need
/// not read them again. Taking a log into the base takes as long as reading 3 MB of it.
const LOG_READ_AGAIN_MAX: u64 = 64 << 10;

impl TreeStore {
    /// Moves everything that was committed into the base, and so out of the log: the next opening
    /// then has nothing to replay. Waits until that is done.
    ///
    /// # Errors
    /// [`WriteError::WriterBusy`] while there is a writer, and if the engine fails.
    pub fn checkpoint(&self) -> Result<(), WriteError> {
        TreeWriter::take(&self.shared)?.checkpoint(0)
    }

    /// Merges all runs into the base. The store must not be written to any more.
    pub(super) fn merge_runs(&self) -> Result<(), WriteError> {
        stop_checkpointer(&self.shared);
        let merged = Checkpointer::new(&self.shared).merge_all();
        merged.map_err(|message| WriteError::Engine { message })
    }

    /// Ends the checkpoint in progress, and writes the log into the base if it is long. Otherwise,
    /// a program that opens a store, writes a little and closes it, again and again, would read
    /// all of it back each time.
    fn shorten_log(&self) {
        let mut left_max = self.shared.options.log_left_bytes_max;
        if self.shared.visible.is_as_found() {
            left_max = left_max.min(LOG_READ_AGAIN_MAX);
        }
        let is_short = self.shared.durable.log_bytes() <= left_max;
        if is_short && self.shared.visible.tables().frozen.is_none() {
            return;
        }
        let writer = TreeWriter::take(&self.shared);
        match writer.and_then(|mut writer| writer.checkpoint(left_max.saturating_add(1))) {
            // A writer that outlives the store keeps the log to itself.
            Ok(()) | Err(WriteError::WriterBusy | WriteError::Poisoned { .. }) => {}
            Err(error) => tracing::warn!(
                %error,
                "the log stays as long as it is, and opening the store will take longer"
            ),
        }
    }
}

impl Store for TreeStore {
    fn database(&self, name: &str) -> Result<DatabaseId, DatabaseError> {
        self.shared.names.hold(name, self.shared.options.databases_max)
    }

    fn find_database(&self, name: &str) -> Option<DatabaseId> {
        self.shared.names.find(name)
    }

    fn internal_database(&self) -> Option<DatabaseId> {
        self.shared.names.hold_internal().ok()
    }

    fn databases_dropped(&self) -> u64 {
        self.shared.names.dropped()
    }

    fn databases(&self) -> Vec<(DatabaseId, String)> {
        self.shared.names.all()
    }

    fn capabilities(&self, _: DatabaseId) -> Capabilities {
        Capabilities::TREE
    }

    fn usage(&self) -> Usage {
        usage::usage(&self.shared)
    }

    fn has_upkeep_request(&self) -> bool {
        self.shared.upkeep_requests.has_any()
    }

    fn observe(&self, observer: Arc<dyn Observer>) -> Option<ObserverGuard> {
        Some(self.shared.observers.add(observer))
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError> {
        Ok(Box::new(TreeSnapshot::new(Arc::clone(&self.shared))?))
    }

    fn writer(&self) -> Result<Box<dyn Writer>, WriteError> {
        Ok(Box::new(TreeWriter::take(&self.shared)?))
    }
}

impl Drop for TreeStore {
    fn drop(&mut self) {
        self.shorten_log();
        stop_checkpointer(&self.shared);
        self.shared.durable.close_log();
    }
}
