//! The environment: one file, its lock file, and its map.

use std::{
    ffi::CString,
    fs::File,
    os::{fd::AsRawFd, unix::ffi::OsStrExt},
    path::Path,
    ptr,
};

use lmdb_master_sys as ffi;

use super::{LmdbError, ReadTxn, WriteTxn, error::check};

/// How to open an environment.
pub(in crate::tree::base) struct EnvironmentOptions {
    /// Bytes of address space for the file.
    pub map_size: usize,
    /// Most read transactions at one time.
    pub readers_max: u32,
    /// Most named databases.
    pub databases_max: u32,
}

/// An open environment. Transactions borrow nothing from it; whoever makes them keeps it alive
/// (the engine shares it by `Arc` with its snapshots and its writer).
pub(in crate::tree::base) struct Environment {
    raw: *mut ffi::MDB_env,
}

// SAFETY: LMDB's environment handle may be used by any thread; only transactions belong to one.
unsafe impl Send for Environment {}
// SAFETY: as above; LMDB locks what its threads share.
unsafe impl Sync for Environment {}

impl Environment {
    /// Opens, or creates, the environment whose files are `data.mdb` and `lock.mdb` in
    /// `directory`.
    pub(in crate::tree::base) fn open(
        directory: &Path,
        options: &EnvironmentOptions,
    ) -> Result<Self, LmdbError> {
        let environment = Self::create()?;
        let raw = environment.raw;
        // SAFETY: the handle is live and not yet open, as these calls demand.
        unsafe {
            check(ffi::mdb_env_set_mapsize(raw, options.map_size))?;
            check(ffi::mdb_env_set_maxreaders(raw, options.readers_max))?;
            check(ffi::mdb_env_set_maxdbs(raw, options.databases_max))?;
        }
        environment.open_at(directory, 0)?;
        environment.forget_dead_readers()?;
        Ok(environment)
    }

    /// Opens the environment for reading alone, beside a process that may be writing to it, which
    /// it keeps from reusing the pages of its read transactions. No process may open the
    /// same environment twice, in whatever way.
    pub(in crate::tree::base) fn open_beside(
        directory: &Path,
        readers_max: u32,
    ) -> Result<Self, LmdbError> {
        let environment = Self::create()?;
        // Whoever comes first says how many readers there can be, for all who come later.
        // SAFETY: the handle is live and not yet open.
        check(unsafe { ffi::mdb_env_set_maxreaders(environment.raw, readers_max) })?;
        environment.open_at(directory, ffi::MDB_RDONLY)?;
        Ok(environment)
    }

    /// Opens the environment for reading alone, without a lock file: nobody may write to it
    /// meanwhile.
    pub(in crate::tree::base) fn open_still(directory: &Path) -> Result<Self, LmdbError> {
        let environment = Self::create()?;
        environment.open_at(directory, ffi::MDB_RDONLY | ffi::MDB_NOLOCK)?;
        Ok(environment)
    }

    fn create() -> Result<Self, LmdbError> {
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is a valid place for the new handle.
        check(unsafe { ffi::mdb_env_create(&raw mut raw) })?;
        Ok(Self { raw })
    }

    fn open_at(&self, directory: &Path, flags: u32) -> Result<(), LmdbError> {
        let path =
            CString::new(directory.as_os_str().as_bytes()).map_err(|_| LmdbError(libc::EINVAL))?;
        // NOTLS ties a read transaction to its handle and not to a thread, so that a snapshot
        // belongs to a task.
        // SAFETY: the handle is live and not yet open; dropping it closes it, which LMDB demands
        // after a failed open as well.
        check(unsafe { ffi::mdb_env_open(self.raw, path.as_ptr(), ffi::MDB_NOTLS | flags, 0o640) })
    }

    /// A process that was killed leaves its reader slots behind; they would pin old pages.
    pub(in crate::tree::base) fn forget_dead_readers(&self) -> Result<(), LmdbError> {
        let mut dead = 0;
        // SAFETY: the handle is open.
        check(unsafe { ffi::mdb_reader_check(self.raw, &raw mut dead) })
    }

    /// Writes what is committed now to `file`, without the pages that are free. It holds a read
    /// transaction meanwhile, and stops nobody. The file is not synced.
    pub(in crate::tree::base) fn copy(&self, file: &File) -> Result<(), LmdbError> {
        // SAFETY: the handle is open, and the file as long as the call takes.
        check(unsafe { ffi::mdb_env_copyfd2(self.raw, file.as_raw_fd(), ffi::MDB_CP_COMPACT) })
    }

    /// Begins a read transaction of what is committed now.
    pub(in crate::tree::base) fn read(&self) -> Result<ReadTxn, LmdbError> {
        // SAFETY: the handle is open.
        unsafe { ReadTxn::begin(self.raw) }
    }

    /// Begins the write transaction. There is one at a time: another thread's is waited for.
    pub(in crate::tree::base) fn write(&self) -> Result<WriteTxn, LmdbError> {
        // SAFETY: the handle is open.
        unsafe { WriteTxn::begin(self.raw) }
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        // SAFETY: the handle is live, and its owner lets go of it after the last transaction.
        unsafe { ffi::mdb_env_close(self.raw) }
    }
}
