//! Copies of the base, as of one checkpoint.
//!
//! LMDB writes them page by page in the order of the trees, without free pages, from a read
//! transaction of its own. So a copy is as small as it can be, and writers continue meanwhile.
//! Their writes need new pages, since the old ones are still being read.

use std::{
    fs::{self, File},
    io,
    os::fd::AsFd,
    path::Path,
};

use tokaido_lmdb::{Access, Environment, EnvironmentOptions, LmdbError};

use crate::tree::lock::{OpenHere, StoreLock};

use super::handle::Base;

/// The copy that a compaction makes, until it replaces the file.
pub(in crate::tree) const COPY_FILE: &str = "data.mdb.compact";

/// Removes what an interrupted compaction has left. The caller holds the store's lock.
pub(in crate::tree) fn remove_copy(directory: &Path) -> io::Result<()> {
    match fs::remove_file(directory.join(COPY_FILE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

impl Base {
    /// Writes the last commit to a file or a pipe, without syncing it.
    pub(in crate::tree) fn copy(&self, to: impl AsFd) -> Result<(), LmdbError> {
        self.environment.copy(to)
    }
}

/// Like [`Base::copy`], for the store in `directory`, which another process may have open; `_right`
/// is this process's right to open it.
pub(in crate::tree) fn copy_beside(
    directory: &Path,
    to: impl AsFd,
    readers_max: u32,
    _right: &OpenHere,
) -> Result<(), LmdbError> {
    let options = EnvironmentOptions { map_size: 0, readers_max, databases_max: 0 };
    // SAFETY: nobody else in this process has it open as long as the right lasts; nothing but LMDB
    // changes the files of a store that is in use.
    unsafe { Environment::open(directory, &options, Access::Read)? }.copy(to)
}

/// Like [`Base::copy`], for the store in `directory`; `_lock` shows that nobody has it open.
pub(in crate::tree) fn copy_still(
    directory: &Path,
    file: &File,
    _lock: &StoreLock,
) -> Result<(), LmdbError> {
    let options = EnvironmentOptions { map_size: 0, readers_max: 1, databases_max: 0 };
    // SAFETY: nobody writes to the store while the lock is held.
    unsafe { Environment::open(directory, &options, Access::ReadStill)? }.copy(file)
}
