//! LMDB's return codes.

use std::{ffi::CStr, fmt, io};

use lmdb_master_sys as ffi;

/// A return code other than success: LMDB's own are negative, the system's are positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LmdbError(pub(super) libc::c_int);

impl LmdbError {
    /// The operating system's error number, if it is one.
    pub fn system(self) -> Option<i32> {
        (self.0 > 0).then_some(self.0)
    }

    /// Whether there is no room, on the disk or in the map.
    pub fn is_full(self) -> bool {
        [libc::ENOSPC, libc::EDQUOT, libc::EFBIG, ffi::MDB_MAP_FULL].contains(&self.0)
    }

    /// Whether the map is as large as it may be, however much room the disk has.
    pub fn is_map_full(self) -> bool {
        self.0 == ffi::MDB_MAP_FULL
    }

    /// Whether LMDB refuses all transactions, since a meta page could not be written.
    pub fn is_given_up(self) -> bool {
        self.0 == ffi::MDB_PANIC
    }

    /// Whether there are more named databases than the environment was opened for.
    pub fn is_databases_full(self) -> bool {
        self.0 == ffi::MDB_DBS_FULL
    }

    /// Whether there are as many read transactions as there may be.
    pub fn is_readers_full(self) -> bool {
        self.0 == ffi::MDB_READERS_FULL
    }
}

impl fmt::Display for LmdbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // LMDB would call `strerror`, whose result another thread may overwrite.
        if let Some(code) = self.system() {
            return io::Error::from_raw_os_error(code).fmt(f);
        }
        // SAFETY: for a code of its own, LMDB returns a literal.
        let text = unsafe { CStr::from_ptr(ffi::mdb_strerror(self.0)) };
        write!(f, "{}", text.to_string_lossy())
    }
}

impl std::error::Error for LmdbError {}

impl From<LmdbError> for io::Error {
    fn from(error: LmdbError) -> Self {
        match error.system() {
            Some(code) => Self::from_raw_os_error(code),
            None => Self::other(error),
        }
    }
}

/// Turns a return code into a result.
pub(super) fn check(code: libc::c_int) -> Result<(), LmdbError> {
    if code == ffi::MDB_SUCCESS { Ok(()) } else { Err(LmdbError(code)) }
}

/// Like [`check`], but "not found" is a result and not an error.
pub(super) fn found(code: libc::c_int) -> Result<bool, LmdbError> {
    if code == ffi::MDB_NOTFOUND { Ok(false) } else { check(code).map(|()| true) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_in_words_what_it_is() {
        assert_eq!(LmdbError(libc::ENOENT).to_string(), "No such file or directory (os error 2)");
        assert!(LmdbError(ffi::MDB_MAP_FULL).to_string().starts_with("MDB_MAP_FULL"));
    }
}
