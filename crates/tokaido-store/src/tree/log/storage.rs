//! Where log segments are kept: here tests simulate power failures, full disks and failing syncs.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use crate::tree::files;

use super::segment::HEADER_LEN;

/// The segments of a log, by number.
pub trait LogStorage: Send + Sync {
    /// The numbers of all segments, in order.
    ///
    /// # Errors
    /// The error of the operating system.
    fn list(&self) -> io::Result<Vec<u64>>;

    /// Creates an empty segment.
    ///
    /// # Errors
    /// The error of the operating system.
    fn create(&self, segment: u64) -> io::Result<Box<dyn LogFile>>;

    /// Opens a segment for writing.
    ///
    /// # Errors
    /// The error of the operating system.
    fn open(&self, segment: u64) -> io::Result<Box<dyn LogFile>>;

    /// All bytes of a segment.
    ///
    /// # Errors
    /// The error of the operating system.
    fn read(&self, segment: u64) -> io::Result<Vec<u8>>;

    /// Removes a segment.
    ///
    /// # Errors
    /// The error of the operating system.
    fn remove(&self, segment: u64) -> io::Result<()>;

    /// Makes creations and removals durable.
    ///
    /// # Errors
    /// The error of the operating system.
    fn sync_directory(&self) -> io::Result<()>;
}

/// One segment that is being written.
pub trait LogFile: Send + Sync {
    /// Writes all of `bytes` at `offset`.
    ///
    /// # Errors
    /// The error of the operating system; any part of `bytes` may be written then.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes everything written so far durable.
    ///
    /// # Errors
    /// The error of the operating system; it is unknown then what is durable.
    fn sync(&self) -> io::Result<()>;

    /// Truncates the file to `len` bytes.
    ///
    /// # Errors
    /// The error of the operating system.
    fn truncate(&self, len: u64) -> io::Result<()>;
}

/// Segments as files `log/00000000000000000001` below a directory.
pub struct DirectoryStorage {
    directory: PathBuf,
}

/// The directory of the segments, within that of a store.
pub(in crate::tree) const LOG_DIRECTORY: &str = "log";

impl DirectoryStorage {
    /// The log below `directory`; makes its folder if it does not exist.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn new(directory: &Path) -> io::Result<Self> {
        let directory = directory.join(LOG_DIRECTORY);
        fs::create_dir_all(&directory)?;
        Ok(Self { directory })
    }

    /// The log below `directory`, for reading; it may not exist.
    pub(in crate::tree) fn existing(directory: &Path) -> Self {
        Self { directory: directory.join(LOG_DIRECTORY) }
    }

    /// Whether the log has no frames, judging by lengths: no segment is longer than its header.
    ///
    /// `first` is the first segment that the base needs. If it exists, without frames, and the next
    /// one does not, that is enough, and takes less time than listing all: no number is skipped
    /// when segments are created, and they are removed in order.
    pub(in crate::tree) fn is_empty(&self, first: Option<u64>) -> io::Result<bool> {
        let len = |segment: u64| fs::metadata(self.path(segment)).map(|file| file.len());
        let is_bare = |segment: u64| len(segment).map(|len| len <= HEADER_LEN as u64);
        if let Some(first) = first
            && is_bare(first).is_ok_and(|is_bare| is_bare)
            && len(first.saturating_add(1)).is_err_and(|e| e.kind() == io::ErrorKind::NotFound)
        {
            return Ok(true);
        }
        for segment in self.list()? {
            match is_bare(segment) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                // It was removed by a checkpoint of the process that has the store open.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// The file of a segment.
    pub(in crate::tree) fn path(&self, segment: u64) -> PathBuf {
        self.directory.join(format!("{segment:020}"))
    }
}

impl LogStorage for DirectoryStorage {
    fn list(&self) -> io::Result<Vec<u64>> {
        let mut segments = Vec::new();
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(segments),
            entries => entries?,
        };
        for entry in entries {
            let name = entry?.file_name();
            // Other files are ignored.
            segments.extend(name.to_str().and_then(|name| name.parse::<u64>().ok()));
        }
        segments.sort_unstable();
        Ok(segments)
    }

    fn create(&self, segment: u64) -> io::Result<Box<dyn LogFile>> {
        Ok(Box::new(files::create_new(&self.path(segment))?))
    }

    fn open(&self, segment: u64) -> io::Result<Box<dyn LogFile>> {
        Ok(Box::new(File::options().read(true).write(true).open(self.path(segment))?))
    }

    fn read(&self, segment: u64) -> io::Result<Vec<u8>> {
        fs::read(self.path(segment))
    }

    fn remove(&self, segment: u64) -> io::Result<()> {
        fs::remove_file(self.path(segment))
    }

    fn sync_directory(&self) -> io::Result<()> {
        files::sync_directory(&self.directory)
    }
}

impl LogFile for File {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }
}
