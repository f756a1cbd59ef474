//! Why a command failed, in the wording that Redis clients know.

use tokaido_script::CallError;
use tokaido_store::{
    CommitError, DatabaseError, IncrementError, ReadError, TransactError, WriteError,
};

use crate::{access::Denied, procedures::CallFailure};

/// The message starts with a code by which clients distinguish errors.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("ERR syntax error")]
    Syntax,
    #[error("ERR value is not an integer or out of range")]
    NotAnInteger,
    #[error(
        "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807"
    )]
    OutOfRange,
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
    #[error("WRONGTYPE Operation against a key holding the wrong kind of value")]
    WrongKind,
    #[error("WRONGTYPE Key is not a valid HyperLogLog string value.")]
    NotASketch,
    #[error("INVALIDOBJ Corrupted HLL object detected")]
    DamagedSketch,
    #[error("BUSYKEY Target key name already exists.")]
    BusyKey,
    #[error("ERR no such key")]
    NoSuchKey,
    #[error("ERR Invalid stream ID specified as stream command argument")]
    StreamId,
    #[error("NOGROUP {0}")]
    NoGroup(String),
    #[error("BUSYGROUP Consumer Group name already exists")]
    GroupExists,
    #[error("UNBLOCKED the stream key no longer exists")]
    StreamGone,
    #[error("NOGROUP the consumer group this client was blocked on no longer exists")]
    GroupGone,
    #[error("ERR DB index is out of range")]
    DatabaseIndex,
    #[error("ERR source and destination objects are the same")]
    SameObject,
    #[error("ERR wrong number of arguments for '{command}' command")]
    Arity { command: String },
    /// In version 2 of the protocol, only these commands' replies can be told from messages.
    #[error(
        "ERR Can't execute '{command}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET \
         are allowed in this context"
    )]
    Confined { command: &'static str },
    #[error("UNBLOCKED client unblocked via CLIENT UNBLOCK")]
    Unblocked,
    #[error("NOAUTH Authentication required.")]
    NotAuthenticated,
    #[error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO \
         <proto> AUTH <user> <pass> option can be used to authenticate the client and select the \
         RESP protocol version at the same time"
    )]
    HelloNotAuthenticated,
    /// The user's rules do not allow it.
    #[error("NOPERM {0}")]
    Forbidden(String),
    #[error("WRONGPASS invalid username-password pair or user is disabled.")]
    WrongPassword,
    /// HELLO asked for an unknown version of the protocol.
    #[error("NOPROTO unsupported protocol version")]
    Protocol,
    #[error("EXECABORT Transaction discarded because of previous errors.")]
    Discarded,
    /// EXEC itself was called with arguments.
    #[error(
        "EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command"
    )]
    ExecArity,
    /// Redis would continue here; a Tokaido transaction is all or nothing.
    #[error("EXECABORT Transaction discarded because {command} failed: {source}")]
    Aborted { command: &'static str, source: Box<Failure> },
    #[error("ERR Write commands are not allowed from read-only scripts.")]
    ReadOnlyScript,
    #[error("ERR This Redis command is not allowed from script")]
    NotForScripts,
    /// Never sent to a client: the command runs again, in the pool.
    #[error("ERR the command takes too long to be run here")]
    TakesLong,
    #[error("ERR the reply would be longer than {max} bytes (limits.reply_bytes_max); {instead}")]
    ReplyTooLong { max: usize, instead: &'static str },
    /// A script raised an error, which has its own code.
    #[error("{0}")]
    Script(String),
    #[error("NOSCRIPT No matching script. Please use EVAL.")]
    NoScript,
    #[error("NOTBUSY No scripts in execution right now.")]
    NotBusy,
    /// Anything else: the client's mistake, or something that this server does not support.
    #[error("ERR {0}")]
    Other(String),
    /// A procedure refused, with its own code.
    #[error("{code} {message}")]
    Refused { code: String, message: String },
    /// A read from or a write to the store failed.
    #[error("ERR {0}")]
    Store(String),
    /// The store refuses writes until the server is restarted.
    #[error("MISCONF {0}")]
    Misconfigured(String),
}

impl From<Denied> for Failure {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Unauthenticated => Self::NotAuthenticated,
            Denied::Forbidden(forbidden) => Self::Forbidden(forbidden.message()),
        }
    }
}

impl Failure {
    pub(crate) fn other(message: impl Into<String>) -> Self {
        Self::Other(message.into())
    }

    /// Whether a part of the command may have run before it failed. Commands detect all other
    /// failures before they write.
    pub(crate) fn may_follow_writes(&self) -> bool {
        matches!(self, Self::Store(_) | Self::Misconfigured(_) | Self::ReplyTooLong { .. })
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::OtherKind => Self::WrongKind,
            _ => Self::Store(error.to_string()),
        }
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Poisoned { .. } => Self::Misconfigured(error.to_string()),
            WriteError::WrongKind => Self::WrongKind,
            WriteError::Read(error) => error.into(),
            _ => Self::Store(error.to_string()),
        }
    }
}

impl From<CommitError> for Failure {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Undetermined { .. } => Self::Misconfigured(error.to_string()),
            _ => Self::Store(error.to_string()),
        }
    }
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
            _ => Self::Store(error.to_string()),
        }
    }
}

/// The client gets one line. Any further details of a fault are in the log.
impl From<CallFailure> for Failure {
    fn from(failure: CallFailure) -> Self {
        let message = failure.error.to_string();
        match failure.error {
            CallError::Refused { code: Some(code), .. } if is_code(&code) => {
                Self::Refused { code, message }
            }
            _ => Self::Other(message),
        }
    }
}

/// Whether clients would take it for an error code: one word, and no reply of another type.
fn is_code(text: &str) -> bool {
    let is_of_code = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte);
    !text.is_empty() && text.bytes().all(is_of_code)
}
