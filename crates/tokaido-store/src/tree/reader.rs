//! Reading single records of a store that was shut down cleanly, without opening it.
//!
//! A clean shutdown leaves nothing in the log, so the base and its runs hold every record. A reader
//! makes sure of that, and finds records in the pages of LMDB's file with a read call for each, as
//! [`cdb::Reader`](crate::cdb::Reader) reads its file. For a few records this is faster than
//! opening the store, and it neither writes nor needs permission to write.
//!
//! It takes no lock, so another process may open the store meanwhile and write to it. LMDB leaves
//! the pages of a commit as they are until the next one is complete, and then updates the other
//! meta page. The transaction number there is read again after everything else. If it is unchanged,
//! and no compaction has replaced the file, the base did not change, and the log really was empty
//! when it was examined, since frames are removed from it only after a commit.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::{Clock, DatabaseId, OpenError, ReadError, Record, SystemClock};

use super::{
    base::{
        DATA_FILE, Total, format, long_key,
        pages::{Finder, PageFile, PageFileError, Root},
        roots,
    },
    catalog::{self, CATALOG_TREE},
    live,
    log::DirectoryStorage,
    runs::{RunDirectory, RunError, RunList, Runs},
    view,
};

/// A reader was not opened. Opening the store works, or reports why it does not.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReaderError {
    /// The log is not empty.
    #[error("the store in {} was not shut down with an empty log, or is in use; open it instead of reading its files", directory.display())]
    LogNotEmpty {
        /// The store's directory.
        directory: PathBuf,
    },
    /// The store does not exist, or is damaged.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Reads records of a store that was shut down cleanly, from its files, as they were when the reader was
/// opened. If somebody opens the store and writes to it, or compacts it, reading fails from the next
/// checkpoint on.
pub struct Reader {
    finder: Finder<PageFile>,
    /// The database in which the base records where its trees are.
    base: Root,
    /// `None` if the base has none of it.
    catalog: Option<Root>,
    /// How many entries the catalog has, in base and runs.
    catalog_entries: u64,
    runs: Runs,
}

/// One database of a [`Reader`].
pub struct DatabaseReader<'r> {
    reader: &'r Reader,
    id: DatabaseId,
    tree: u32,
    /// `None` if the base has none of them.
    records: Option<Root>,
    /// The stored record that was last found.
    stored: Vec<u8>,
}

