//! Why a store was not backed up, restored, compacted or salvaged. Each message says what to do next.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::{CommitError, OpenError, WriteError};

use super::check::{CheckError, CheckReport};

/// An operation on a store failed. Nothing of it remains, if the disk lets it be removed; otherwise
/// its result may be left as `DESTINATION.PID.making`, or, if it is complete, under its name. A
/// store that was to be compacted holds what it held.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpkeepError {
    /// The destination exists already.
    #[error("{} is there already; name a directory that is not", destination.display())]
    Exists {
        /// The destination.
        destination: PathBuf,
    },
    /// The directory to restore to is not empty.
    #[error("{} is not empty; name a directory that is, or that is not there", directory.display())]
    Occupied {
        /// The directory.
        directory: PathBuf,
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
    /// The base is being read.
    #[error("a backup of {} is being made; try again when that is done", directory.display())]
    BackingUp {
        /// The store's directory.
        directory: PathBuf,
    },
    /// The store, or the backup to be restored, is damaged.
    #[error("{0} is damaged: {what}; `tokaido check {0}` tells more, and with --salvage NEW saves what can be read", directory.display())]
    Damaged {
        /// Its directory.
        directory: PathBuf,
        /// What is wrong, or the first such finding.
        what: String,
    },
    /// The caller has cancelled the copy.
    #[error("the copy to {} was given up, as it was asked to be", destination.display())]
    Stopped {
        /// The destination of the copy.
        destination: PathBuf,
    },
    /// The disk has no room for the copy.
    #[error("the copy needs {needed} bytes on the disk of {}, which has {room}; free some space", directory.display())]
    NoRoom {
        /// The store's directory.
        directory: PathBuf,
        /// Bytes that the copy needs.
        needed: u64,
        /// Bytes that are free.
        room: u64,
    },
    /// The store cannot be examined.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The store cannot be opened, or the new one cannot be made.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A record could not be written, or the log could not be written into the base.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// What was written could not be made durable.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// A file could not be read or written.
    #[error("cannot {task} {}: {source}", path.display())]
    Io {
        /// The operation.
        task: &'static str,
        /// The directory that it was for.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl UpkeepError {
    pub(super) fn io(task: &'static str, path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { task, path: path.clone(), source }
    }

    /// Unless a check has read all of the store and found it sound.
    pub(super) fn check(
        directory: &Path,
        report: &CheckReport,
        io: impl Fn(io::Error) -> Self,
    ) -> Result<(), Self> {
        match (report.unread(), report.findings.first()) {
            (Some(error), _) => Err(io(error)),
            (None, Some(finding)) => {
                Err(Self::Damaged { directory: directory.to_owned(), what: finding.to_string() })
            }
            (None, None) => Ok(()),
        }
    }
}
