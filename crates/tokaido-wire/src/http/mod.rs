//! The framing of HTTP/1.1 requests (RFC 9112): where each one begins and ends among the bytes of a
//! connection, and which of them a server has to refuse.
//!
//! It stands before a parser of HTTP, which may so be more lenient than a server can be whose port
//! browsers reach: a parser that takes one of two lengths, or drops what it does not need of a
//! target, cannot be asked afterwards what it was that it has dropped. Nothing is parsed for others
//! here, and of a body not a byte is looked at beyond the sizes of its chunks.

mod error;
mod framing;
mod head;

pub use error::FramingError;
pub use framing::{Fit, Framing, HeadLimits};
