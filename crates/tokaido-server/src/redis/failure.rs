//! Why a command did not do what it was asked to, in the words that Redis clients know.

use tokaido_script::CallError;
use tokaido_store::{CommitError, DatabaseError, IncrementError, ReadError, WriteError};

/// The message starts with the code that clients tell errors apart by.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("ERR syntax error")]
    Syntax,
    #[error("ERR value is not an integer or out of range")]
    NotAnInteger,
    #[error("ERR value is not a valid float")]
    NotAFloat,
    #[error("ERR increment or decrement would overflow")]
    Overflow,
    #[error("ERR increment would produce NaN or Infinity")]
    NotFinite,
    #[error("ERR invalid expire time in '{command}' command")]
    ExpireTime { command: &'static str },
    #[error("ERR string exceeds maximum allowed size (proto-max-bulk-len)")]
    TooLong,
    #[error("ERR no such key")]
    NoSuchKey,
    #[error("ERR DB index is out of range")]
    DatabaseIndex,
    #[error("ERR source and destination objects are the same")]
    SameObject,
    #[error("ERR wrong number of arguments for '{command}' command")]
    Arity { command: String },
    #[error("NOAUTH Authentication required.")]
    NotAuthenticated,
    #[error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO \
         <proto> AUTH <user> <pass> option can be used to authenticate the client and select the \
         RESP protocol version at the same time"
    )]
    HelloNotAuthenticated,
    #[error("WRONGPASS invalid username-password pair or user is disabled.")]
    WrongPassword,
    /// A protocol version that HELLO does not know.
    #[error("NOPROTO unsupported protocol version")]
    Protocol,
    #[error("EXECABORT Transaction discarded because of previous errors.")]
    Discarded,
    /// Redis would go on here; a Tokaido transaction is all or nothing.
    #[error("EXECABORT Transaction discarded because {command} failed: {source}")]
    Aborted { command: &'static str, source: Box<Failure> },
    /// Anything else.
    #[error("ERR {0}")]
    Other(String),
    /// The store refuses writes until the server is restarted.
    #[error("MISCONF {0}")]
    Misconfigured(String),
}

impl Failure {
    pub(crate) fn other(message: impl Into<String>) -> Self {
        Self::Other(message.into())
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Self::Other(error.to_string())
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Poisoned { .. } => Self::Misconfigured(error.to_string()),
            _ => Self::Other(error.to_string()),
        }
    }
}

impl From<CommitError> for Failure {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Undetermined { .. } => Self::Misconfigured(error.to_string()),
            _ => Self::Other(error.to_string()),
        }
    }
}

impl From<DatabaseError> for Failure {
    fn from(error: DatabaseError) -> Self {
        Self::Other(error.to_string())
    }
}

impl From<IncrementError> for Failure {
    fn from(error: IncrementError) -> Self {
        match error {
            IncrementError::NotANumber => Self::NotAnInteger,
            IncrementError::Overflow => Self::Overflow,
            IncrementError::Write(error) => error.into(),
            _ => Self::Other(error.to_string()),
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self::Other(error.to_string())
    }
}
