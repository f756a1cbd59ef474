//! The errors of invalid requests. Their texts are memcached's own, because clients compare them.

/// A request of the text protocol was not understood, or exceeds a limit. The error's text is the
/// line that the client receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// There is no such command, or not with this many words.
    #[error("ERROR")]
    Unknown,
    /// A key is too long, or a number is invalid.
    #[error("CLIENT_ERROR bad command line format")]
    Format,
    /// Unexpected words follow the key of a delete.
    #[error("CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]")]
    DeleteUsage,
    /// The value is not followed by a line end, so the announced length is wrong.
    #[error("CLIENT_ERROR bad data chunk")]
    DataChunk,
    /// An expiry is not a number.
    #[error("CLIENT_ERROR invalid exptime argument")]
    Exptime,
    /// The amount to add to a counter is not a number.
    #[error("CLIENT_ERROR invalid numeric delta argument")]
    Delta,
    /// A value exceeds the limit.
    #[error("SERVER_ERROR object too large for cache")]
    TooLarge,
    /// A meta command has more words than any has flags.
    #[error("CLIENT_ERROR options flags are too long")]
    TooManyFlags,
    /// The same, in the words of other meta commands.
    #[error("CLIENT_ERROR options flags too long")]
    TooManyOptions,
    /// A flag is given twice.
    #[error("CLIENT_ERROR duplicate flag")]
    DuplicateFlag,
    /// There is no such flag.
    #[error("CLIENT_ERROR invalid flag")]
    InvalidFlag,
    /// One of these two, in the words of other meta commands.
    #[error("CLIENT_ERROR invalid or duplicate flag")]
    InvalidOrDuplicateFlag,
    /// A key is not base64, although the flag `b` says that it is.
    #[error("CLIENT_ERROR error decoding key")]
    KeyEncoding,
    /// The client's flags of a value are not a number.
    #[error("CLIENT_ERROR bad command line format")]
    ClientFlags,
    /// The argument of a flag is not a number.
    #[error("CLIENT_ERROR bad token in command line format")]
    Token,
    /// The flag `M` has no mode, or more than one letter.
    #[error("CLIENT_ERROR incorrect length for M token")]
    ModeLength,
    /// A value cannot be stored in this mode.
    #[error("CLIENT_ERROR invalid mode for ms M token")]
    SetMode,
    /// A counter cannot be changed in this mode.
    #[error("CLIENT_ERROR invalid mode for ma M token")]
    ArithmeticMode,
    /// The initial value of a counter is not a number.
    #[error("CLIENT_ERROR invalid numeric initial value")]
    Initial,
    /// The amount to add to a counter is not a number.
    #[error("CLIENT_ERROR invalid numeric delta value")]
    DeltaFlag,
    /// The opaque token exceeds the limit.
    #[error("CLIENT_ERROR opaque token too long")]
    OpaqueLength,
}

/// The input is not the protocol, and what follows cannot be understood: the connection must be
/// closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// A line does not end within the limit.
    #[error("the line is too long; it has at most {max} bytes")]
    LineLength {
        /// The limit.
        max: usize,
    },
    /// It is an HTTP request.
    #[error("this is the memcached protocol, not HTTP; connect to an address that speaks HTTP")]
    Http,
    /// A request of the binary protocol does not begin with the magic byte.
    #[error("a request of the binary protocol begins with the byte 0x80")]
    Magic,
    /// The client's credentials exceed the limit.
    #[error("the credentials are too long; they have at most 1024 bytes")]
    CredentialsLength,
}
