//! Reading single records of a store that was shut down cleanly, without opening it.
//!
//! A clean shutdown leaves nothing in the log, so the base alone holds every record. A reader makes
//! sure of that, and finds records in the pages of LMDB's file with a read call for each, as
//! [`cdb::Reader`](crate::cdb::Reader) reads its file. For a few records this is faster than opening
//! the store, and it neither writes nor needs the right to write.
//!
//! It takes no lock, so another process may open the store meanwhile and write to it. LMDB leaves the
//! pages of a commit as they are until the next one is complete, and says so in the meta page that it
//! writes next. Its transaction is read again behind everything else: if that has not changed, and no
//! compaction has put another file in the place of this one, the base did not change, and the log was
//! empty when it was looked at, for frames leave it only after a commit.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::{Clock, DatabaseId, OpenError, ReadError, Record, SystemClock};

use super::{
    base::{
        DATA_FILE, FORMAT_VERSION,
        format::{self, TreeEntry},
        long_key,
        pages::{Finder, PageFile, PageFileError, Root},
    },
    catalog::{self, CATALOG_TREE},
    live,
    log::DirectoryStorage,
    view,
};

/// A reader was not opened. Opening the store works, or says why it does not.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReaderError {
    /// There is something in the log.
    #[error("the store in {} was not shut down with an empty log, or is in use; open it instead of reading its files", directory.display())]
    LogNotEmpty {
        /// The store's directory.
        directory: PathBuf,
    },
    /// The store is not there, or is damaged.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Reads records of a store that was shut down cleanly, from its files, as they were when the reader was
/// opened. If somebody opens the store and writes to it, or compacts it, reading fails from the next
/// checkpoint on.
pub struct Reader {
    finder: Finder<PageFile>,
    /// LMDB's named databases.
    main: Root,
    /// The one in which the base says where its trees are.
    base: Root,
    /// `None` if there is no database yet.
    catalog: Option<Root>,
}

/// One database of a [`Reader`].
pub struct DatabaseReader<'r> {
    reader: &'r Reader,
    id: DatabaseId,
    /// `None` if it is empty.
    records: Option<Root>,
    /// The stored record that was found last.
    stored: Vec<u8>,
}

impl Reader {
    /// Opens the store in `directory` for reading, if it was shut down with an empty log. Its log
    /// must be in that directory, where it is unless [`Options::log`](super::Options::log) puts it
    /// elsewhere.
    ///
    /// # Errors
    /// See [`ReaderError`].
    pub fn open(directory: &Path) -> Result<Self, ReaderError> {
        let file = PageFile::open(&directory.join(DATA_FILE)).map_err(|error| match error {
            PageFileError::Io(error) => OpenError::io(directory)(error),
            PageFileError::Damaged(what) => OpenError::damaged(directory, &what),
        })?;
        let main = file.main();
        let mut reader = Self { finder: Finder::new(file), main, base: main, catalog: None };
        let found = reader.find_roots(directory);
        let log_from = found.is_ok().then(|| reader.log_from()).flatten();
        let log = DirectoryStorage::existing(directory);
        let is_log_empty = log.is_empty(log_from).map_err(OpenError::io(directory))?;
        // What looks damaged may be what a process was writing.
        if !is_log_empty || found.is_err() && !reader.finder.file().is_current().unwrap_or(true) {
            return Err(ReaderError::LogNotEmpty { directory: directory.to_owned() });
        }
        found?;
        Ok(reader)
    }

    /// Finds where the trees of the base itself begin.
    fn find_roots(&mut self, directory: &Path) -> Result<(), OpenError> {
        let damaged = |what: &dyn ToString| OpenError::damaged(directory, what);
        let read_error = |error| match error {
            ReadError::Engine { message } => OpenError::io(directory)(io::Error::other(message)),
            error => damaged(&error),
        };
        // With one meta page only, nobody knows whether it is the newer one.
        if let Some(damage) = self.finder.file().damage() {
            return Err(damaged(&ReadError::from(damage.clone())));
        }
        let base = self.named(format::BASE).map_err(read_error)?;
        self.base = base.ok_or_else(|| damaged(&"data.mdb has no directory"))?;
        match self.version().map_err(read_error)? {
            FORMAT_VERSION => {}
            found => return Err(OpenError::version(directory, found)),
        }
        self.catalog = self.tree(CATALOG_TREE).map_err(read_error)?;
        Ok(())
    }

