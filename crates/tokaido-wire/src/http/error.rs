//! Why a request is refused before any of it is processed.

use super::head::TARGET_LEN_MAX;

/// A request is not HTTP/1.1, or another server or proxy might read it differently. The answer has
/// the [`status`](Self::status). The connection is closed: the next request's start is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FramingError {
    /// The first line is not a request line.
    #[error("a request begins with METHOD TARGET HTTP/1.1")]
    RequestLine,
    /// The target has none of the four valid forms, or contains a byte that no URL has.
    #[error("the target is a path from / on, percent-encoded and without #")]
    Target,
    /// A version other than 1.0 and 1.1.
    #[error("HTTP/1.1 and HTTP/1.0 are spoken here, and no other version")]
    Version,
    /// The target is longer than the parser accepts.
    #[error("a target has at most {TARGET_LEN_MAX} bytes")]
    TargetTooLong,
    /// The client asks for a tunnel.
    #[error("CONNECT is for proxies, and this is none")]
    Connect,
    /// A line of the head is not a header, or is folded.
    #[error("a header is a name, a colon right behind it, and a value on the same line")]
    Header,
    /// An option of `Connection` is not a name.
    #[error("Connection has names, such as close, with commas between them")]
    Connection,
    /// The length is not a number, or is given twice.
    #[error("Content-Length comes once, with a number of bytes")]
    ContentLength,
    /// Both a length and a transfer coding are given.
    #[error("Content-Length and Transfer-Encoding contradict each other; send one of them")]
    TwoLengths,
    /// The transfer codings leave it unclear where the body ends.
    #[error("Transfer-Encoding ends with chunked, which comes once, and needs HTTP/1.1")]
    TransferEncoding,
    /// The transfer coding is not supported.
    #[error("chunked is the only transfer coding that is known here")]
    TransferCoding,
    /// The request line and the headers together exceed the limit.
    #[error("a request line with its headers has at most {0} bytes here")]
    HeadTooLong(usize),
    /// There are more headers than the limit.
    #[error("a request has at most {0} headers here")]
    TooManyHeaders(usize),
    /// A chunked body is not framed correctly.
    #[error("a chunk is its size in hexadecimal digits, CRLF, so many bytes, CRLF")]
    Chunk,
}

impl FramingError {
    /// The status of the answer.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::TargetTooLong => 414,
            Self::HeadTooLong(_) | Self::TooManyHeaders(_) => 431,
            Self::Connect | Self::TransferCoding => 501,
            Self::Version => 505,
            _ => 400,
        }
    }
}
