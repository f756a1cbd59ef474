//! How errors are handled that a procedure meets when it uses the store.

use std::fmt;

use tokaido_store::{IncrementError, ReadError, WriteError, limits::VALUE_LEN_MAX};

use crate::Limits;

/// Why an operation of a procedure failed.
#[derive(Debug)]
pub enum Fault {
    /// The call was wrong. Nothing has happened; the procedure may catch the error and go on.
    Refused(String),
    /// The transaction is no longer what the procedure believes, so it must not be committed, even if
    /// the procedure catches the error.
    Poisoned(String),
}

impl Fault {
    /// A wrong call, for the given reason.
    pub fn refused(why: impl fmt::Display) -> Self {
        Self::Refused(why.to_string())
    }

    /// Why a change of a collection failed. A refusal before anything is written leaves the transaction as
    /// it was; any other error may have come half way.
    #[must_use]
    pub fn half_done(error: WriteError) -> Self {
        match error {
            WriteError::Read(ReadError::OtherKind | ReadError::KeyLength { .. })
            | WriteError::FieldLength { .. } => error.into(),
            _ => Self::Poisoned(error.to_string()),
        }
    }
}

/// Refuses a value that is too long for an element of a collection, before anything is written.
///
/// # Errors
/// If it is too long.
pub fn check_value(value: &[u8]) -> Result<(), Fault> {
    match value.len() {
        0..=VALUE_LEN_MAX => Ok(()),
        len => Err(Fault::refused(WriteError::ValueLength { len, max: VALUE_LEN_MAX })),
    }
}

/// Refuses to visit too many elements of a collection in one call, within which no time limit is checked.
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
            // The code by which Redis clients recognise it.
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
