//! Why a call was not done, in the terms of Kyoto Tycoon.

use tokaido_store::{CommitError, ReadError, TransactError, WriteError};

use crate::placement::RunError;

/// A call was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refusal {
    pub(crate) kind: Kind,
    /// The message that the client gets under the name `ERROR`.
    pub(crate) message: String,
}

/// The status of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// 400
    Invalid,
    /// 403
    Forbidden,
    /// 450: the data does not meet the call's conditions.
    Logic,
    /// 404 in the REST interface, otherwise as [`Self::Logic`].
    Missing,
    /// 500
    Internal,
    /// 501
    NotImplemented,
    /// 503
    TimedOut,
}

/// The errors of Kyoto Cabinet's databases that occur here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DatabaseError {
    NotImplemented = 1,
    Invalid = 2,
    Duplicate = 6,
    Missing = 7,
    Logic = 8,
    System = 9,
}

impl DatabaseError {
    fn name(self) -> &'static str {
        match self {
            Self::NotImplemented => "not implemented",
            Self::Invalid => "invalid operation",
            Self::Duplicate => "record duplication",
            Self::Missing => "no record",
            Self::Logic => "logical inconsistency",
            Self::System => "system error",
        }
    }

    fn kind(self) -> Kind {
        match self {
            Self::NotImplemented => Kind::NotImplemented,
            Self::Invalid => Kind::Invalid,
            Self::Duplicate | Self::Logic => Kind::Logic,
            Self::Missing => Kind::Missing,
            Self::System => Kind::Internal,
        }
    }

    /// The refusal with Kyoto Cabinet's own message.
    pub(crate) fn refusal(self) -> Refusal {
        self.because(self.name())
    }

    /// The refusal with a reason.
    pub(crate) fn because(self, reason: impl std::fmt::Display) -> Refusal {
        let message = format!("DB: {}: {}: {reason}", self as u8, self.name());
        Refusal { kind: self.kind(), message }
    }
}

impl Refusal {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// An input is missing or invalid.
    pub(crate) fn parameters() -> Self {
        Self::new(Kind::Invalid, "invalid parameters")
    }

    pub(crate) fn no_database() -> Self {
        Self::new(Kind::Invalid, "no such database")
    }

    pub(crate) fn no_cursor() -> Self {
        Self::new(Kind::Invalid, "no such cursor")
    }
}

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Self {
        let code = match error {
            ReadError::KeyLength { .. } => DatabaseError::Invalid,
            ReadError::Unordered => DatabaseError::NotImplemented,
            _ => DatabaseError::System,
        };
        code.because(error)
    }
}

impl From<WriteError> for Refusal {
    fn from(error: WriteError) -> Self {
        let code = match error {
            WriteError::Read(error) => return error.into(),
            WriteError::WrongKind => DatabaseError::Logic,
            WriteError::ValueLength { .. }
            | WriteError::RecordTooLarge { .. }
            | WriteError::TransactionTooLarge { .. }
            | WriteError::ReadOnly
            | WriteError::Name(_) => DatabaseError::Invalid,
            _ => DatabaseError::System,
        };
        code.because(error)
    }
}

impl From<CommitError> for Refusal {
    fn from(error: CommitError) -> Self {
        DatabaseError::System.because(error)
    }
}

impl From<RunError> for Refusal {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Read(error) => error.into(),
            RunError::Commit(error) => error.into(),
            RunError::Lost => DatabaseError::System.because(error),
        }
    }
}

impl From<TransactError<Self>> for Refusal {
    fn from(error: TransactError<Self>) -> Self {
        match error {
            TransactError::Body(refusal) => refusal,
            TransactError::Write(error) => error.into(),
            TransactError::Commit(error) => error.into(),
            _ => DatabaseError::System.because(error),
        }
    }
}
