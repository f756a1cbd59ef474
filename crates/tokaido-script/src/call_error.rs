//! Why a call gave no result.

/// A call failed. The caller rolls the transaction back, unless [`is_kept`](CallError::is_kept) says no.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The procedure raised, or did something that is not allowed.
    #[error("{message}")]
    Raised {
        /// `file:line: message`.
        message: String,
        /// Lua's stack, one line per level.
        traceback: String,
    },
    /// The procedure refused, with `error{message = …, code = …, status = …}`.
    #[error("{message}")]
    Refused {
        /// For the user.
        message: String,
        /// For programs, if the procedure gave one.
        code: Option<String>,
        /// The HTTP status, if the procedure gave one: 400 to 599.
        status: Option<u16>,
        /// Whether its writes are kept nevertheless, as some dialects require.
        is_kept: bool,
    },
    /// It ran past [`Limits::time`](crate::Limits::time) and was stopped.
    #[error("{name} was stopped after {limit_ms} ms, its time limit; nothing of it remains")]
    TimeLimit {
        /// The procedure.
        name: String,
        /// The limit in ms.
        limit_ms: u64,
    },
    /// A script ran past [`Limits::script_time`](crate::Limits::script_time) and was stopped.
    #[error(
        "{name} was stopped after {limit_ms} ms, its time limit; a transaction that was open is rolled back"
    )]
    ScriptTimeLimit {
        /// The script.
        name: String,
        /// The limit in ms.
        limit_ms: u64,
    },
    /// A script called `os.exit`.
    #[error("the script has ended itself with the status {status}")]
    Exited {
        /// The status.
        status: u8,
    },
    /// Its [`Interrupt`](crate::Interrupt) was raised.
    #[error("interrupted; a transaction that was open is rolled back")]
    Interrupted,
    /// It needed more than [`Limits::memory_bytes`](crate::Limits::memory_bytes).
    #[error("{name} needed more than {limit_bytes} bytes, its memory limit; nothing of it remains")]
    MemoryLimit {
        /// The procedure.
        name: String,
        /// The limit in bytes.
        limit_bytes: usize,
    },
    /// A script needed more than [`Limits::script_memory_bytes`](crate::Limits::script_memory_bytes).
    #[error(
        "{name} needed more than {limit_bytes} bytes, its memory limit; a transaction that was open is rolled back"
    )]
    ScriptMemoryLimit {
        /// The script.
        name: String,
        /// The limit in bytes.
        limit_bytes: usize,
    },
    /// A command failed half way. Nothing of the transaction may be committed, even if the script caught
    /// the error.
    #[error("failed, and nothing of it remains: {message}")]
    HalfDone {
        /// What the command said.
        message: String,
    },
    /// An argument or a result has no representation on the other side.
    #[error("{message}")]
    Value {
        /// Which one and why.
        message: String,
    },
}

impl CallError {
    /// Whether the transaction is to be committed nevertheless.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        matches!(self, Self::Refused { is_kept: true, .. })
    }
}
