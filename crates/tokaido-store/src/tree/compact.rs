//! Making the file of the base as small as its records.
//!
//! LMDB never gives pages back to the file system: a file that was once large stays large, with
//! free pages that later checkpoints use. A compaction writes a copy without them beside the file,
//! syncs it, and renames it over the file. Whenever it is interrupted, `data.mdb` is either the old
//! one or the new one, each with all records; what remains of a copy is removed at the next opening.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use crate::{OpenError, WriteError};

use super::{
    Options,
    base::{COPY_FILE, DATA_FILE, copy_still, remove_copy},
    check::{CheckError, CheckReport, check, survey_base},
    files,
    lock::{self, LockError, StoreLock},
    open,
};

/// Room that is left on the disk beside the copy, in bytes.
const ROOM_LEFT_MIN: u64 = 1 << 20;

/// A base was not compacted, or not durably so; the store holds what it held.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompactError {
    /// The store cannot be looked at.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The log could not be taken into the base first.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The store is damaged.
    #[error("the store is damaged; `tokaido check` tells more: {}", report.findings[0])]
    Damaged {
        /// What is wrong with it.
        report: Box<CheckReport>,
    },
    /// Somebody reads the file.
    #[error("a backup of {} is being made; try again when that is done", directory.display())]
    InUse {
        /// The store's directory.
        directory: PathBuf,
    },
    /// The disk has no room for the copy.
    #[error("the copy needs {needed} bytes on the disk of {}, which has {room}; free some space", directory.display())]
    NoRoom {
        /// The store's directory.
        directory: PathBuf,
        /// Bytes that the copy takes.
        needed: u64,
        /// Bytes that there are.
        room: u64,
    },
    /// Writing the copy failed.
    #[error("cannot compact {}: {source}", directory.display())]
    Io {
        /// The store's directory.
        directory: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What a compaction came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactReport {
    /// Bytes of the file before.
    pub bytes_before: u64,
    /// Bytes of the file now.
    pub bytes_after: u64,
}

/// Makes the file of the base as small as its records. The log is taken into the base first, and
/// the store is checked, since LMDB's copying trusts the pages that it reads.
///
/// # Errors
/// See [`CompactError`].
pub fn compact(directory: &Path, options: Options) -> Result<CompactReport, CompactError> {
    if !open::exists(directory) {
        return Err(CheckError::NoStore { directory: directory.to_owned() }.into());
    }
    let bytes_before = data_bytes(directory)?;
    open::open(directory, options)?.checkpoint()?;
    let report = check(directory)?;
    if let Some(source) = report.unread() {
        return Err(CompactError::Io { directory: directory.to_owned(), source });
    }
    if !report.is_sound() {
        return Err(CompactError::Damaged { report: Box::new(report) });
    }
    let compaction = Compaction::begin(directory)?;
    compaction.check_room(report.base.pages * report.base.page_len)?;
    compaction.copy()?;
    compaction.replace()?;
    Ok(CompactReport { bytes_before, bytes_after: data_bytes(directory)? })
}

fn data_bytes(directory: &Path) -> Result<u64, CompactError> {
    let metadata = fs::metadata(directory.join(DATA_FILE));
    let metadata =
        metadata.map_err(|source| CompactError::Io { directory: directory.to_owned(), source })?;
    Ok(metadata.len())
}

/// A compaction, step by step.
struct Compaction<'d> {
    directory: &'d Path,
    _lock: StoreLock,
    _base: File,
}

impl<'d> Compaction<'d> {
    fn begin(directory: &'d Path) -> Result<Self, CompactError> {
        let owned = || directory.to_owned();
        let io = |source| CompactError::Io { directory: owned(), source };
        let lock = StoreLock::take(directory).map_err(|error| match error {
            LockError::Held => OpenError::Locked { directory: owned() }.into(),
            LockError::Io(error) => io(error),
        })?;
        let base = lock::take_base(directory).map_err(|error| match error {
            LockError::Held => CompactError::InUse { directory: owned() },
            LockError::Io(error) => io(error),
        })?;
        remove_copy(directory).map_err(io)?;
        lock.seal.break_open().map_err(io)?;
        Ok(Self { directory, _lock: lock, _base: base })
    }

    fn io(&self, source: io::Error) -> CompactError {
        CompactError::Io { directory: self.directory.to_owned(), source }
    }

    fn check_room(&self, bytes: u64) -> Result<(), CompactError> {
        let needed = bytes + ROOM_LEFT_MIN;
        let room = files::room(self.directory).map_err(|error| self.io(error))?;
        if room < needed {
            return Err(CompactError::NoRoom {
                directory: self.directory.to_owned(),
                needed,
                room,
            });
        }
        Ok(())
    }

    /// Writes the copy, durably, under its own name.
    fn copy(&self) -> Result<(), CompactError> {
        let path = self.directory.join(COPY_FILE);
        let write = || -> Result<(), CompactError> {
            let file = files::create_new(&path).map_err(|error| self.io(error))?;
            copy_still(self.directory, &file).map_err(|error| self.io(error.into()))?;
            file.sync_all().map_err(|error| self.io(error))?;
            // A copy that tells another store, or another checkpoint, shall not take the place.
            let survey = |path: &Path| {
                let base = survey_base(path).map_err(|error| self.io(error.into()));
                base.map(|base| (base.store, base.sequence))
            };
            if survey(&path)? != survey(&self.directory.join(DATA_FILE))? {
                let what = "the copy is not what it was copied from; please report this as a bug";
                return Err(self.io(io::Error::other(what)));
            }
            Ok(())
        };
        write().inspect_err(|_| {
            // If this fails as well, the next opening removes it.
            let _ = fs::remove_file(&path);
        })
    }

    /// Puts the copy into the place of the file.
    fn replace(&self) -> Result<(), CompactError> {
        let renamed = fs::rename(self.directory.join(COPY_FILE), self.directory.join(DATA_FILE));
        renamed.and_then(|()| files::sync_directory(self.directory)).map_err(|error| self.io(error))
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

    /// What a process finds that opens the files as they are at this instant, after a kill.
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
        // In the middle of the copy.
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
        // Of a later version: LMDB copies what it does not look into.
        let data = directory.path().join(DATA_FILE);
        let mut bytes = fs::read(&data).unwrap();
        let (version_1, version_2) = (b"format\x01", b"format\x02");
        let places: Vec<_> =
            (0..bytes.len()).filter(|at| bytes[*at..].starts_with(version_1)).collect();
        assert!(!places.is_empty());
        for at in places {
            bytes[at..at + version_2.len()].copy_from_slice(version_2);
        }
        fs::write(&data, bytes).unwrap();
        let error = compaction.copy().unwrap_err();
        assert!(error.to_string().contains("the unknown version 2"), "{error}");
        assert!(!directory.path().join(COPY_FILE).exists());
    }

    #[test]
    fn without_room_nothing_is_begun() {
        let directory = store();
        let compaction = Compaction::begin(directory.path()).unwrap();
        assert!(compaction.check_room(1).is_ok());
        let error = compaction.check_room(1 << 60).unwrap_err();
        assert!(matches!(error, CompactError::NoRoom { .. }), "{error}");
    }
}
