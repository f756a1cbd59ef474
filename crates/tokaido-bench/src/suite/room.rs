//! Disk space, memory and open files: what is used, what is left, and what the disk has written.

use std::{
    ffi::CString,
    fs, io,
    os::{
        fd::AsRawFd,
        unix::{ffi::OsStrExt, fs::MetadataExt},
    },
    path::Path,
};

/// The unit of `st_blocks`, and of the sectors that the kernel counts.
const BLOCK_LEN: u64 = 512;

/// Disk space of everything in a directory, in bytes, in whole blocks.
pub(super) fn used(directory: &Path) -> io::Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => sum += used(&path)?,
            Ok(metadata) => sum += metadata.blocks() * BLOCK_LEN,
            // A server may remove files while it runs.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sum)
}

/// Bytes left on the disk of a directory.
pub(super) fn on_disk(directory: &Path) -> io::Result<u64> {
    let path = CString::new(directory.as_os_str().as_bytes())?;
    // SAFETY: the path is zero-terminated, and the system fills in the value, for which zeros are valid.
    let statistics = unsafe {
        let mut statistics: libc::statvfs = std::mem::zeroed();
        match libc::statvfs(path.as_ptr(), &raw mut statistics) {
            0 => statistics,
            _ => return Err(io::Error::last_os_error()),
        }
    };
    Ok(statistics.f_bavail * statistics.f_frsize)
}

/// Waits until everything written to a directory's file system is on disk. Returns the open directory.
pub(super) fn sync(directory: &Path) -> io::Result<fs::File> {
    let file = fs::File::open(directory)?;
    // SAFETY: the file is open.
    if unsafe { libc::syncfs(file.as_raw_fd()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(file)
}

/// Bytes that the disk of a directory has written so far, for any process, including what the system had buffered. `None`
/// if that is unknown, as with file systems that have no disk of their own.
pub(super) fn written(directory: &Path) -> Option<u64> {
    let file = sync(directory).ok()?;
    let device = file.metadata().ok()?.dev();
    let (major, minor) = (libc::major(device), libc::minor(device));
    let statistics = fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).ok()?;
    // Documentation/block/stat.rst of the kernel: the seventh field counts the sectors written.
    let sectors: u64 = statistics.split_whitespace().nth(6)?.parse().ok()?;
    Some(sectors * BLOCK_LEN)
}

/// Bytes of memory that are free, or can be freed by dropping caches; `None` if the system does not say.
pub(super) fn in_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// Lets this process, and those that it starts, open as many files as the administrator allows.
pub(super) fn allow_files() -> io::Result<()> {
    // SAFETY: the system fills in the value, for which zeros are valid, and reads it.
    let done = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        match libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) {
            0 => {
                limit.rlim_cur = limit.rlim_max;
                libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit)
            }
            failed => failed,
        }
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_that_of_all_directories_and_what_is_left_is_some() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("inner")).unwrap();
        fs::write(directory.path().join("inner/file"), [1; 10_000]).unwrap();
        assert!(used(directory.path()).unwrap() >= 10_000);
        assert!(on_disk(directory.path()).unwrap() > 0);
        assert!(in_memory().unwrap() > 0);
        allow_files().unwrap();
    }

    #[test]
    fn what_a_disk_writes_is_counted_when_it_is_written() {
        let directory = tempfile::tempdir().unwrap();
        // Not every file system has a disk.
        let Some(before) = written(directory.path()) else { return };
        fs::write(directory.path().join("file"), [1; 1 << 20]).unwrap();
        assert!(written(directory.path()).unwrap() >= before + (1 << 20));
    }
}
