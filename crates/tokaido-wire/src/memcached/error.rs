//! What is said to a request that is not as the protocol wants it. The texts are memcached's own,
//! because clients compare them.

/// A request of the text protocol was not understood, or is over a limit. The error's text is the
/// line that the client gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// There is no such command, or not with so many words.
    #[error("ERROR")]
    Unknown,
    /// A key is too long, or a number is none.
    #[error("CLIENT_ERROR bad command line format")]
    Format,
    /// Words follow the key of a delete.
    #[error("CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]")]
    DeleteUsage,
    /// What follows the value is not its line end, so the announced length is wrong.
    #[error("CLIENT_ERROR bad data chunk")]
    DataChunk,
    /// An expiry is no number.
    #[error("CLIENT_ERROR invalid exptime argument")]
    Exptime,
    /// What is to be added to a counter is no number.
    #[error("CLIENT_ERROR invalid numeric delta argument")]
    Delta,
    /// A value is over the limit.
    #[error("SERVER_ERROR object too large for cache")]
    TooLarge,
    /// A meta command has more words than any has flags.
    #[error("CLIENT_ERROR options flags are too long")]
    TooManyFlags,
    /// The same, as other meta commands have it.
    #[error("CLIENT_ERROR options flags too long")]
    TooManyOptions,
    /// A flag stands twice.
    #[error("CLIENT_ERROR duplicate flag")]
    DuplicateFlag,
    /// There is no such flag.
    #[error("CLIENT_ERROR invalid flag")]
    InvalidFlag,
    /// One of these, as other meta commands have it.
    #[error("CLIENT_ERROR invalid or duplicate flag")]
    InvalidOrDuplicateFlag,
    /// A key is not in base64 although the flag `b` says so.
    #[error("CLIENT_ERROR error decoding key")]
    KeyEncoding,
    /// The client's flags of a value are no number.
    #[error("CLIENT_ERROR bad command line format")]
    ClientFlags,
    /// The number of a flag is none.
    #[error("CLIENT_ERROR bad token in command line format")]
    Token,
    /// The flag `M` has no mode, or more than a letter.
    #[error("CLIENT_ERROR incorrect length for M token")]
    ModeLength,
    /// A value cannot be stored in that mode.
    #[error("CLIENT_ERROR invalid mode for ms M token")]
    SetMode,
    /// A counter cannot be moved in that mode.
    #[error("CLIENT_ERROR invalid mode for ma M token")]
    ArithmeticMode,
    /// What a counter is to begin with is no number.
    #[error("CLIENT_ERROR invalid numeric initial value")]
    Initial,
    /// What is to be added to it is no number.
    #[error("CLIENT_ERROR invalid numeric delta value")]
    DeltaFlag,
    /// What is to be sent back is over the limit.
    #[error("CLIENT_ERROR opaque token too long")]
    OpaqueLength,
}

/// What came is not the protocol, and what follows cannot be understood: the connection has to be
/// closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// A line has no end within the limit.
    #[error("the line is too long; it has at most {max} bytes")]
    LineLength {
        /// The limit.
        max: usize,
    },
    /// It is a request of HTTP.
    #[error("this is the memcached protocol, not HTTP; connect to an address that speaks HTTP")]
    Http,
    /// A request of the binary protocol does not begin as one.
    #[error("a request of the binary protocol begins with the byte 0x80")]
    Magic,
    /// What a client authenticates with is over the limit.
    #[error("the credentials are too long; they have at most 1024 bytes")]
    CredentialsLength,
}
