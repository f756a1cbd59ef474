//! Who may use the directory of a store: the locks of processes.
//!
//! | file | exclusive | shared |
//! |---|---|---|
//! | `tokaido.lock` | whoever opens the store | a check of its files, for which they must not change |
//! | the directory itself | who replaces `data.mdb` | who reads it beside the process that writes |
//! | `data.mdb` | a checkpoint, while it commits | who needs a base to which nothing is committed meanwhile |
//!
//! The system gives the locks back when a process ends, however it ends.

use std::{
    fs::{self, File, Metadata, TryLockError},
    io,
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use crate::{OpenError, mutex};

use super::base::DATA_FILE;

/// The file that the process which has the store keeps locked. It is empty, unless a program that
/// wrote seals has closed the store.
pub(super) const LOCK_FILE: &str = "tokaido.lock";

/// The stores whose LMDB environment this process may have open. LMDB's own locks belong to the
/// process and not to the handle: were one opened a second time, closing that handle would take the
/// locks from under the first one.
static OPEN_HERE: Mutex<Vec<Arc<Identity>>> = Mutex::new(Vec::new());

/// By what a store is known again: the file of its lock, or its directory.
struct Identity {
    lock: File,
    directory: PathBuf,
}

impl Identity {
    fn is_same(&self, other: &Self) -> io::Result<bool> {
        let id = |file: Metadata| (file.dev(), file.ino());
        if self.lock.metadata().map(id)? == other.lock.metadata().map(id)? {
            return Ok(true);
        }
        // The file of a lock may have been removed, and made anew.
        let directory = |of: &Self| fs::metadata(&of.directory).map(id).ok();
        Ok(directory(self).is_some_and(|own| directory(other) == Some(own)))
    }
}

/// A lock was not given.
#[derive(Debug, thiserror::Error)]
pub(super) enum LockError {
    #[error("somebody else has it")]
    Held,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl LockError {
    /// What it says to whoever wants to open the store in `directory`.
    pub(super) fn of_opening(self, directory: &Path) -> OpenError {
        self.or(OpenError::Locked { directory: directory.to_owned() }, OpenError::io(directory))
    }

    /// `held` if somebody else has it, or what `io` makes of why it could not be asked for.
    pub(super) fn or<E>(self, held: E, io: impl FnOnce(io::Error) -> E) -> E {
        match self {
            Self::Held => held,
            Self::Io(error) => io(error),
        }
    }
}

impl From<TryLockError> for LockError {
    fn from(error: TryLockError) -> Self {
        match error {
            TryLockError::WouldBlock => Self::Held,
            TryLockError::Error(error) => Self::Io(error),
        }
    }
}

/// The right of this process to open the LMDB environment of a store, until it is dropped.
pub(super) struct OpenHere {
    identity: Arc<Identity>,
}

impl OpenHere {
    /// Takes it for the store of a directory, unless somebody in this process has it. Makes the
    /// file of its lock if there is none.
    pub(super) fn take(directory: &Path) -> Result<Self, LockError> {
        let path = directory.join(LOCK_FILE);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => open_or_create(&path)?,
            file => file?,
        };
        Self::take_by(directory, file)
    }

    /// As [`take`](Self::take); `lock` is the file of the lock.
    fn take_by(directory: &Path, lock: File) -> Result<Self, LockError> {
        let identity = Arc::new(Identity { lock, directory: directory.to_owned() });
        let mut open = mutex::lock(&OPEN_HERE);
        // Usually there is nobody else to be compared with, which would take calls to the system.
        for other in &*open {
            if identity.is_same(other)? {
                return Err(LockError::Held);
            }
        }
        open.push(Arc::clone(&identity));
        Ok(Self { identity })
    }
}

impl Drop for OpenHere {
    fn drop(&mut self) {
        mutex::lock(&OPEN_HERE).retain(|other| !Arc::ptr_eq(other, &self.identity));
    }
}

/// The right to write to a store, until it is dropped.
pub(super) struct StoreLock {
    _open: OpenHere,
}

impl StoreLock {
    /// Takes the store of `directory`, which is there; makes the lock's file.
    pub(super) fn take(directory: &Path) -> Result<Self, LockError> {
        let file = open_or_create(&directory.join(LOCK_FILE))?;
        file.try_lock()?;
        remove_seal(&file)?;
        Ok(Self { _open: OpenHere::take_by(directory, file)? })
    }
}

/// Removes the seal that an older program may have left in the file of the lock: its word that the
/// log is empty, which it would still believe after this program has written there.
fn remove_seal(file: &File) -> io::Result<()> {
    if file.metadata()?.len() > 0 {
        // The seal is broken durably before the file is emptied: whoever finds an empty file can rely
        // on it, also after a power failure.
        file.write_all_at(b"-", 0)?;
        file.sync_data()?;
        file.set_len(0)?;
    }
    Ok(())
}

/// Opens the file of a lock, and makes it if nobody was faster.
fn open_or_create(path: &Path) -> io::Result<File> {
    File::options().create(true).read(true).write(true).truncate(false).open(path)
}

/// Keeps everybody from opening the store to write, until it is dropped. Changes no file.
pub(super) fn keep_still(directory: &Path) -> Result<File, LockError> {
    let file = File::open(directory.join(LOCK_FILE))?;
    file.try_lock_shared()?;
    Ok(file)
}

/// Waits for a commit that is under way, and keeps checkpoints from committing, until it is dropped.
pub(super) fn keep_commits_off(directory: &Path) -> io::Result<File> {
    let data = File::open(directory.join(DATA_FILE))?;
    data.lock_shared()?;
    Ok(data)
}

/// The right of checkpoints to commit to the base.
#[derive(Debug)]
pub(super) struct CommitLock {
    data: File,
}

impl CommitLock {
    /// That of the store in `directory`.
    pub(super) fn of(directory: &Path) -> io::Result<Self> {
        Ok(Self { data: File::open(directory.join(DATA_FILE))? })
    }

    /// Runs `commit` while nobody keeps commits off. Waits for those who do.
    pub(super) fn hold<T, E: From<io::Error>>(
        &self,
        commit: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.data.lock()?;
        let committed = commit();
        self.data.unlock()?;
        committed
    }
}

/// Keeps everybody from replacing `data.mdb`, until it is dropped.
pub(super) fn keep_base(directory: &Path) -> Result<File, LockError> {
    let handle = File::open(directory)?;
    handle.try_lock_shared()?;
    Ok(handle)
}

/// The right to replace `data.mdb`, until it is dropped, for whoever has the store.
pub(super) fn take_base(directory: &Path) -> Result<File, LockError> {
    let handle = File::open(directory)?;
    handle.try_lock()?;
    Ok(handle)
}
