//! Why a valid request was not done.

use tokaido_store::{CommitError, ReadError, TransactError, WriteError};

/// The store failed, or cannot do what was asked for.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Commit(#[from] CommitError),
    #[error("a delay is for databases of the engine cache; send flush_all without one")]
    DelayedFlush,
    #[error(
        "the values of these keys are too large for one reply; ask for fewer, or raise limits.memcached_reply_bytes_max"
    )]
    ReplyLength,
    #[error("{0}")]
    Other(String),
}

impl From<TransactError<Self>> for Failure {
    fn from(error: TransactError<Self>) -> Self {
        match error {
            TransactError::Body(failure) => failure,
            TransactError::Write(error) => error.into(),
            TransactError::Commit(error) => error.into(),
            _ => Self::Other(error.to_string()),
        }
    }
}

/// Whether a value was too long for the database.
pub(super) fn is_too_large(error: &WriteError) -> bool {
    matches!(error, WriteError::ValueLength { .. } | WriteError::RecordTooLarge { .. })
}
