//! Backups of a store that is in use, and restoring them.
//!
//! A backup is a store: the base with its runs, and the log since its last checkpoint. The log is copied first, then the
//! base. Since a checkpoint is written into the base in pieces, the log must have everything that any piece has. So what
//! was written to the log meanwhile is read once more while nothing is committed to the base, until LMDB has begun to copy
//! the last commit. That takes no longer than reading from memory, and writers continue meanwhile. The program makes a
//! backup from outside, with or without a running server, and needs nothing else of the writing process: LMDB's reader
//! table keeps the pages that it reads. A server backs up the store that it has open, when a client asks for it.

use std::{
    collections::BTreeMap,
    fmt,
    fs::{self, File},
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    UpkeepError,
    check::{self, BaseIdentity, CheckError, CheckReport, survey_base},
    paced,
};
use crate::tree::{
    LogStorage, TreeStore,
    base::{DATA_FILE, copy_beside, pages::PageFileError},
    files::{self, DirectoryInMaking},
    lock::{self, LOCK_FILE, OpenHere},
    log::{Captured, DirectoryStorage, LOG_DIRECTORY, RecoveryError, capture, read_log},
    options::SNAPSHOTS_MAX_DEFAULT,
    runs::{RunDirectory, RunError},
    shared::Shared,
};

/// How often the log is read again because a checkpoint has removed a segment meanwhile. A
/// checkpoint needs a full memtable first, so a second time is rare.
const LOG_ATTEMPTS_MAX: usize = 100;

/// The result of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupReport {
    /// The last transaction in the backup.
    pub sequence: u64,
    /// Bytes of its files.
    pub bytes: u64,
}

/// Copies the store in `directory` to `destination`, whether or not another process has it open. It
/// holds every transaction that was acknowledged before, and a gapless part of those that come
/// meanwhile. When the copy appears under its name, it is complete on disk.
///
/// # Errors
/// See [`UpkeepError`].
pub fn backup(directory: &Path, destination: &Path) -> Result<BackupReport, UpkeepError> {
    let owned = || directory.to_owned();
    if !directory.join(DATA_FILE).is_file() {
        return Err(CheckError::NoStore { directory: owned() }.into());
    }
    let stop = AtomicBool::new(false);
    let making = Making::begin(directory, destination, &stop)?;
    let right = OpenHere::take(directory)
        .map_err(|error| error.or(UpkeepError::OpenHere { directory: owned() }, making.io()))?;
    let _kept = lock::keep_base(directory)
        .map_err(|error| error.or(UpkeepError::Compacting { directory: owned() }, making.io()))?;
    let storage = DirectoryStorage::existing(directory);
    making.copy(&storage, |file, commits_off| {
        paced::write_produced(
            file,
            &stop,
            || drop(commits_off),
            |pipe| Ok(copy_beside(directory, pipe, SNAPSHOTS_MAX_DEFAULT, &right)?),
        )
    })
}

impl TreeStore {
    /// Like [`backup`], for a store that this process has open and is using.
    ///
    /// # Errors
    /// See [`UpkeepError`].
    pub fn backup(&self, destination: &Path) -> Result<BackupReport, UpkeepError> {
        self.copier().backup(destination, &AtomicBool::new(false))
    }

    /// Makes backups on any thread, for a program that has put the store behind a trait.
    #[must_use]
    pub fn copier(&self) -> Copier {
        Copier { shared: Arc::clone(&self.shared) }
    }
}

/// Makes backups of a store that this process has open. The store remains locked as long as this
/// lives.
pub struct Copier {
    shared: Arc<Shared>,
}

impl fmt::Debug for Copier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Copier").field(&self.shared.durable.directory).finish()
    }
}

impl Copier {
    /// Like [`TreeStore::backup`], until `stop` is set: then the copy is soon cancelled, and
    /// nothing of it remains.
    ///
    /// # Errors
    /// See [`UpkeepError`].
    pub fn backup(
        &self,
        destination: &Path,
        stop: &AtomicBool,
    ) -> Result<BackupReport, UpkeepError> {
        let durable = &self.shared.durable;
        let making = Making::begin(&durable.directory, destination, stop)?;
        let base = &self.shared.base;
        making.copy(&*durable.storage, |file, commits_off| {
            paced::write_produced(file, stop, || drop(commits_off), |pipe| Ok(base.copy(pipe)?))
        })
    }
}

