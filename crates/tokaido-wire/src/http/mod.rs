//! The framing of HTTP/1.1 requests (RFC 9112): where each one begins and ends in the byte stream
//! of a connection, and which of them a server must refuse.
//!
//! It runs before an HTTP parser, which may then be more lenient than is safe for a server that
//! browsers can reach: a parser that takes one of two lengths, or drops parts of a target, cannot
//! be asked afterwards what it dropped. This module does not return parsed requests, and of a body
//! it looks only at the sizes of the chunks.

mod error;
mod framing;
mod head;

pub use error::FramingError;
pub use framing::{Fit, Framing, HeadLimits};
