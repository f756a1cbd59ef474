//! Why something could not be measured.

use std::{io, process::ExitStatus};

use super::companies::ListError;
use crate::net::LoadError;

/// Something could not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SuiteError {
    /// The user stopped it; what was finished is kept.
    #[error("it was stopped")]
    Stopped,
    /// A load failed.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The list of companies is unavailable.
    #[error(transparent)]
    List(#[from] ListError),
    /// A library returned an error.
    #[error("{0}")]
    Library(String),
    /// The system refused a call.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// The cause.
        source: io::Error,
    },
    /// A program that was started ended, or did not listen in time.
    #[error("{program} {how}; the end of its log: {log}")]
    Start {
        /// Its name.
        program: String,
        /// What happened to it.
        how: String,
        /// The last lines that it wrote.
        log: String,
    },
    /// A program that should have succeeded failed.
    #[error("{program} ended with {status}: {said}")]
    Program {
        /// Its name.
        program: String,
        /// How it ended.
        status: ExitStatus,
        /// The last lines that it wrote.
        said: String,
    },
    /// A server or a program gave an unexpected answer.
    #[error("{what} was answered with {answer:?}")]
    Answer {
        /// The request.
        what: String,
        /// The start of the answer.
        answer: String,
    },
    /// A server refused requests of a load.
    #[error("requests were refused, the first of them so: {0}")]
    Refused(String),
    /// There is not enough space on the disk.
    #[error(
        "{records} records need some {needed} bytes below {directory}, and {left} are left; set TMPDIR to another directory"
    )]
    Room {
        /// The number of records.
        records: u64,
        /// The bytes that they may need.
        needed: u64,
        /// The bytes left.
        left: u64,
        /// Where.
        directory: String,
    },
    /// Nothing was answered.
    #[error("nothing was answered in {0:?}")]
    Silent(std::time::Duration),
}

impl SuiteError {
    /// For `map_err`: the system refused `what`.
    pub(super) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }
}
