//! A file mapped into memory, for reading.
//!
//! This is the only place in the crate with unsafe code. The contents of the file are not trusted,
//! here or elsewhere. But if a file is *truncated* while it is mapped, the system kills the process
//! (SIGBUS) on the next access to a page that is gone, as with any mapped file. Writers of the
//! format never do that: they make a new file and rename it.

use std::{fs::File, io, ops::Range, os::fd::AsRawFd, ptr, ptr::NonNull, slice};

/// The mapped bytes of a file that does not change. It may be closed, renamed or removed meanwhile.
#[derive(Debug)]
pub struct Map {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and is only read.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Map {
    /// Maps the first `len` bytes of `file`, which must have at least as many.
    ///
    /// # Errors
    /// Those of the system.
    pub fn new(file: &File, len: usize) -> io::Result<Self> {
        // SAFETY: the system chooses the address, so nothing that is in use is mapped over; the
        // descriptor is open; the system answers an invalid length with an error.
        let start = unsafe {
            libc::mmap(ptr::null_mut(), len, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, len })
    }

    /// Tells the system to read a missing page without its neighbours. Only a hint.
    pub fn expect_random_reads(&self) {
        // SAFETY: `self` owns the whole mapping, and the advice changes none of its bytes.
        unsafe { libc::madvise(self.start.as_ptr().cast(), self.len, libc::MADV_RANDOM) };
    }

    /// Asks the system to read the pages that have bytes of this range soon, so that they need not be waited for. Only a hint.
    pub fn will_need(&self, range: Range<usize>) {
        /// A common length of pages. If pages are longer, the system ignores most hints.
        const PAGE_LEN: usize = 4096;
        let (from, to) = (range.start / PAGE_LEN * PAGE_LEN, range.end.min(self.len));
        if from < to {
            // SAFETY: the range is within the mapping that `self` owns, and the advice changes none of its bytes.
            unsafe {
                let start = self.start.as_ptr().add(from);
                libc::madvise(start.cast(), to - from, libc::MADV_WILLNEED)
            };
        }
    }

    /// The bytes of the file.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `start` and `len` are those of a mapping that is readable and lives as long as
        // `self`. Nothing writes to a cdb file that is in its place (see the top of this file).
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: `self` owns the whole mapping, and no slice of it outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
