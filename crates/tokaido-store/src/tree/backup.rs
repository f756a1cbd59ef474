//! Backups of a store that is in use, and the way back.
//!
//! A backup is a store: the base as of its last checkpoint, and the log from there. The log is read
//! first and the base copied then. A checkpoint in between only makes some of the log needless: at
//! no time is a transaction neither in the segments that are there nor in the base. So nothing has
//! to stop for a backup, and it needs nothing of the process that writes: the program makes it from
//! outside, of a running server or of none, with LMDB's reader table to keep the pages that it
//! reads. The other way, a command to the server, would need a path on the server's machine from a
//! client, a password, and a server that runs.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use super::{
    LogStorage, TreeStore,
    base::{BaseOpenError, DATA_FILE, PageDirectory, copy_beside},
    check::{self, CheckError, CheckReport, SurveyError, survey_base},
    files::{self, DirectoryInMaking},
    lock::{self, LOCK_FILE, LockError, OpenHere},
    log::{Captured, DirectoryStorage, LOG_DIRECTORY, RecoveryError, capture, read_log},
    options::SNAPSHOTS_MAX_DEFAULT,
    shared::Shared,
};

/// How often the log is read anew because a checkpoint has removed a segment meanwhile. One
/// checkpoint fills a memtable first, so a second time is rare.
const LOG_ATTEMPTS_MAX: usize = 100;

