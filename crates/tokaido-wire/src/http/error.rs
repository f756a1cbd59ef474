//! Why a request is refused before anything of it is read.

use super::head::TARGET_LEN_MAX;

/// A request is not HTTP/1.1, or another server or proxy might read it otherwise. The answer has the
/// [`status`](Self::status), and the connection is closed: nobody knows where the next request begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FramingError {
    /// The first line has other parts than a request line.
    #[error("a request begins with METHOD TARGET HTTP/1.1")]
    RequestLine,
    /// The target is none of the four that there are, or has a byte that no URL has.
    #[error("the target is a path from / on, percent-encoded and without #")]
    Target,
    /// A version other than 1.0 and 1.1.
    #[error("HTTP/1.1 and HTTP/1.0 are spoken here, and no other version")]
    Version,
    /// A target that is longer than a parser takes.
    #[error("a target has at most {TARGET_LEN_MAX} bytes")]
    TargetTooLong,
    /// A tunnel is asked for.
    #[error("CONNECT is for proxies, and this is none")]
    Connect,
    /// A line of the head that is no header, or one that is folded.
    #[error("a header is a name, a colon right behind it, and a value on the same line")]
    Header,
    /// An option of the connection that is no name.
    #[error("Connection has names, such as close, with commas between them")]
    Connection,
    /// A length that is no number, or that comes twice.
    #[error("Content-Length comes once, with a number of bytes")]
    ContentLength,
    /// A length and a transfer coding.
    #[error("Content-Length and Transfer-Encoding contradict each other; send one of them")]
    TwoLengths,
    /// Transfer codings after which nobody knows where the body ends.
    #[error("Transfer-Encoding ends with chunked, which comes once, and needs HTTP/1.1")]
    TransferEncoding,
    /// A transfer coding that is not known here.
    #[error("chunked is the only transfer coding that is known here")]
    TransferCoding,
    /// The request line and the headers are together above the limit.
    #[error("a request line with its headers has at most {0} bytes here")]
    HeadTooLong(usize),
    /// There are more headers than the limit.
    #[error("a request has at most {0} headers here")]
    TooManyHeaders(usize),
    /// A body in chunks is not framed as such.
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
