//! The environment: one file, its lock file, and its map.

use std::{
    ffi::CString,
    os::{
        fd::{AsFd, AsRawFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
    ptr,
    sync::Arc,
};

use lmdb_master_sys as ffi;

use super::{Dbi, LmdbError, ReadTxn, Txn, WriteTxn, error::check};

/// How to open an environment.
pub struct EnvironmentOptions {
    /// Bytes of address space for the file; 0 means the size of the file.
    pub map_size: usize,
    /// Maximum number of read transactions at one time. The first process to open the file sets it
    /// for all later ones.
    pub readers_max: u32,
    /// Maximum number of named databases.
    pub databases_max: u32,
}

/// An open environment, which is closed with the last of its transactions.
pub struct Environment {
    pub(super) handle: Arc<Handle>,
    access: Access,
}

pub(super) struct Handle(pub(super) *mut ffi::MDB_env);

// SAFETY: LMDB's environment handle may be used by any thread; only transactions belong to one.
unsafe impl Send for Handle {}
// SAFETY: as above; LMDB locks what its threads share.
unsafe impl Sync for Handle {}

/// How a process uses an environment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// To read and to write.
    Write,
    /// To read beside a process that may be writing, and that is kept from reusing the pages of
    /// these read transactions.
    Read,
    /// To read, without locks, files that nobody writes to any more.
    ReadStill,
}

impl Environment {
    /// Opens the environment whose files are `data.mdb` and `lock.mdb` in `directory`; creates it if
    /// it is to be written to.
    ///
    /// # Safety
    /// While the environment is open, nothing but LMDB changes these files, and this process does
    /// not open them a second time with locks, which would undo those of the first. With
    /// [`Access::ReadStill`], nobody writes to them, nor begins to.
    pub unsafe fn open(
        directory: &Path,
        options: &EnvironmentOptions,
        access: Access,
    ) -> Result<Self, LmdbError> {
        let flags = match access {
            Access::Write => 0,
            Access::Read => ffi::MDB_RDONLY,
            Access::ReadStill => ffi::MDB_RDONLY | ffi::MDB_NOLOCK,
        };
        let path =
            CString::new(directory.as_os_str().as_bytes()).map_err(|_| LmdbError(libc::EINVAL))?;
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is a valid place for the new handle.
        check(unsafe { ffi::mdb_env_create(&raw mut raw) })?;
        let environment = Self { handle: Arc::new(Handle(raw)), access };
        // NOTLS ties a read transaction to its handle instead of a thread, so that a snapshot
        // belongs to a task.
        // SAFETY: the handle is live and not yet open, as these calls demand; dropping it closes
        // it, which LMDB demands after a failed open as well.
        unsafe {
            check(ffi::mdb_env_set_mapsize(raw, options.map_size))?;
            check(ffi::mdb_env_set_maxreaders(raw, options.readers_max))?;
            check(ffi::mdb_env_set_maxdbs(raw, options.databases_max))?;
            check(ffi::mdb_env_open(raw, path.as_ptr(), ffi::MDB_NOTLS | flags, 0o640))?;
        }
        if access == Access::Write {
            environment.forget_dead_readers()?;
        }
        Ok(environment)
    }

    /// Frees the reader slots of processes that were killed, which would pin old pages.
    pub fn forget_dead_readers(&self) -> Result<(), LmdbError> {
        let mut dead = 0;
        // SAFETY: the handle is open.
        check(unsafe { ffi::mdb_reader_check(self.handle.0, &raw mut dead) })
    }

    /// Writes the last commit to a file or a pipe, without the free pages. It holds a read
    /// transaction meanwhile, and blocks nobody. A file is not synced.
    pub fn copy(&self, to: impl AsFd) -> Result<(), LmdbError> {
        let fd = to.as_fd().as_raw_fd();
        // SAFETY: the handle and the output are open for the whole call.
        check(unsafe { ffi::mdb_env_copyfd2(self.handle.0, fd, ffi::MDB_CP_COMPACT) })
    }

    /// Begins a read transaction on the last commit.
    pub fn read(&self) -> Result<ReadTxn, LmdbError> {
        ReadTxn::begin(&self.handle)
    }

    /// Opens named databases, all of which must exist, for the transactions that begin later. The
    /// environment must be read-only: in another one, a write transaction might open databases at
    /// the same time, which LMDB does not allow.
    pub fn open_databases(&mut self, names: &[String]) -> Result<Vec<Dbi>, LmdbError> {
        if self.access == Access::Write {
            return Err(LmdbError(libc::EINVAL));
        }
        let txn = Txn::begin(&self.handle, ffi::MDB_RDONLY)?;
        let open = |name| txn.open_database(name, false)?.ok_or(LmdbError(ffi::MDB_NOTFOUND));
        let opened = names.iter().map(|name| open(name)).collect::<Result<_, _>>()?;
        txn.commit()?;
        Ok(opened)
    }

    /// Begins the write transaction. There is one at a time: it waits for that of another thread.
    pub fn write(&self) -> Result<WriteTxn, LmdbError> {
        WriteTxn::begin(&self.handle)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle is live, and each transaction holds it until it has ended.
        unsafe { ffi::mdb_env_close(self.0) }
    }
}
