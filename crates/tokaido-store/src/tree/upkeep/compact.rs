//! Making the base's file as small as its records.
//!
//! LMDB never returns pages to the file system: a file that was once large stays large, with free
//! pages that later checkpoints use. A compaction writes a copy without them beside the file, syncs
//! it, and renames it over the file. Whenever it is interrupted, `data.mdb` is either the old file
//! or the new one, each with all records; the next opening removes what remains of a copy.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

use super::{
    UpkeepError,
    check::{CheckError, check, survey_base},
};
use crate::{
    OpenError,
    tree::{
        Options,
        base::{COPY_FILE, DATA_FILE, copy_still, remove_copy},
        files,
        lock::{self, StoreLock},
        open,
    },
};

/// Room that must be left on the disk beside the copy, in bytes.
const ROOM_LEFT_MIN: u64 = 1 << 20;

/// The result of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactReport {
    /// Bytes of the file before.
    pub bytes_before: u64,
    /// Bytes of the file now.
    pub bytes_after: u64,
}

/// Makes the base's file as small as its records. The log and the runs are written into the base
/// first, and the store is checked, since LMDB trusts the pages that it copies.
///
/// # Errors
/// See [`UpkeepError`].
pub fn compact(directory: &Path, options: Options) -> Result<CompactReport, UpkeepError> {
    if !open::exists(directory) {
        return Err(CheckError::NoStore { directory: directory.to_owned() }.into());
    }
    let io = io_error(directory);
    let data_bytes = || fs::metadata(directory.join(DATA_FILE)).map(|metadata| metadata.len());
    let bytes_before = data_bytes().map_err(&io)?;
    let store = open::open(directory, options)?;
    store.checkpoint()?;
    store.merge_runs()?;
    drop(store);
    let report = check(directory)?;
    UpkeepError::check(directory, &report, &io)?;
    let compaction = Compaction::begin(directory)?;
    compaction.check_room(report.base.pages * report.base.page_len)?;
    compaction.copy().and_then(|()| compaction.replace()).map_err(&io)?;
    Ok(CompactReport { bytes_before, bytes_after: data_bytes().map_err(&io)? })
}

fn io_error(directory: &Path) -> impl Fn(io::Error) -> UpkeepError {
    UpkeepError::io("compact", directory)
}

/// A compaction, step by step.
struct Compaction<'d> {
    directory: &'d Path,
    lock: StoreLock,
    _base: File,
}

impl<'d> Compaction<'d> {
    fn begin(directory: &'d Path) -> Result<Self, UpkeepError> {
        let owned = || directory.to_owned();
        let io = io_error(directory);
        let lock = StoreLock::take(directory)
            .map_err(|error| error.or(OpenError::Locked { directory: owned() }.into(), &io))?;
        let base = lock::take_base(directory)
            .map_err(|error| error.or(UpkeepError::BackingUp { directory: owned() }, &io))?;
        remove_copy(directory).map_err(io)?;
        Ok(Self { directory, lock, _base: base })
    }

    fn check_room(&self, bytes: u64) -> Result<(), UpkeepError> {
        let owned = || self.directory.to_owned();
        let needed = bytes + ROOM_LEFT_MIN;
        match files::room(self.directory) {
            Ok(room) if room < needed => {
                Err(UpkeepError::NoRoom { directory: owned(), needed, room })
            }
            Ok(_) => Ok(()),
            Err(error) => Err(io_error(self.directory)(error)),
        }
    }

    /// Writes the copy, durably, under its own name.
    fn copy(&self) -> io::Result<()> {
        let path = self.directory.join(COPY_FILE);
        let write = || -> io::Result<()> {
            let file = files::create_new(&path)?;
            copy_still(self.directory, &file, &self.lock)?;
            file.sync_all()?;
            // A copy of another store, or another checkpoint, must not replace the file.
            if survey_base(&path)? != survey_base(&self.directory.join(DATA_FILE))? {
                let what = "the copy is not what it was copied from; please report this as a bug";
                return Err(io::Error::other(what));
            }
            Ok(())
        };
        write().inspect_err(|_| {
            // If this fails as well, the next opening removes it.
            let _ = fs::remove_file(&path);
        })
    }

