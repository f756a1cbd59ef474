//! What is on disk beside the base: the log, how far it is synced, and whether it can be relied on.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{WriteError, mutex::lock};

use super::{
    LogFile, LogStorage, files, lock::StoreLock, log::LogPlace, writer_state::WriterState,
};

/// With fewer free bytes than this, a disk counts as full.
const DISK_ROOM_MIN: u64 = 64 << 10;

pub(super) struct Durable {
    pub(super) directory: PathBuf,
    pub(super) storage: Arc<dyn LogStorage>,
    /// The number of the store, which is in all its files.
    store: u64,
    /// The segment that was last written to, to be synced in the background.
    unsynced: Mutex<Option<Arc<dyn LogFile>>>,
    /// The last transaction that was synced.
    synced: AtomicU64,
    /// Given to the writer while there is one.
    writer_state: Mutex<Option<WriterState>>,
    /// The failure after which it is unknown what is on disk.
    poison: Mutex<Option<String>>,
    /// Locked, so that no other process opens the directory; unlocked when closed.
    _lock: StoreLock,
}

impl Durable {
    /// Takes the log that opening has found. Everything up to the transaction `synced` is known to
    /// be synced.
    pub(super) fn new(
        directory: PathBuf,
        storage: Arc<dyn LogStorage>,
        store: u64,
        synced: u64,
        writer_state: WriterState,
        lock: StoreLock,
    ) -> Self {
        Self {
            directory,
            storage,
            store,
            unsynced: Mutex::new(None),
            synced: AtomicU64::new(synced),
            writer_state: Mutex::new(Some(writer_state)),
            poison: Mutex::new(None),
            _lock: lock,
        }
    }

    pub(super) fn log_place(&self) -> LogPlace<'_> {
        LogPlace { directory: &self.directory, storage: &*self.storage, store: self.store }
    }

    /// The last transaction that was synced.
    pub(super) fn synced(&self) -> u64 {
        self.synced.load(Ordering::SeqCst)
    }

    /// Records that everything up to the transaction `sequence` has been synced.
    pub(super) fn set_synced(&self, sequence: u64) {
        self.synced.fetch_max(sequence, Ordering::SeqCst);
    }

    /// Leaves a segment that was written to for the next background sync.
    pub(super) fn sync_later(&self, file: Arc<dyn LogFile>) {
        *lock(&self.unsynced) = Some(file);
    }

    /// Syncs what was left for the background. It includes everything up to the transaction
    /// `published`, since a group's file is left here before the group is published.
    pub(super) fn sync_in_background(&self, published: u64) {
        if self.check_poison().is_err() {
            return;
        }
        let Some(file) = lock(&self.unsynced).take() else { return };
        match file.sync() {
            Ok(()) => self.set_synced(published),
            Err(error) => self.poison(&error.to_string()),
        }
    }

    pub(super) fn poison(&self, why: &str) {
        tracing::error!(why, "the store refuses writes until it is restarted");
        lock(&self.poison).get_or_insert_with(|| why.to_owned());
    }

    pub(super) fn check_poison(&self) -> Result<(), WriteError> {
        match &*lock(&self.poison) {
            None => Ok(()),
            Some(why) => Err(WriteError::Poisoned { why: why.clone() }),
        }
    }

    pub(super) fn take_writer_state(&self) -> Option<WriterState> {
        lock(&self.writer_state).take()
    }

    pub(super) fn give_writer_state_back(&self, state: WriterState) {
        *lock(&self.writer_state) = Some(state);
    }

    /// Bytes of the log that opening the store would read. Zero while there is a writer.
    pub(super) fn log_bytes(&self) -> u64 {
        lock(&self.writer_state).as_ref().map_or(0, |state| state.log.bytes())
    }

    /// Leaves the log so that the next opening has as little work as possible, unless there still
    /// is a writer, or it is unknown what is on disk.
    pub(super) fn close_log(&self) {
        if self.check_poison().is_err() {
            return;
        }
        let mut state = lock(&self.writer_state);
        let Some(state) = &mut *state else { return };
        let is_synced = self.synced() >= state.sequence;
        let closed = state.log.close(self.log_place(), is_synced.then_some(state.sequence));
        if let Err(error) = closed {
            tracing::warn!(%error, "the log could not be closed; opening it will take longer");
        }
    }

    pub(super) fn is_disk_full(&self) -> bool {
        files::room(&self.directory).is_ok_and(|room| room < DISK_ROOM_MIN)
    }
}
