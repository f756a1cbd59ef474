//! The Redis protocol, RESP2 and RESP3, for servers and for clients.
//!
//! A server keeps one [`RequestDecoder`] per connection and answers with a [`ReplyWriter`]:
//!
//! ```
//! use tokaido_wire::resp::{Decoded, Limits, ReplyWriter, RequestDecoder, Version};
//!
//! let mut input: &[u8] = b"*2\r\n$4\r\nECHO\r\n$5\r\nhello\r\nPING\r\n*1\r\n$4\r\nPI";
//! let mut output = Vec::new();
//! let mut replies = ReplyWriter::new(&mut output, Version::Resp2);
//! let mut decoder = RequestDecoder::new(Limits::default());
//! while let Decoded::Complete { consumed } = decoder.decode(input)? {
//!     let request = decoder.request(input);
//!     match request.name() {
//!         b"ECHO" => replies.bulk_or_null(request.get(1)),
//!         b"PING" => replies.simple("PONG"),
//!         _ => replies.error("ERR unknown command"),
//!     }
//!     input = &input[consumed..];
//! }
//! assert_eq!(output, b"$5\r\nhello\r\n+PONG\r\n");
//! assert_eq!(input, b"*1\r\n$4\r\nPI"); // kept until more of it arrives
//! # Ok::<(), tokaido_wire::resp::ProtocolError>(())
//! ```
//!
//! A client sends what [`encode_command`] writes and reads with a [`ReplyDecoder`].

mod command;
mod double;
mod error;
mod inline;
mod length;
mod limits;
mod reply;
mod reply_decoder;
mod reply_writer;
mod request;
mod request_decoder;

pub use command::encode_command;
pub use double::format_double;
pub use error::ProtocolError;
pub use limits::{
    ARGUMENT_LEN_MAX, ARGUMENTS_MAX, INLINE_LEN_MAX, Limits, REPLY_DEPTH_MAX, REPLY_ELEMENTS_MAX,
    REPLY_LEN_MAX, REPLY_LINE_LEN_MAX, REQUEST_LEN_MAX,
};
pub use reply::Reply;
pub use reply_decoder::ReplyDecoder;
pub use reply_writer::{ReplyWriter, Version};
pub use request::{Arguments, Request, RequestBuf};
pub use request_decoder::{Decoded, RequestDecoder};
