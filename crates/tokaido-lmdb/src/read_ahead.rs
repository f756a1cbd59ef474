//! How much the operating system reads ahead.

use std::{
    fs::{self, File},
    io,
    os::{fd::BorrowedFd, unix::fs::MetadataExt},
};

use lmdb_master_sys as ffi;

use super::{Environment, error::check};

impl Environment {
    /// Turns the operating system's read-ahead for pages of the map on or off; it is on at first. LMDB can be told to leave
    /// it off only when it opens (`MDB_NORDAHEAD`), when nobody knows how large the file will become.
    ///
    /// # Errors
    /// The error of the operating system; nothing has changed for readers then.
    pub fn set_read_ahead(&self, is_wanted: bool) -> io::Result<()> {
        let mut descriptor = -1;
        // SAFETY: the handle is open, and the place for the descriptor is valid.
        check(unsafe { ffi::mdb_env_get_fd(self.handle.0, &raw mut descriptor) })
            .map_err(io::Error::other)?;
        // SAFETY: LMDB keeps the file open as long as the environment.
        let file = File::from(unsafe { BorrowedFd::borrow_raw(descriptor) }.try_clone_to_owned()?);
        let metadata = file.metadata()?;
        let advice = if is_wanted { libc::MADV_NORMAL } else { libc::MADV_RANDOM };
        for map in fs::read_to_string("/proc/self/maps")?.lines().filter_map(Map::parse) {
            if (map.device, map.inode) != (metadata.dev(), metadata.ino()) {
                continue;
            }
            // SAFETY: this process has mapped the file to that range, and it stays mapped while the
            // environment is open; the advice changes none of its bytes.
            if unsafe { libc::madvise(map.start as *mut _, map.end - map.start, advice) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }
}

/// A range of addresses that is mapped to a file.
#[derive(Debug, PartialEq, Eq)]
struct Map {
    start: usize,
    end: usize,
    device: u64,
    inode: u64,
}

impl Map {
    /// A line of `/proc/PID/maps`: addresses, permissions, offset, device, inode, path (proc(5)).
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let (major, minor) = fields.nth(2)?.split_once(':')?;
        let hex = |text| u32::from_str_radix(text, 16).ok();
        Some(Self {
            start: usize::from_str_radix(start, 16).ok()?,
            end: usize::from_str_radix(end, 16).ok()?,
            device: libc::makedev(hex(major)?, hex(minor)?),
            inode: fields.next()?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, EnvironmentOptions};

    #[test]
    fn lines_of_maps_are_read() {
        let line = "7f12a0000000-7f12a0400000 r--s 00000000 fe:00 1234567                    /data dir/data.mdb";
        let expected = Map {
            start: 0x7f12_a000_0000,
            end: 0x7f12_a040_0000,
            device: libc::makedev(0xfe, 0),
            inode: 1_234_567,
        };
        assert_eq!(Map::parse(line), Some(expected));
        assert_eq!(Map::parse("nothing of the kind"), None);
    }

    /// Whether the file's map has the kernel's flag `rr`, for random reads (proc(5), smaps).
    fn is_read_randomly(path: &std::path::Path) -> bool {
        let maps = fs::read_to_string("/proc/self/smaps").unwrap();
        let of_file = maps.split_once(path.to_str().unwrap()).expect("it is mapped").1;
        let flags = of_file.lines().find_map(|line| line.strip_prefix("VmFlags:")).unwrap();
        flags.split_ascii_whitespace().any(|flag| flag == "rr")
    }

    #[test]
    fn the_map_is_read_as_it_was_told() {
        let directory = tempfile::tempdir().unwrap();
        let options = EnvironmentOptions { map_size: 1 << 20, readers_max: 1, databases_max: 1 };
        // SAFETY: the directory is new.
        let environment =
            unsafe { Environment::open(directory.path(), &options, Access::Write) }.unwrap();
        let path = directory.path().join("data.mdb");
        assert!(!is_read_randomly(&path));
        environment.set_read_ahead(false).unwrap();
        assert!(is_read_randomly(&path));
        environment.set_read_ahead(true).unwrap();
        assert!(!is_read_randomly(&path));
    }
}
