//! The ways in which bytes can violate the Redis protocol.

/// The peer sent something that is not the protocol, or that exceeds a limit.
///
/// What follows in the stream cannot be understood, so the connection has to be closed. A server
/// first answers with `-ERR Protocol error: ` and this error's text. It is Redis's own text where
/// Redis has one, because clients compare it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// A number of elements is not a number, or exceeds the limit.
    #[error("invalid multibulk length")]
    MultibulkLength,
    /// The length of a string is not a number, or exceeds the limit.
    #[error("invalid bulk length")]
    BulkLength,
    /// An argument of a request is not a bulk string.
    #[error("expected '$', got '{}'", .0.escape_ascii())]
    ExpectedBulk(u8),
    /// A bulk string is not followed by a line end, so its declared length is wrong.
    #[error("expected CRLF after bulk string")]
    ExpectedLineEnd,
    /// An inline request exceeds the limit.
    #[error("too big inline request")]
    TooBigInline,
    /// A quote of an inline request is not closed, or is followed by something other than a space.
    #[error("unbalanced quotes in request")]
    UnbalancedQuotes,
    /// A request as a whole exceeds the limit.
    #[error("too big request")]
    TooBigRequest,
    /// A reply begins with an unknown type byte.
    #[error("unknown reply type '{}'", .0.escape_ascii())]
    ReplyType(u8),
    /// A reply's line exceeds the limit or does not end with CRLF.
    #[error("invalid line in reply")]
    ReplyLine,
    /// A reply's content does not match its type: a number, a boolean, a verbatim string.
    #[error("invalid reply of type '{}'", .0.escape_ascii())]
    ReplyValue(u8),
    /// The aggregates of a reply are nested deeper than the limit.
    #[error("too deep reply")]
    TooDeepReply,
    /// A reply as a whole exceeds the limit in bytes or in elements.
    #[error("too big reply")]
    TooBigReply,
}
