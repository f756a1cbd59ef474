//! What becomes of an error that a procedure's use of the store meets.

use std::fmt;

use tokaido_store::{IncrementError, ReadError, WriteError};

/// Why an operation of a procedure failed.
#[derive(Debug)]
pub enum Fault {
    /// The call was wrong; nothing has happened, and the procedure may catch it and go on.
    Refused(String),
    /// The transaction is no longer what the procedure believes, so it must not be committed even
    /// if the procedure catches the error.
    Poisoned(String),
}

impl Fault {
    /// A wrong call, for the reason that is given.
    pub fn refused(why: impl fmt::Display) -> Self {
        Self::Refused(why.to_string())
    }
}

impl From<ReadError> for Fault {
    fn from(error: ReadError) -> Self {
        match error {
            // The code that clients of Redis tell it by.
            ReadError::OtherKind => Self::Refused(format!("WRONGTYPE {error}")),
            ReadError::KeyLength { .. }
            | ReadError::Unordered
            | ReadError::NoPages
            | ReadError::CursorLost => Self::refused(error),
            _ => Self::Poisoned(error.to_string()),
        }
    }
}

impl From<WriteError> for Fault {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Read(error) => error.into(),
            WriteError::WrongKind => Self::Refused(format!("WRONGTYPE {error}")),
            WriteError::ValueLength { .. }
            | WriteError::FieldLength { .. }
            | WriteError::RecordTooLarge { .. }
            | WriteError::BytesOnly
            | WriteError::Name(_)
            | WriteError::Mounted
            | WriteError::Dropped
            | WriteError::ReadOnly
            | WriteError::Raced => Self::refused(error),
            _ => Self::Poisoned(error.to_string()),
        }
    }
}

impl From<IncrementError> for Fault {
    fn from(error: IncrementError) -> Self {
        match error {
            IncrementError::Write(error) => error.into(),
            _ => Self::refused(error),
        }
    }
}
