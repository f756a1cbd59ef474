//! Who may use the directory of a store: the locks of processes.
//!
//! | file | exclusive | shared |
//! |---|---|---|
//! | `tokaido.lock` | whoever opens the store | a check of its files, which must not change meanwhile |
//! | the directory itself | whoever replaces `data.mdb` | whoever reads it beside the writing process |
//! | `data.mdb` | a checkpoint, while it commits | whoever needs a base without commits meanwhile |
//!
//! The operating system releases the locks when a process ends, however it ends.

use std::{
    fs::{self, File, Metadata, TryLockError},
    io,
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use crate::{OpenError, mutex};

use super::base::DATA_FILE;

/// The file that the process using the store keeps locked. It is empty, unless a program that wrote
/// seals has closed the store.
pub(super) const LOCK_FILE: &str = "tokaido.lock";

/// The stores whose LMDB environment this process may have open. LMDB's own locks belong to the
/// process and not to the handle: if an environment were opened a second time, closing that handle
/// would release the locks of the first one.
static OPEN_HERE: Mutex<Vec<Arc<Identity>>> = Mutex::new(Vec::new());

/// What identifies a store: its lock file, or its directory.
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
        // The lock file may have been removed and created again.
        let directory = |of: &Self| fs::metadata(&of.directory).map(id).ok();
        Ok(directory(self).is_some_and(|own| directory(other) == Some(own)))
    }
}

/// A lock could not be taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum LockError {
    #[error("somebody else has it")]
    Held,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl LockError {
    /// The error for a caller that wants to open the store in `directory`.
    pub(super) fn of_opening(self, directory: &Path) -> OpenError {
        self.or(OpenError::Locked { directory: directory.to_owned() }, OpenError::io(directory))
    }

    /// `held` if somebody else has the lock, or what `io` makes of the error in asking for it.
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
    /// Takes the right for the store in a directory, unless somebody in this process has it. Makes
    /// the lock file if there is none.
    pub(super) fn take(directory: &Path) -> Result<Self, LockError> {
        let path = directory.join(LOCK_FILE);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => open_or_create(&path)?,
            file => file?,
        };
        Self::take_by(directory, file)
    }

    /// Like [`take`](Self::take); `lock` is the lock file.
    fn take_by(directory: &Path, lock: File) -> Result<Self, LockError> {
        let identity = Arc::new(Identity { lock, directory: directory.to_owned() });
        let mut open = mutex::lock(&OPEN_HERE);
        // Usually there is no other store to compare with, which would take system calls.
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
    /// Takes the store in `directory`, which must exist; makes the lock file.
    pub(super) fn take(directory: &Path) -> Result<Self, LockError> {
        let file = open_or_create(&directory.join(LOCK_FILE))?;
        file.try_lock()?;
        remove_seal(&file)?;
        Ok(Self { _open: OpenHere::take_by(directory, file)? })
    }
}

/// Removes the seal that an older program may have left in the lock file. It states that the log is
/// empty, and that program would still believe it after this one has written to the log.
fn remove_seal(file: &File) -> io::Result<()> {
    if file.metadata()?.len() > 0 {
        // The seal is broken durably before the file is emptied, so that an empty file can be
        // relied on, also after a power failure.
        file.write_all_at(b"-", 0)?;
        file.sync_data()?;
        file.set_len(0)?;
    }
    Ok(())
}

/// Opens a lock file, and makes it if it does not exist.
fn open_or_create(path: &Path) -> io::Result<File> {
    File::options().create(true).read(true).write(true).truncate(false).open(path)
}

/// Keeps everybody from opening the store for writing, until it is dropped. Changes no file.
pub(super) fn keep_still(directory: &Path) -> Result<File, LockError> {
    let file = File::open(directory.join(LOCK_FILE))?;
    file.try_lock_shared()?;
    Ok(file)
}

/// Waits for a commit in progress, and keeps checkpoints from committing, until it is dropped.
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
    /// The lock of the store in `directory`.
    pub(super) fn of(directory: &Path) -> io::Result<Self> {
        Ok(Self { data: File::open(directory.join(DATA_FILE))? })
    }

    /// Runs `commit` while nobody blocks commits. Waits for those who do.
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

/// The right to replace `data.mdb`, until it is dropped, for a caller that has the store open.
pub(super) fn take_base(directory: &Path) -> Result<File, LockError> {
    let handle = File::open(directory)?;
    handle.try_lock()?;
    Ok(handle)
}