    /// The database of that name; `None` if nobody has written to it.
    ///
    /// # Errors
    /// [`ReadError::Damaged`], or [`ReadError::Engine`] if the system refuses to read, or somebody has
    /// written to the store meanwhile.
    pub fn database(&self, name: &str) -> Result<Option<DatabaseReader<'_>>, ReadError> {
        match self.find_database(name) {
            // What is read from it will be confirmed.
            Ok(Some(database)) => Ok(Some(database)),
            found => self.confirmed(found),
        }
    }

    /// What was found, unless it may come from pages to which somebody was writing.
    fn confirmed<T>(&self, found: Result<T, ReadError>) -> Result<T, ReadError> {
        let message = match self.finder.file().is_current() {
            Ok(true) => return found,
            Ok(false) => "the store was written to meanwhile; open it anew".to_owned(),
            Err(error) => error.to_string(),
        };
        Err(ReadError::Engine { message })
    }

    fn find_database(&self, name: &str) -> Result<Option<DatabaseReader<'_>>, ReadError> {
        let Some(catalog) = self.catalog else { return Ok(None) };
        let mut entries_left = catalog.entries;
        for id in (0..DatabaseId::NOWHERE.index()).map(DatabaseId::from_index) {
            if entries_left == 0 {
                break;
            }
            let key = catalog::catalog_key(id);
            let Some(stored) = self.finder.find(catalog, &key)? else { continue };
            let elements = self.finder.find(catalog, &catalog::catalog_key(id.elements()))?;
            entries_left = entries_left.saturating_sub(1 + u64::from(elements.is_some()));
            let entry = catalog::decode(&key, &stored)?;
            if entry.name == name {
                let records = self.tree(entry.tree)?;
                return Ok(Some(DatabaseReader { reader: self, id, records, stored: Vec::new() }));
            }
        }
        Ok(None)
    }

    /// The version that the base says it has.
    fn version(&self) -> Result<u32, ReadError> {
        let stored = self.finder.find(self.base, format::FORMAT_KEY)?;
        let version = stored.and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
        version.ok_or_else(|| ReadError::damaged("the base does not say which version it has"))
    }

    /// The first segment of the log that may hold what the base does not; `None` if it names none.
    fn log_from(&self) -> Option<u64> {
        let stored = self.finder.find(self.base, format::LOG_KEY).ok()??;
        Some(u64::from_le_bytes(stored.try_into().ok()?))
    }

    /// Where a tree of the engine begins; `None` if it is empty.
    fn tree(&self, tree: u32) -> Result<Option<Root>, ReadError> {
        let Some(entry) = self.finder.find(self.base, &format::tree_key(tree))? else {
            return Ok(None);
        };
        let entry =
            TreeEntry::decode(&entry).ok_or_else(|| ReadError::damaged("a tree's entry"))?;
        let root = self.named(&format::slot_name(entry.slot as usize))?;
        root.map(Some).ok_or_else(|| ReadError::damaged("a tree without a slot"))
    }

    /// Where a named database of LMDB begins.
    fn named(&self, name: &str) -> Result<Option<Root>, ReadError> {
        let Some(root) = self.finder.find(self.main, name.as_bytes())? else {
            return Ok(None);
        };
        Root::decode(&root).map(Some).ok_or_else(|| ReadError::damaged("the root of a tree"))
    }
}

impl DatabaseReader<'_> {
    /// The record under `key`.
    ///
    /// # Errors
    /// [`ReadError::KeyLength`] for a key that no record can have, [`ReadError::Damaged`], or
    /// [`ReadError::Engine`] if the system refuses to read, or somebody has written to the store
    /// meanwhile.
    pub fn get(&mut self, key: &[u8]) -> Result<Option<Record<'_>>, ReadError> {
        view::check_key(self.id, key)?;
        let Some(root) = self.records else { return self.reader.confirmed(Ok(None)) };
        let found = self.reader.finder.find(root, long_key::tree_key(key));
        let Some(found) = self.reader.confirmed(found.map_err(ReadError::from))? else {
            return Ok(None);
        };
        self.stored = found;
        let stored = match long_key::is_long(key) {
            true => long_key::find(&self.stored, key)?,
            false => Some(&self.stored[..]),
        };
        live::record(stored, SystemClock.now_ms())
    }
}