/// A copy of a store that is being made.
struct Making<'d> {
    task: &'static str,
    source: &'d Path,
    destination: &'d Path,
    directory: DirectoryInMaking,
    /// The copy is cancelled once this is set.
    stop: &'d AtomicBool,
}

impl<'d> Making<'d> {
    fn begin(
        source: &'d Path,
        destination: &'d Path,
        stop: &'d AtomicBool,
    ) -> Result<Self, UpkeepError> {
        if fs::symlink_metadata(destination).is_ok() {
            return Err(UpkeepError::Exists { destination: destination.to_owned() });
        }
        Self::of("make the backup", source, destination, stop)
    }

    fn of(
        task: &'static str,
        source: &'d Path,
        destination: &'d Path,
        stop: &'d AtomicBool,
    ) -> Result<Self, UpkeepError> {
        let directory = DirectoryInMaking::beside(destination);
        let directory = directory.map_err(UpkeepError::io(task, destination))?;
        Ok(Self { task, source, destination, directory, stop })
    }

    fn io(&self) -> impl Fn(io::Error) -> UpkeepError + 'static {
        UpkeepError::io(self.task, self.destination)
    }

    /// `copy_base` gets the lock that blocks commits to the base until the copy has begun.
    fn copy(
        self,
        storage: &dyn LogStorage,
        copy_base: impl FnOnce(&File, File) -> io::Result<()>,
    ) -> Result<BackupReport, UpkeepError> {
        let (directory, io) = (self.source.to_owned(), self.io());
        let (destination, stop) = (self.destination, self.stop);
        self.try_copy(storage, copy_base).map_err(|error| match error {
            _ if stop.load(Ordering::Relaxed) => {
                UpkeepError::Stopped { destination: destination.to_owned() }
            }
            PageFileError::Io(error) => io(error),
            PageFileError::Damaged(what) => UpkeepError::Damaged { directory, what },
        })
    }

    fn try_copy(
        self,
        storage: &dyn LogStorage,
        copy_base: impl FnOnce(&File, File) -> io::Result<()>,
    ) -> Result<BackupReport, PageFileError> {
        let path = self.directory.path();
        let mut segments = copy_log(storage, path, self.stop)?;
        let file = files::create_new(&path.join(DATA_FILE))?;
        let commits_off = lock::keep_commits_off(self.source)?;
        let written_since = capture_from(storage, segments.keys().last().copied())?;
        // An open run stays readable, even if it is merged meanwhile and its file is gone.
        let runs = RunDirectory::new(self.source, 0).files()?;
        copy_base(&file, commits_off)?;
        file.sync_all()?;
        copy_runs(&survey_base(&path.join(DATA_FILE))?, &runs, path, self.stop)?;
        let copies = DirectoryStorage::existing(path);
        for (segment, captured) in written_since {
            if segments.insert(segment, captured.last_sequence).is_some() {
                copies.remove(segment)?;
            }
            write_segment(&copies, segment, &captured, self.stop)?;
        }
        let (base_sequence, sequence) = verify(path)?;
        // Segments that the base covers need not be read at every opening.
        for (segment, last) in segments {
            if last.is_none_or(|last| last <= base_sequence) {
                copies.remove(segment)?;
            }
        }
        files::create_new(&path.join(LOCK_FILE))?.sync_all()?;
        copies.sync_directory()?;
        let bytes = files::bytes_below(path)?;
        self.directory.become_target(self.destination)?;
        Ok(BackupReport { sequence, bytes })
    }
}

/// Copies the runs that the copy of the base lists.
fn copy_runs(
    base: &BaseIdentity,
    runs: &[(u64, File)],
    to: &Path,
    stop: &AtomicBool,
) -> Result<(), PageFileError> {
    if base.runs.entries.is_empty() {
        return Ok(());
    }
    let copies = RunDirectory::new(to, base.runs.next);
    copies.make()?;
    for entry in &base.runs.entries {
        let found = runs.iter().find(|(number, _)| *number == entry.number);
        let missing = || PageFileError::Damaged(format!("run {} is not there", entry.number));
        let (_, file) = found.ok_or_else(missing)?;
        let copy = files::create_new(&copies.path(entry.number))?;
        paced::write_from(&copy, file, stop)?;
    }
    copies.sync()?;
    Ok(())
}

