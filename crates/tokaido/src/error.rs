//! All errors that end a command, and their exit codes.

use std::{
    io,
    path::{Path, PathBuf},
};

use rustyline::error::ReadlineError;
use tokaido_bench::{net::LoadError, report::ChartError, suite::RunError};
use tokaido_script::{CallError, RuntimeError, json::JsonError};
use tokaido_server::{ConfigError, ListenError, StartError};
use tokaido_store::{
    CommitError, DatabaseError, OpenError, ReadError, TransactError, WriteError, cdb,
    composite::MountError,
    tree::{self, UpkeepError},
};

use crate::{
    client::ClientError,
    formats::{self, UnwritableRow, cdb_text::TextError},
    http::HttpError,
};

/// Exit code of a command that could not do what it was asked to, or found nothing. All exit codes
/// are listed in docs/command-line.md.
pub(crate) const EXIT_FAILED: u8 = 1;

/// Exit code of an invalid command line; clap uses the same.
pub(crate) const EXIT_USAGE: u8 = 2;

/// Exit code of a command that could not reach the data: no server answers, or the store cannot be
/// opened.
pub(crate) const EXIT_UNREACHABLE: u8 = 3;

/// Exit code of a script that was ended by Ctrl-C: as in a shell, the signal plus 128.
pub(crate) const EXIT_INTERRUPTED: u8 = 130;

/// Why a command ended early. The text is all that the user sees, so it says what to do next.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{0}")]
    Usage(String),
    /// Standard output was closed. If its reader had seen enough, this is not a failure.
    #[error("cannot write to standard output: {0}")]
    Stdout(io::Error),
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{}: {source}", path.display())]
    Input { path: PathBuf, source: formats::ReadError },
    #[error("{what}: {source}")]
    Io { what: &'static str, source: io::Error },
    #[error("{} is in use by another tokaido process; if that is a server, talk to it with --connect ADDRESS in place of --dir", directory.display())]
    Held { directory: PathBuf },
    #[error("there is no store in {}; make one with `tokaido load` or `tokaido serve`", directory.display())]
    NoStore { directory: PathBuf },
    #[error("there is no database {name:?}; the store has: {found}")]
    NoDatabase { name: String, found: String },
    #[error(transparent)]
    Open(OpenError),
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error(transparent)]
    Mount(#[from] MountError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Commit(#[from] CommitError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Http(#[from] HttpError),
    /// A new error of the store, unknown to this program.
    #[error("the transaction failed")]
    Unknown,
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    #[error("{0}")]
    Lua(String),
    #[error("{}", CallError::Interrupted)]
    Interrupted,
    /// A look-up failed. Its exit code differs from the one for a missing key.
    #[error(transparent)]
    LookUp(Box<Error>),
    #[error("there is no procedure {name:?}; there are: {found}")]
    NoProcedure { name: String, found: String },
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("the server refuses to set keys: {message}")]
    Refused { message: String },
    #[error(transparent)]
    StoredRun(#[from] RunError),
    #[error(transparent)]
    Chart(#[from] ChartError),
    #[error("{0}; leave out --json to see the result")]
    Json(#[from] JsonError),
    #[error("{name} failed: {message}")]
    Call { name: String, message: String },
    #[error("the terminal cannot be read: {source}")]
    Terminal { source: ReadlineError },
    #[error("{0}")]
    Unwritable(UnwritableRow),
    #[error(
        "{source}\n{stored} rows before that are stored; load the same again once it is put right, rows that are there already are no harm"
    )]
    LoadStopped { stored: u64, source: Box<Error> },
    #[error(transparent)]
    Check(#[from] tree::CheckError),
    #[error(transparent)]
    Upkeep(#[from] UpkeepError),
    #[error(transparent)]
    CdbOpen(#[from] cdb::OpenError),
    #[error("{}: {source}", path.display())]
    CdbDamaged { path: PathBuf, source: cdb::Damaged },
    #[error(transparent)]
    CdbMake(#[from] cdb::MakeError),
    #[error("{name}: {source}")]
    CdbText { name: String, source: TextError },
}

impl Error {
    /// The exit code for this kind of error.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_)
            | Self::Load(LoadError::NoOperation { .. })
            | Self::Config(_)
            | Self::Start(
                StartError::Config(_) | StartError::Listen(ListenError::OpenWithoutPassword { .. }),
            ) => EXIT_USAGE,
            Self::Held { .. }
            | Self::NoStore { .. }
            | Self::Open(_)
            | Self::Start(StartError::Open(_))
            | Self::Check(_)
            | Self::Upkeep(UpkeepError::Check(_) | UpkeepError::Open(_))
            | Self::Http(HttpError::Protocol { .. })
            | Self::Load(LoadError::Connect { .. })
            | Self::LookUp(_) => EXIT_UNREACHABLE,
            Self::Client(error) | Self::Http(HttpError::Client(error)) => error.exit_code(),
            Self::LoadStopped { source, .. } => source.exit_code(),
            Self::Interrupted => EXIT_INTERRUPTED,
            _ => EXIT_FAILED,
        }
    }

    /// For `map_err`, when looking up a key.
    pub(crate) fn looking_up(self) -> Self {
        match self {
            // Without the database, the key does not exist.
            absent @ Self::NoDatabase { .. } => absent,
            error if error.exit_code() == EXIT_FAILED => Self::LookUp(Box::new(error)),
            error => error,
        }
    }

    /// Whether the reader of the output has gone, as with `head`.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        match self {
            Self::Stdout(error) => error.kind() == io::ErrorKind::BrokenPipe,
            Self::LookUp(error) => error.is_broken_pipe(),
            _ => false,
        }
    }

    /// For `map_err`, when waiting for a signal.
    pub(crate) fn signal(source: io::Error) -> Self {
        Self::Io { what: "cannot wait for signals", source }
    }

    /// For `map_err`, when using a file.
    pub(crate) fn file(path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::File { path: path.to_owned(), source }
    }
}

/// The text of a script's error: the message, and its traceback.
pub(crate) fn lua_message(error: &CallError) -> String {
    match error {
        // A traceback of one line says no more than the message.
        CallError::Raised { message, traceback } if traceback.lines().count() > 1 => {
            format!("{message}\n{traceback}")
        }
        error => error.to_string(),
    }
}

/// The error that ends the command after a script's error.
pub(crate) fn lua_error(error: &CallError) -> Error {
    match error {
        CallError::Interrupted => Error::Interrupted,
        error => Error::Lua(lua_message(error)),
    }
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Locked { directory } => Self::Held { directory },
            error => Self::Open(error),
        }
    }
}

impl<E: Into<Error>> From<TransactError<E>> for Error {
    fn from(error: TransactError<E>) -> Self {
        match error {
            TransactError::Body(error) => error.into(),
            TransactError::Write(error) => error.into(),
            TransactError::Commit(error) => error.into(),
            _ => Self::Unknown,
        }
    }
}

/// The error message for Ruby in a program built without it.
#[cfg(not(feature = "ruby"))]
pub(crate) fn without_ruby() -> Error {
    Error::Usage("this program was built without Ruby, its feature \"ruby\"".to_owned())
}
