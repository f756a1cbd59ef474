//! Where the files of runs are.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use crate::tree::files;

use super::{
    format::RunEntry,
    run::{Run, RunError},
    set::Runs,
};

/// Their directory within that of a store.
pub(in crate::tree) const RUNS_DIRECTORY: &str = "runs";

/// The files `runs/00000000000000000001`, … below the directory of a store.
pub(in crate::tree) struct RunDirectory {
    above: PathBuf,
    /// The number of the next run.
    next: AtomicU64,
    /// Whether the directory's own name is known to be durable.
    is_durable: AtomicBool,
}

impl RunDirectory {
    /// The directory in the store `above`, whose next run has the number `next`.
    pub(in crate::tree) fn new(above: &Path, next: u64) -> Self {
        Self {
            above: above.to_owned(),
            next: AtomicU64::new(next),
            is_durable: AtomicBool::new(false),
        }
    }

    pub(in crate::tree) fn path(&self, number: u64) -> PathBuf {
        self.directory().join(format!("{number:020}"))
    }

    fn directory(&self) -> PathBuf {
        self.above.join(RUNS_DIRECTORY)
    }

    /// The number of the next run.
    pub(in crate::tree) fn next(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    pub(super) fn take_number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Makes the directory, durably. An existing one may be from a process that was killed before its name was synced.
    pub(in crate::tree) fn make(&self) -> io::Result<()> {
        if self.is_durable.load(Ordering::Relaxed) {
            return Ok(());
        }
        match fs::create_dir(self.directory()) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => files::sync_directory(&self.above)?,
        }
        self.is_durable.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Makes the names of new files durable.
    pub(in crate::tree) fn sync(&self) -> io::Result<()> {
        files::sync_directory(&self.directory())
    }

    /// Opens the runs that the base lists, the newest first; `store` is the store's number.
    pub(in crate::tree) fn open(&self, store: u64, entries: &[RunEntry]) -> Result<Runs, RunError> {
        let open = |entry: &RunEntry| Run::open(&self.path(entry.number), store, *entry);
        Ok(Runs::new(
            entries.iter().map(open).map(|run| run.map(Arc::new)).collect::<Result<_, _>>()?,
        ))
    }

    /// Removes a run that the base does not list. If that fails, the next opening removes it.
    pub(in crate::tree) fn remove(&self, number: u64) {
        match fs::remove_file(self.path(number)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, number, "the file of a run that is needed no more remains");
            }
            _ => {}
        }
    }

    /// The files that the base does not list.
    pub(in crate::tree) fn needless(&self, entries: &[RunEntry]) -> io::Result<Vec<u64>> {
        let mut needless = self.list()?;
        needless.retain(|number| entries.iter().all(|entry| entry.number != *number));
        Ok(needless)
    }

    /// The numbers of the existing files.
    fn list(&self) -> io::Result<Vec<u64>> {
        let mut numbers = Vec::new();
        let found = match fs::read_dir(self.directory()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(numbers),
            found => found?,
        };
        for file in found {
            // Other files are ignored.
            numbers.extend(file?.file_name().to_str().and_then(|name| name.parse::<u64>().ok()));
        }
        Ok(numbers)
    }

    /// The existing files, opened for reading. One that is removed meanwhile is left out.
    pub(in crate::tree) fn files(&self) -> io::Result<Vec<(u64, File)>> {
        let mut files = Vec::new();
        for number in self.list()? {
            match File::open(self.path(number)) {
                Ok(file) => files.push((number, file)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(files)
    }
}