/// Turns a failure to read into the error of opening the store in `directory`.
fn read_error(directory: &Path) -> impl Fn(ReadError) -> OpenError + Copy {
    move |error| match error {
        ReadError::Engine { message } => OpenError::io(directory)(io::Error::other(message)),
        error => OpenError::damaged(directory, &error),
    }
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
        let mut reader = Self {
            finder: Finder::new(file),
            base: main,
            catalog: None,
            catalog_entries: 0,
            runs: Runs::default(),
        };
        let found = reader.find_roots(directory);
        let log_from = found.is_ok().then(|| reader.log_from()).flatten();
        let log = DirectoryStorage::existing(directory);
        let is_log_empty = log.is_empty(log_from).map_err(OpenError::io(directory))?;
        // What looks damaged may be a write of another process.
        if !is_log_empty || found.is_err() && !reader.finder.file().is_current().unwrap_or(true) {
            return Err(ReaderError::LogNotEmpty { directory: directory.to_owned() });
        }
        found?;
        Ok(reader)
    }

    /// Finds where the trees of the base itself begin.
    fn find_roots(&mut self, directory: &Path) -> Result<(), OpenError> {
        let damaged = |what: &dyn ToString| OpenError::damaged(directory, what);
        let read_error = read_error(directory);
        // With only one meta page, it is unknown whether it is the newer one.
        if let Some(damage) = self.finder.file().damage() {
            return Err(damaged(&ReadError::from(damage.clone())));
        }
        let base = roots::named(&self.finder, format::BASE).map_err(read_error)?;
        self.base = base.ok_or_else(|| damaged(&"data.mdb has no directory"))?;
        match self.version().map_err(read_error)? {
            version if format::is_known(version) => {}
            found => return Err(OpenError::version(directory, found)),
        }
        self.catalog = self.tree(CATALOG_TREE).map_err(read_error)?;
        self.catalog_entries = self.catalog.map_or(0, |catalog| catalog.entries);
        self.find_runs(directory, read_error)
    }

    /// Opens the runs, if there are any.
    fn find_runs(
        &mut self,
        directory: &Path,
        read_error: impl Fn(ReadError) -> OpenError,
    ) -> Result<(), OpenError> {
        let damaged = |what: &dyn ToString| OpenError::damaged(directory, what);
        let find = |key: &[u8]| {
            let found = self.finder.find(self.base, key);
            found.map_err(|error| read_error(ReadError::from(error)))
        };
        let Some(list) = find(format::RUNS_KEY)? else { return Ok(()) };
        let list = RunList::decode(&list).ok_or_else(|| damaged(&"the list of runs"))?;
        if list.entries.is_empty() {
            return Ok(());
        }
        let total = find(&format::total_key(CATALOG_TREE))?;
        let total = total.and_then(|bytes| Total::decode(&bytes));
        let store = find(format::STORE_KEY)?.and_then(|bytes| bytes.try_into().ok());
        let (Some(total), Some(store)) = (total, store) else {
            return Err(damaged(&"the directory of the base"));
        };
        self.catalog_entries = total.sum.records;
        let runs = RunDirectory::new(directory, list.next);
        let runs = runs.open(u64::from_le_bytes(store), &list.entries);
        self.runs = runs.map_err(|error| match error {
            RunError::Io { source, .. } => OpenError::io(directory)(source),
            error @ RunError::Damaged { .. } => damaged(&error),
        })?;
        Ok(())
    }

    /// The stored record under a key of a tree, whose root in the base is `root`, if it has any.
    fn find(
        &self,
        tree: u32,
        root: Option<Root>,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, ReadError> {
        if let Some(change) = self.runs.find(tree, key)? {
            return Ok(change.map(<[u8]>::to_vec));
        }
        let Some(root) = root else { return Ok(None) };
        let found = self.finder.find(root, long_key::tree_key(key))?;
        match found {
            Some(bucket) if long_key::is_long(key) => {
                Ok(long_key::find(&bucket, key)?.map(<[u8]>::to_vec))
            }
            found => Ok(found),
        }
    }

    /// The database with that name; `None` if nobody has written to it.
    ///
    /// # Errors
    /// [`ReadError::Damaged`], or [`ReadError::Engine`] if the operating system fails to read, or
    /// the store has been written to meanwhile.
    pub fn database(&self, name: &str) -> Result<Option<DatabaseReader<'_>>, ReadError> {
        match self.find_database(name) {
            // What is read from it will be confirmed.
            Ok(Some(database)) => Ok(Some(database)),
            found => self.confirmed(found),
        }
    }

    /// What was found, unless it may come from pages that were being overwritten.
    fn confirmed<T>(&self, found: Result<T, ReadError>) -> Result<T, ReadError> {
        let message = match self.finder.file().is_current() {
            Ok(true) => return found,
            Ok(false) => "the store was written to meanwhile; open it anew".to_owned(),
            Err(error) => error.to_string(),
        };
        Err(ReadError::Engine { message })
    }

    fn find_database(&self, name: &str) -> Result<Option<DatabaseReader<'_>>, ReadError> {
        let mut entries_left = self.catalog_entries;
        for id in (0..DatabaseId::NOWHERE.index()).map(DatabaseId::from_index) {
            if entries_left == 0 {
                break;
            }
            let key = catalog::catalog_key(id);
            let Some(stored) = self.find(CATALOG_TREE, self.catalog, &key)? else { continue };
            let elements = catalog::catalog_key(id.elements());
            let elements = self.find(CATALOG_TREE, self.catalog, &elements)?;
            entries_left = entries_left.saturating_sub(1 + u64::from(elements.is_some()));
            let entry = catalog::decode(&key, &stored)?;
            if entry.name == name {
                let (tree, records) = (entry.tree, self.tree(entry.tree)?);
                let stored = Vec::new();
                return Ok(Some(DatabaseReader { reader: self, id, tree, records, stored }));
            }
        }
        Ok(None)
    }

    /// The version recorded in the base.
    fn version(&self) -> Result<u32, ReadError> {
        let stored = self.finder.find(self.base, format::FORMAT_KEY)?;
        let version = stored.and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
        version.ok_or_else(|| ReadError::damaged("the base does not say which version it has"))
    }

    /// The first log segment that may hold what the base does not; `None` if the base names none.
    fn log_from(&self) -> Option<u64> {
        let stored = self.finder.find(self.base, format::LOG_KEY).ok()??;
        Some(u64::from_le_bytes(stored.try_into().ok()?))
    }

    /// Where a tree of the engine begins; `None` if it is empty.
    fn tree(&self, tree: u32) -> Result<Option<Root>, ReadError> {
        roots::of_tree(&self.finder, self.base, tree)
    }
}

impl DatabaseReader<'_> {
    /// The record under `key`.
    ///
    /// # Errors
    /// [`ReadError::KeyLength`] for a key that no record can have, [`ReadError::Damaged`], or
    /// [`ReadError::Engine`] if the operating system fails to read, or the store has been written
    /// to meanwhile.
    pub fn get(&mut self, key: &[u8]) -> Result<Option<Record<'_>>, ReadError> {
        view::check_key(self.id, key)?;
        let found = self.reader.confirmed(self.reader.find(self.tree, self.records, key))?;
        let Some(found) = found else { return Ok(None) };
        self.stored = found;
        live::record(Some(&self.stored), SystemClock.now_ms())
    }
}
