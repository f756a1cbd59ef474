//! The environment: one file, its lock file, and its map.

use std::{
    ffi::CString,
    fs::File,
    os::{fd::AsRawFd, unix::ffi::OsStrExt},
    path::Path,
    ptr,
};

use lmdb_master_sys as ffi;

use super::{Dbi, LmdbError, ReadTxn, WriteTxn, error::check};

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
        let environment = Self::open_as(directory, options, 0)?;
        environment.forget_dead_readers()?;
        Ok(environment)
    }

    /// Opens an environment that this process has open already, for reading alone and without its
    /// lock file. Nobody may write to it any more. Opens these databases, too.
    pub(in crate::tree::base) fn open_again(
        directory: &Path,
        options: &EnvironmentOptions,
        databases: &[String],
    ) -> Result<(Self, Vec<Dbi>), LmdbError> {
        let environment = Self::open_as(directory, options, ffi::MDB_RDONLY | ffi::MDB_NOLOCK)?;
        // SAFETY: the handle is open.
        let txn = unsafe { ReadTxn::begin(environment.raw)? };
        let opened = txn.open_databases(databases)?;
        Ok((environment, opened))
    }

    fn open_as(
        directory: &Path,
        options: &EnvironmentOptions,
        flags: libc::c_uint,
    ) -> Result<Self, LmdbError> {
        let path =
            CString::new(directory.as_os_str().as_bytes()).map_err(|_| LmdbError(libc::EINVAL))?;
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is a valid place for the new handle.
        check(unsafe { ffi::mdb_env_create(&raw mut raw) })?;
        let environment = Self { raw };
        // NOTLS ties a read transaction to its handle and not to a thread, so that a snapshot
        // belongs to a task.
        // SAFETY: the handle is live and not yet open, as these calls demand; dropping it closes
        // it, which LMDB demands after a failed open as well.
        unsafe {
            check(ffi::mdb_env_set_mapsize(raw, options.map_size))?;
            check(ffi::mdb_env_set_maxreaders(raw, options.readers_max))?;
            check(ffi::mdb_env_set_maxdbs(raw, options.databases_max))?;
            check(ffi::mdb_env_open(raw, path.as_ptr(), ffi::MDB_NOTLS | flags, 0o640))?;
        }
        Ok(environment)
    }

    /// Opens the environment for reading alone, beside a process that may be writing to it, which
    /// it keeps from reusing the pages of its read transactions. No process may open the
    /// same environment with locks twice.
    pub(in crate::tree::base) fn open_beside(
        directory: &Path,
        readers_max: u32,
    ) -> Result<Self, LmdbError> {
        // Whoever comes first says how many readers there can be, for all who come later. The
        // size of the map is that of the file.
        let options = EnvironmentOptions { map_size: 0, readers_max, databases_max: 0 };
        Self::open_as(directory, &options, ffi::MDB_RDONLY)
    }

    /// Opens the environment for reading alone, without its lock file: nobody may write to it
    /// meanwhile.
    pub(in crate::tree::base) fn open_still(directory: &Path) -> Result<Self, LmdbError> {
        let options = EnvironmentOptions { map_size: 0, readers_max: 1, databases_max: 0 };
        Self::open_as(directory, &options, ffi::MDB_RDONLY | ffi::MDB_NOLOCK)
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
