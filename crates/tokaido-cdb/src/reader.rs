//! Reading a cdb file on disk, and noticing that it was replaced.

use std::{
    fs::{self, File, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::{
    error::{Damaged, OpenError},
    format::HEADER_LEN,
    map::Map,
    statistics::Statistics,
    view::{Iter, Values, View},
};

/// A cdb file, mapped into memory. Threads may share it.
///
/// It serves the file that was there when it was opened, even if that is replaced or removed
/// meanwhile. [`Reader::is_stale`] detects this, and [`Reader::reopen`] opens the new file:
///
/// ```
/// # use tokaido_cdb::{Options, Reader, Writer};
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("a.cdb");
/// # let make = |value: &[u8]| {
/// #     let mut writer = Writer::create(&path, &Options::default())?;
/// #     writer.put(b"key", value)?;
/// #     writer.finish()
/// # };
/// make(b"old")?;
/// let mut reader = Reader::open(&path)?;
/// make(b"new")?;
/// assert_eq!(reader.get(b"key")?, Some(&b"old"[..]));
/// if reader.is_stale()? {
///     reader = reader.reopen()?;
/// }
/// assert_eq!(reader.get(b"key")?, Some(&b"new"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Reader {
    map: Map,
    data_end: usize,
    path: PathBuf,
    identity: Identity,
}

/// Identifies a file, to tell it from one that replaced it. While a file is mapped, no other file
/// gets its inode number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
    len: u64,
    modified_s: i64,
    modified_ns: i64,
}

impl Identity {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            len: metadata.len(),
            modified_s: metadata.mtime(),
            modified_ns: metadata.mtime_nsec(),
        }
    }

    /// The identity of the file that is at the path now.
    ///
    /// # Errors
    /// The system's error, if there is none.
    pub fn at(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|metadata| Self::of(&metadata))
    }

    /// When the file was last changed, in microseconds since the epoch.
    #[must_use]
    pub fn modified_us(&self) -> u64 {
        let us = self.modified_s.saturating_mul(1_000_000).saturating_add(self.modified_ns / 1000);
        u64::try_from(us).unwrap_or(0)
    }
}

impl Reader {
    /// Opens the file at `path`, and checks its header.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let io_error = |source| OpenError::Io { path: path.to_owned(), source };
        let damaged = |source| OpenError::Damaged { path: path.to_owned(), source };
        let file = File::open(path).map_err(io_error)?;
        let metadata = file.metadata().map_err(io_error)?;
        if !metadata.is_file() {
            return Err(io_error(io::Error::new(io::ErrorKind::InvalidInput, "it is no file")));
        }
        if metadata.len() < HEADER_LEN as u64 {
            let what = "the header is cut short";
            return Err(damaged(Damaged { what, position: metadata.len() }));
        }
        let too_large = |_| io_error(io::ErrorKind::FileTooLarge.into());
        let len = usize::try_from(metadata.len()).map_err(too_large)?;
        let map = Map::new(&file, len).map_err(io_error)?;
        let data_end = View::new(map.bytes()).map_err(damaged)?.data_end();
        Ok(Self { map, data_end, path: path.to_owned(), identity: Identity::of(&metadata) })
    }

    /// Opens what is at the path now. This reader keeps the old file, so that it can be replaced
    /// once the new one is known to be valid.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn reopen(&self) -> Result<Self, OpenError> {
        Self::open(&self.path)
    }

    /// Whether another file, or a changed one, is at the path now. Costs one `stat` call.
    ///
    /// # Errors
    /// [`OpenError::Io`] if there is no file now, or `stat` fails; the old one is still served.
    pub fn is_stale(&self) -> Result<bool, OpenError> {
        match fs::metadata(&self.path) {
            Ok(metadata) => Ok(Identity::of(&metadata) != self.identity),
            Err(source) => Err(OpenError::Io { path: self.path.clone(), source }),
        }
    }

    /// The identity of the file that is served.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// The path that the file was opened with.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file's bytes as a view, which can be copied and passed on.
    #[inline]
    pub fn view(&self) -> View<'_> {
        View::of_checked(self.map.bytes(), self.data_end)
    }

    /// The value of `key`: the first one, if there are several.
    ///
    /// # Errors
    /// [`Damaged`] if a position on the way to the key is outside the file.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Result<Option<&[u8]>, Damaged> {
        self.view().get(key)
    }

    /// All values of `key`, in the order in which they were put. After an error nothing follows.
    pub fn get_all<'k>(&self, key: &'k [u8]) -> Values<'_, 'k> {
        self.view().get_all(key)
    }

    /// All records, in the order in which they were put. After an error nothing follows.
    pub fn iter(&self) -> Iter<'_> {
        self.view().iter()
    }

    /// Counts the records, and measures how well the hash tables spread them.
    ///
    /// # Errors
    /// [`Damaged`] if a record or a table extends past the file.
    pub fn statistics(&self) -> Result<Statistics, Damaged> {
        self.view().statistics()
    }
}
