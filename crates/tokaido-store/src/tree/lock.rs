//! Who may use the directory of a store: the locks of processes.
//!
//! | file | exclusive | shared |
//! |---|---|---|
//! | `tokaido.lock` | whoever opens the store to write | a check that wants it to stand still |
//! | the directory itself | who replaces `data.mdb` | who reads it beside the process that writes |
//!
//! The system gives the locks back when a process ends, however it ends.

use std::{
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::Mutex,
};

use super::shared;

/// The file that the process which has the store keeps locked.
pub(super) const LOCK_FILE: &str = "tokaido.lock";

/// The directories whose LMDB environment this process has open, by device and inode. LMDB's own
/// locks belong to the process and not to the handle: were one opened a second time, closing that
/// handle would take the locks from under the first one.
static OPEN_HERE: Mutex<Vec<FileId>> = Mutex::new(Vec::new());

type FileId = (u64, u64);

/// A lock was not given.
#[derive(Debug)]
pub(super) enum LockError {
    /// Somebody else has it.
    Held,
    Io(io::Error),
}

impl From<io::Error> for LockError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
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

/// The right of this process to open the LMDB environment of a directory, until it is dropped.
pub(super) struct OpenHere {
    id: FileId,
}

impl OpenHere {
    /// Takes it, unless somebody in this process has it.
    pub(super) fn take(directory: &Path) -> Result<Self, LockError> {
        let metadata = fs::metadata(directory)?;
        let id = (metadata.dev(), metadata.ino());
        let mut open = shared::lock(&OPEN_HERE);
        if open.contains(&id) {
            return Err(LockError::Held);
        }
        open.push(id);
        Ok(Self { id })
    }
}

impl Drop for OpenHere {
    fn drop(&mut self) {
        shared::lock(&OPEN_HERE).retain(|id| *id != self.id);
    }
}

/// The right to write to a store, until it is dropped.
pub(super) struct StoreLock {
    _open: OpenHere,
    _file: File,
}

impl StoreLock {
    /// Takes the store of `directory`, which is there; makes the lock's file.
    pub(super) fn take(directory: &Path) -> Result<Self, LockError> {
        let open = OpenHere::take(directory)?;
        let path = directory.join(LOCK_FILE);
        let file = File::options().create(true).write(true).truncate(false).open(path)?;
        file.try_lock()?;
        Ok(Self { _open: open, _file: file })
    }
}

/// Keeps everybody from opening the store to write, until it is dropped. Changes no file.
pub(super) fn keep_still(directory: &Path) -> Result<File, LockError> {
    let file = File::open(directory.join(LOCK_FILE))?;
    file.try_lock_shared()?;
    Ok(file)
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