/// Segments that were copied, each with its last transaction.
type Copied = BTreeMap<u64, Option<u64>>;

/// Copies the existing segments.
fn copy_log(storage: &dyn LogStorage, to: &Path, stop: &AtomicBool) -> io::Result<Copied> {
    let log = to.join(LOG_DIRECTORY);
    let mut attempts_left = LOG_ATTEMPTS_MAX;
    loop {
        fs::create_dir(&log)?;
        match copy_segments(storage, &DirectoryStorage::existing(to), stop) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && attempts_left > 0 => {
                attempts_left -= 1;
                fs::remove_dir_all(&log)?;
            }
            copied => return copied,
        }
    }
}

/// Reads base, runs and log of a copy. Returns the last transactions of the base and of the log.
fn verify(copy: &Path) -> Result<(u64, u64), PageFileError> {
    let BaseIdentity { store, sequence, runs } = survey_base(&copy.join(DATA_FILE))?;
    let damaged = |what: &dyn ToString| PageFileError::Damaged(what.to_string());
    let opened = RunDirectory::new(copy, runs.next).open(store, &runs.entries);
    let opened = opened.map_err(|error| match error {
        RunError::Io { source, .. } => PageFileError::Io(source),
        error @ RunError::Damaged { .. } => damaged(&error),
    })?;
    for run in opened.iter() {
        run.verify().map_err(|error| damaged(&error))?;
    }
    match read_log(&DirectoryStorage::existing(copy), store, sequence, |_, _| Ok(())) {
        Ok(recovered) => Ok((sequence, recovered.last_sequence)),
        Err(RecoveryError::Io(error)) => Err(error.into()),
        Err(error) => Err(PageFileError::Damaged(error.to_string())),
    }
}

/// Copies every segment, or none: returns "not found" if one was removed before it was read.
fn copy_segments(
    storage: &dyn LogStorage,
    copies: &DirectoryStorage,
    stop: &AtomicBool,
) -> io::Result<Copied> {
    let mut copied = Copied::new();
    for segment in storage.list()? {
        let captured = capture(storage, segment)?;
        if !captured.bytes.is_empty() {
            write_segment(copies, segment, &captured, stop)?;
            copied.insert(segment, captured.last_sequence);
        }
    }
    Ok(copied)
}

fn write_segment(
    copies: &DirectoryStorage,
    segment: u64,
    captured: &Captured,
    stop: &AtomicBool,
) -> io::Result<()> {
    paced::write_bytes(&files::create_new(&copies.path(segment))?, &captured.bytes, stop)
}

/// Reads the last copied segment, to which more may have been written since, and those after it. A
/// segment that was removed meanwhile holds nothing that the base does not.
fn capture_from(
    storage: &dyn LogStorage,
    last_copied: Option<u64>,
) -> io::Result<Vec<(u64, Captured)>> {
    let mut found = Vec::new();
    for segment in storage.list()? {
        if last_copied.is_some_and(|last| segment < last) {
            continue;
        }
        match capture(storage, segment) {
            Ok(captured) if captured.bytes.is_empty() => {}
            Ok(captured) => found.push((segment, captured)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// Makes a store in `directory`, which is absent or empty, from a backup that has passed a check.
///
/// # Errors
/// See [`UpkeepError`].
pub fn restore(backup: &Path, directory: &Path) -> Result<CheckReport, UpkeepError> {
    const TASK: &str = "restore to";
    let io = UpkeepError::io(TASK, directory);
    if !files::is_vacant(directory).map_err(&io)? {
        return Err(UpkeepError::Occupied { directory: directory.to_owned() });
    }
    let _still = check::keep_still(backup)?;
    let report = check::examine(backup, &mut |_, _, _, _| {})?;
    UpkeepError::check(backup, &report, &io)?;
    let data = backup.join(DATA_FILE);
    Making::of(TASK, backup, directory, &AtomicBool::new(false))?
        .copy(&DirectoryStorage::existing(backup), |mut file, _| {
            io::copy(&mut File::open(data)?, &mut file).map(drop)
        })?;
    Ok(report)
}