    /// Replaces the file with the copy.
    fn replace(&self) -> io::Result<()> {
        fs::rename(self.directory.join(COPY_FILE), self.directory.join(DATA_FILE))?;
        files::sync_directory(self.directory)
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::{NewRecord, Store, transact};

    const RECORDS: usize = 500;

    fn store() -> TempDir {
        let directory = tempfile::tempdir().unwrap();
        let store = open::open(directory.path(), Options::default()).unwrap();
        let main = store.database("main").unwrap();
        for half in 0..2 {
            transact(&mut *store.writer().unwrap(), |tx| {
                (0..RECORDS / 2).try_for_each(|n| {
                    tx.put(main, format!("{half} {n}").as_bytes(), NewRecord::of(&[b'v'; 500]))
                })
            })
            .unwrap();
            if half == 0 {
                // The second half stays in the log.
                store.checkpoint().unwrap();
            }
        }
        directory
    }

    /// How many records a process finds that opens the files as they are now, after a kill.
    fn records_after_a_kill(directory: &Path) -> u64 {
        let image = tempfile::tempdir().unwrap();
        fs::create_dir(image.path().join("log")).unwrap();
        for entry in
            fs::read_dir(directory).unwrap().chain(fs::read_dir(directory.join("log")).unwrap())
        {
            let path = entry.unwrap().path();
            if path.is_file() {
                let name = path.strip_prefix(directory).unwrap();
                fs::copy(&path, image.path().join(name)).unwrap();
            }
        }
        let store = open::open(image.path(), Options::default()).unwrap();
        assert!(!image.path().join(COPY_FILE).exists(), "what remained of a copy is removed");
        let main = store.find_database("main").unwrap();
        let records = store.snapshot().unwrap().statistics(main).unwrap().records;
        drop(store);
        assert!(check(image.path()).unwrap().is_sound());
        records
    }

    #[test]
    fn a_kill_between_any_two_steps_loses_nothing() {
        let directory = store();
        let path = directory.path();
        let compaction = Compaction::begin(path).unwrap();
        assert_eq!(records_after_a_kill(path), RECORDS as u64);
        // In the middle of copying.
        fs::write(path.join(COPY_FILE), [7; 5000]).unwrap();
        assert_eq!(records_after_a_kill(path), RECORDS as u64);
        remove_copy(path).unwrap();
        compaction.copy().unwrap();
        assert_eq!(records_after_a_kill(path), RECORDS as u64);
        compaction.replace().unwrap();
        assert_eq!(records_after_a_kill(path), RECORDS as u64);
    }

    #[test]
    fn a_base_that_cannot_be_read_is_not_replaced_by_a_copy_that_cannot_either() {
        let directory = store();
        let compaction = Compaction::begin(directory.path()).unwrap();
        // A later version: LMDB copies it without looking at it.
        let data = directory.path().join(DATA_FILE);
        let mut bytes = fs::read(&data).unwrap();
        let (version_1, version_9) = (b"format\x01", b"format\x09");
        let places: Vec<_> =
            (0..bytes.len()).filter(|at| bytes[*at..].starts_with(version_1)).collect();
        assert!(!places.is_empty());
        for at in places {
            bytes[at..at + version_9.len()].copy_from_slice(version_9);
        }
        fs::write(&data, bytes).unwrap();
        let error = compaction.copy().unwrap_err();
        assert!(error.to_string().contains("the unknown version 9"), "{error}");
        assert!(!directory.path().join(COPY_FILE).exists());
    }

    #[test]
    fn without_room_nothing_is_begun() {
        let directory = store();
        let compaction = Compaction::begin(directory.path()).unwrap();
        assert!(compaction.check_room(1).is_ok());
        let error = compaction.check_room(1 << 60).unwrap_err();
        assert!(matches!(error, UpkeepError::NoRoom { .. }), "{error}");
    }
}