/// A backup was not made; nothing of it remains, if the disk lets it be removed. Otherwise it may be
/// left as `DESTINATION.PID.making`, or, as a whole, under its name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// There is nothing to back up.
    #[error("there is no store in {}", directory.display())]
    NoStore {
        /// The directory.
        directory: PathBuf,
    },
    /// There is something at the destination already.
    #[error("{} is there already; name a directory that is not", destination.display())]
    Exists {
        /// The destination.
        destination: PathBuf,
    },
    /// This process has the store open itself, or is backing it up already.
    #[error("this process has {} open: call the store's own backup, and one at a time", directory.display())]
    OpenHere {
        /// The store's directory.
        directory: PathBuf,
    },
    /// The base is being replaced.
    #[error("{} is being compacted; try again when that is done", directory.display())]
    Compacting {
        /// The store's directory.
        directory: PathBuf,
    },
    /// The store is damaged, so this would be no backup.
    #[error("the store is damaged: {what}; `tokaido check` tells more")]
    Damaged {
        /// What is wrong.
        what: String,
    },
    /// Reading the store, or writing the copy, failed.
    #[error("cannot back {} up to {}: {source}", directory.display(), destination.display())]
    Io {
        /// The store's directory.
        directory: PathBuf,
        /// The destination.
        destination: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A backup was not restored; the directory is as it was, or not there if it was empty. What the
/// disk does not let be removed may be left beside it as `DIRECTORY.PID.making`, or, as a whole
/// store, under its name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The directory is not empty.
    #[error("{} is not empty; name a directory that is, or that is not there", directory.display())]
    Occupied {
        /// The directory to restore to.
        directory: PathBuf,
    },
    /// The backup cannot be looked at.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The backup is damaged.
    #[error("the backup {} is damaged; `tokaido check` tells more: {}", backup.display(), report.findings[0])]
    Damaged {
        /// The backup.
        backup: PathBuf,
        /// What is wrong with it.
        report: Box<CheckReport>,
    },
    /// Reading the backup, or writing the store, failed.
    #[error("cannot restore to {}: {source}", directory.display())]
    Io {
        /// The directory to restore to.
        directory: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A backup that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupReport {
    /// The last transaction in it.
    pub sequence: u64,
    /// Bytes of its files.
    pub bytes: u64,
}

/// Copies the store in `directory` to `destination`, whether or not another process has it open.
/// It holds every transaction that was acknowledged before, and of those that come meanwhile a part
/// without gaps. The copy is on disk as a whole when it appears under its name.
///
/// # Errors
/// See [`BackupError`].
pub fn backup(directory: &Path, destination: &Path) -> Result<BackupReport, BackupError> {
    let owned = || directory.to_owned();
    if !directory.join(DATA_FILE).is_file() {
        return Err(BackupError::NoStore { directory: owned() });
    }
    let making = Making::begin(directory, destination)?;
    let _open = OpenHere::take(directory).map_err(|error| match error {
        LockError::Held => BackupError::OpenHere { directory: owned() },
        LockError::Io(source) => making.io(source),
    })?;
    let _kept = lock::keep_base(directory).map_err(|error| match error {
        LockError::Held => BackupError::Compacting { directory: owned() },
        LockError::Io(source) => making.io(source),
    })?;
    let storage = DirectoryStorage::existing(directory);
    making.copy(&storage, |file| Ok(copy_beside(directory, file, SNAPSHOTS_MAX_DEFAULT)?))
}

impl TreeStore {
    /// As [`backup`], of a store that this process has open, while it reads and writes.
    ///
    /// # Errors
    /// See [`BackupError`].
    pub fn backup(&self, destination: &Path) -> Result<BackupReport, BackupError> {
        let shared: &Shared = self.shared();
        let making = Making::begin(&shared.directory, destination)?;
        making.copy(&*shared.storage, |file| shared.base.copy(file))
    }
}

struct Making<'d> {
    source: &'d Path,
    destination: &'d Path,
    directory: DirectoryInMaking,
}

impl<'d> Making<'d> {
    fn begin(source: &'d Path, destination: &'d Path) -> Result<Self, BackupError> {
        match fs::symlink_metadata(destination) {
            Ok(_) => return Err(BackupError::Exists { destination: destination.to_owned() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io_error(source, destination, error)),
        }
        let directory = DirectoryInMaking::beside(destination)
            .map_err(|error| io_error(source, destination, error))?;
        Ok(Self { source, destination, directory })
    }

    fn io(&self, error: io::Error) -> BackupError {
        io_error(self.source, self.destination, error)
    }

    fn copy(
        self,
        storage: &dyn LogStorage,
        copy_base: impl FnOnce(&File) -> Result<(), BaseOpenError>,
    ) -> Result<BackupReport, BackupError> {
        let path = self.directory.path();
        let segments = self.copy_log(storage).map_err(|error| self.io(error))?;
        let data = path.join(DATA_FILE);
        let file = files::create_new(&data).map_err(|error| self.io(error))?;
        copy_base(&file).map_err(|error| self.io(error.into()))?;
        file.sync_all().map_err(|error| self.io(error))?;
        let sequence = self.verify()?;
        let (source, destination) = (self.source, self.destination);
        let finished = self.finish(&segments, sequence);
        finished.map_err(|error| io_error(source, destination, error))
    }

    /// Copies the segments that are there. Gives each with its last transaction.
    fn copy_log(&self, storage: &dyn LogStorage) -> io::Result<Vec<(u64, Option<u64>)>> {
        let log = self.directory.path().join(LOG_DIRECTORY);
        let copies = DirectoryStorage::existing(self.directory.path());
        let mut attempts_left = LOG_ATTEMPTS_MAX;
        loop {
            fs::create_dir(&log)?;
            match copy_segments(storage, &copies) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && attempts_left > 0 => {
                    attempts_left -= 1;
                    fs::remove_dir_all(&log)?;
                }
                copied => return copied,
            }
        }
    }

    /// Reads base and log of the copy. Gives the last transaction of the base, and that of the log.
    fn verify(&self) -> Result<(u64, u64), BackupError> {
        let path = self.directory.path();
        let survey = survey_base(&path.join(DATA_FILE));
        let PageDirectory { store, sequence: base_sequence, .. } =
            survey.map_err(|error| match error {
                SurveyError::Io(error) => self.io(error),
                SurveyError::Damaged(what) => BackupError::Damaged { what },
            })?;
        let copies = DirectoryStorage::existing(path);
        match read_log(&copies, store, base_sequence, |_, _| Ok(())) {
            Ok((recovered, _)) => Ok((base_sequence, recovered.last_sequence)),
            Err(RecoveryError::Io(error)) => Err(self.io(error)),
            Err(RecoveryError::Damaged(damage)) => {
                Err(BackupError::Damaged { what: damage.to_string() })
            }
            Err(RecoveryError::Version(version)) => Err(BackupError::Damaged {
                what: format!("its log has the unknown version {version}"),
            }),
        }
    }

    fn finish(
        self,
        segments: &[(u64, Option<u64>)],
        (base_sequence, sequence): (u64, u64),
    ) -> io::Result<BackupReport> {
        let path = self.directory.path();
        let copies = DirectoryStorage::existing(path);
        // What the base holds as well need not be read at every opening.
        for (segment, last) in segments {
            if last.is_none_or(|last| last <= base_sequence) {
                copies.remove(*segment)?;
            }
        }
        write_synced(&path.join(LOCK_FILE), &[])?;
        copies.sync_directory()?;
        let bytes = files::bytes_below(path)?;
        self.directory.become_target(self.destination)?;
        Ok(BackupReport { sequence, bytes })
    }
}

fn io_error(directory: &Path, destination: &Path, source: io::Error) -> BackupError {
    let (directory, destination) = (directory.to_owned(), destination.to_owned());
    BackupError::Io { directory, destination, source }
}

/// Copies every segment, or none: gives "not found" if one is gone before it was read.
fn copy_segments(
    storage: &dyn LogStorage,
    copies: &DirectoryStorage,
) -> io::Result<Vec<(u64, Option<u64>)>> {
    let mut copied = Vec::new();
    for segment in storage.list()? {
        let Captured { bytes, last_sequence } = capture(storage, segment)?;
        if !bytes.is_empty() {
            write_synced(&copies.path(segment), &bytes)?;
            copied.push((segment, last_sequence));
        }
    }
    Ok(copied)
}

/// Writes a new file, and syncs it.
fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = files::create_new(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes a store in `directory`, which is absent or empty, of a backup, once that is found sound.
///
/// # Errors
/// See [`RestoreError`].
pub fn restore(backup: &Path, directory: &Path) -> Result<CheckReport, RestoreError> {
    let io = |source| RestoreError::Io { directory: directory.to_owned(), source };
    if !files::is_vacant(directory).map_err(io)? {
        return Err(RestoreError::Occupied { directory: directory.to_owned() });
    }
    let (report, _still) = check::check_held(backup)?;
    if let Some(error) = report.unread() {
        return Err(io(error));
    }
    if !report.is_sound() {
        let report = Box::new(report);
        return Err(RestoreError::Damaged { backup: backup.to_owned(), report });
    }
    copy_store(backup, directory).map_err(io)?;
    Ok(report)
}

/// Copies a store that stands still.
fn copy_store(from: &Path, to: &Path) -> io::Result<()> {
    let making = DirectoryInMaking::beside(to)?;
    let path = making.path();
    copy_synced(&from.join(DATA_FILE), &path.join(DATA_FILE))?;
    fs::create_dir(path.join(LOG_DIRECTORY))?;
    let (log, copies) = (DirectoryStorage::existing(from), DirectoryStorage::existing(path));
    for segment in log.list()? {
        copy_synced(&log.path(segment), &copies.path(segment))?;
    }
    copies.sync_directory()?;
    write_synced(&path.join(LOCK_FILE), &[])?;
    making.become_target(to)
}

fn copy_synced(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = File::open(from)?;
    let mut file = files::create_new(to)?;
    io::copy(&mut source, &mut file)?;
    file.sync_all()
}
