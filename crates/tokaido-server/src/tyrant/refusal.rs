//! Why a request was not done. The binary protocol says only that it was not, so the reason is for
//! the log, and its number for `misc error`.

use tokaido_script::CallError;
use tokaido_store::{CommitError, ReadError, TransactError, WriteError};

use crate::{backups::BackupError, placement::RunError, procedures::CallFailure};

/// A request was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct Refusal {
    pub(crate) code: ErrorCode,
    pub(crate) reason: String,
}

/// The errors of Tokyo Cabinet's databases that occur here, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ErrorCode {
    #[default]
    Success = 0,
    Invalid = 2,
    Exists = 21,
    Missing = 22,
    Other = 9999,
}

impl ErrorCode {
    /// The number with Tokyo Cabinet's own message, as in `misc error`.
    pub(super) fn text(self) -> String {
        let name = match self {
            Self::Success => "success",
            Self::Invalid => "invalid operation",
            Self::Exists => "existing record",
            Self::Missing => "no record found",
            Self::Other => "miscellaneous error",
        };
        format!("{}: {name}", self as u16)
    }
}

impl Refusal {
    pub(crate) fn new(code: ErrorCode, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into() }
    }

    pub(crate) fn invalid(reason: impl Into<String>) -> Self {
        Self::new(ErrorCode::Invalid, reason)
    }

    pub(crate) fn missing() -> Self {
        Self::new(ErrorCode::Missing, "no record is there")
    }

    pub(crate) fn forbidden(name: &str) -> Self {
        Self::invalid(format!("{name} is masked, see tyrant.mask"))
    }
}

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Self {
        let code = match error {
            ReadError::KeyLength { .. } | ReadError::Unordered => ErrorCode::Invalid,
            _ => ErrorCode::Other,
        };
        Self::new(code, error.to_string())
    }
}

impl From<WriteError> for Refusal {
    fn from(error: WriteError) -> Self {
        let code = match error {
            WriteError::Read(error) => return error.into(),
            WriteError::WrongKind
            | WriteError::ValueLength { .. }
            | WriteError::RecordTooLarge { .. }
            | WriteError::ReadOnly
            | WriteError::Name(_) => ErrorCode::Invalid,
            _ => ErrorCode::Other,
        };
        Self::new(code, error.to_string())
    }
}

impl From<CommitError> for Refusal {
    fn from(error: CommitError) -> Self {
        Self::new(ErrorCode::Other, error.to_string())
    }
}

impl From<&BackupError> for Refusal {
    fn from(error: &BackupError) -> Self {
        let code = if error.is_invalid() { ErrorCode::Invalid } else { ErrorCode::Other };
        Self::new(code, error.to_string())
    }
}

impl From<RunError> for Refusal {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Read(error) => error.into(),
            RunError::Commit(error) => error.into(),
            RunError::Lost => Self::new(ErrorCode::Other, error.to_string()),
        }
    }
}

impl From<TransactError<Self>> for Refusal {
    fn from(error: TransactError<Self>) -> Self {
        match error {
            TransactError::Body(refusal) => refusal,
            TransactError::Write(error) => error.into(),
            TransactError::Commit(error) => error.into(),
            _ => Self::new(ErrorCode::Other, error.to_string()),
        }
    }
}

impl From<CallFailure> for Refusal {
    fn from(failure: CallFailure) -> Self {
        let reason = match (failure.error, failure.request_id) {
            (error @ CallError::Refused { .. }, _) | (error, None) => error.to_string(),
            (_, Some(id)) => format!("the procedure failed; the log has it as {id}"),
        };
        Self::new(ErrorCode::Other, reason)
    }
}
