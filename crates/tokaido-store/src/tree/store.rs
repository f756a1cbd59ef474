//! The engine as a [`Store`], and what its snapshots and its writer share.

use std::{
    ffi::CString,
    fs::File,
    os::unix::ffi::OsStrExt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{Clock, DatabaseError, DatabaseId, ReadError, Snapshot, Store, WriteError, Writer};

use super::{
    catalog::{Names, Trees},
    lmdb::{Dbi, Environment},
    snapshot::TreeSnapshot,
    writer::{Committed, TreeWriter},
};

/// The durable engine; see [`open`](super::open).
pub struct TreeStore {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) environment: Environment,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) names: Names,
    pub(super) trees: Trees,
    pub(super) meta: Dbi,
    pub(super) expiry: Dbi,
    /// Given to the writer while there is one.
    committed: Mutex<Option<Committed>>,
    /// The failure after which it is unknown what is on disk.
    poison: Mutex<Option<String>>,
    directory: PathBuf,
    /// Locked, so that no other process opens the directory; unlocked when closed.
    _lock: File,
}

/// What [`open`](super::open) has found and made.
pub(super) struct Parts {
    pub(super) environment: Environment,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) names: Names,
    pub(super) trees: Trees,
    pub(super) meta: Dbi,
    pub(super) expiry: Dbi,
    pub(super) committed: Committed,
    pub(super) directory: PathBuf,
    pub(super) lock: File,
}

/// With less room than this, in bytes, a disk counts as full.
const DISK_ROOM_MIN: u64 = 64 << 10;

impl Shared {
    pub(super) fn poison(&self, why: &str) {
        tracing::error!(why, "the store refuses writes until it is restarted");
        let mut poison = self.poison.lock().unwrap_or_else(PoisonError::into_inner);
        poison.get_or_insert_with(|| why.to_owned());
    }

    pub(super) fn check_poison(&self) -> Result<(), WriteError> {
        let poison = self.poison.lock().unwrap_or_else(PoisonError::into_inner);
        match &*poison {
            None => Ok(()),
            Some(why) => Err(WriteError::Poisoned { why: why.clone() }),
        }
    }

    pub(super) fn give_back(&self, committed: Committed) {
        *self.committed.lock().unwrap_or_else(PoisonError::into_inner) = Some(committed);
    }

    pub(super) fn is_disk_full(&self) -> bool {
        let Ok(path) = CString::new(self.directory.as_os_str().as_bytes()) else { return false };
        // SAFETY: `statvfs` is plain data, for which all zeros is a value.
        let mut room: libc::statvfs = unsafe { std::mem::zeroed() };
        // SAFETY: the path is a C string and `room` a place for the answer.
        let code = unsafe { libc::statvfs(path.as_ptr(), &raw mut room) };
        code == 0 && room.f_bavail * room.f_frsize < DISK_ROOM_MIN
    }
}

impl TreeStore {
    pub(super) fn new(parts: Parts) -> Self {
        let shared = Shared {
            environment: parts.environment,
            clock: parts.clock,
            names: parts.names,
            trees: parts.trees,
            meta: parts.meta,
            expiry: parts.expiry,
            committed: Mutex::new(Some(parts.committed)),
            poison: Mutex::new(None),
            directory: parts.directory,
            _lock: parts.lock,
        };
        Self { shared: Arc::new(shared) }
    }
}

impl Store for TreeStore {
    fn database(&self, name: &str) -> Result<DatabaseId, DatabaseError> {
        self.shared.names.register(name)
    }

    fn find_database(&self, name: &str) -> Option<DatabaseId> {
        self.shared.names.find(name)
    }

    fn databases(&self) -> Vec<(DatabaseId, String)> {
        self.shared.names.all()
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError> {
        Ok(Box::new(TreeSnapshot::new(Arc::clone(&self.shared))?))
    }

    fn writer(&self) -> Result<Box<dyn Writer>, WriteError> {
        self.shared.check_poison()?;
        let mut committed = self.shared.committed.lock().unwrap_or_else(PoisonError::into_inner);
        let committed = committed.take().ok_or(WriteError::WriterBusy)?;
        Ok(Box::new(TreeWriter::new(Arc::clone(&self.shared), committed)))
    }
}
