//! What becomes of an error that a procedure's use of the store meets.

use std::fmt;

use tokaido_store::{IncrementError, ReadError, WriteError, limits::VALUE_LEN_MAX};

use crate::Limits;

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

    /// Why a change of a collection failed. What it is refused for before anything is written leaves the
    /// transaction as it was; anything else may have come half way.
    #[must_use]
    pub fn half_done(error: WriteError) -> Self {
        match error {
            WriteError::Read(ReadError::OtherKind | ReadError::KeyLength { .. })
            | WriteError::FieldLength { .. } => error.into(),
            _ => Self::Poisoned(error.to_string()),
        }
    }
}

/// Refuses a value that no element of a collection has room for, before anything is written.
///
/// # Errors
/// If it is too long.
pub fn check_value(value: &[u8]) -> Result<(), Fault> {
    match value.len() {
        0..=VALUE_LEN_MAX => Ok(()),
        len => Err(Fault::refused(WriteError::ValueLength { len, max: VALUE_LEN_MAX })),
    }
}

/// Refuses to go through so many elements of a collection in one call, within which no time limit is looked at.
///
/// # Errors
/// If there are more than [`Limits::many_keys_max`].
pub fn check_elements(limits: &Limits, elements: u64) -> Result<(), Fault> {
    let max = limits.many_keys_max;
    if elements <= max as u64 {
        return Ok(());
    }
    Err(Fault::Refused(format!(
        "at most {max} elements are gone through in one call, these are {elements}; do it in parts"
    )))
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
